"""`ferry ledger export` and `ferry ledger rebuild`."""
