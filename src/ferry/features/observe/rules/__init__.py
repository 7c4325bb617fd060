"""The metrics of a flow's runs, and the alerts about them."""
