"""The ledger: its records, what they show together, and how they are written."""
