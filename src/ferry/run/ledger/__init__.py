"""The ledger as an operator handles it: read, paused, exported and rebuilt."""
