"""The ledger is exported, and built again."""
