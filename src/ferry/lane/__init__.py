"""What a process has open of a flow: its connections, and its ledger as far as it was read."""
