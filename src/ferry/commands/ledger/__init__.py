"""`ferry ledger`: what is in the ledger."""
