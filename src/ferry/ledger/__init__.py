"""The ledger: its records, what they say together, and how they are written."""
