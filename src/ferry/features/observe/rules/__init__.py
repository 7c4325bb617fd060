"""What numbers tell of a flow's runs, and which of them should wake somebody."""
