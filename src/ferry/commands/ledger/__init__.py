"""`ferry ledger` and `ferry translate`: what the ledger knows."""
