"""What a flow has open: its connections, and its ledger as far as it was read."""
