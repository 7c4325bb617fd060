"""The ledger for the commands of an operator: read, and written to pause and resume."""
