"""The ledger as a file: its export, and a lost ledger built again."""
