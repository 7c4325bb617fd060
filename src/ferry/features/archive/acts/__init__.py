"""Export of the ledger, and its rebuild."""
