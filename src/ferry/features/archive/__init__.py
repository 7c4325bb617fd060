"""The ledger as a file: exported, and built again from one."""
