"""Lanes other than the live one: the contents of a lane in the ledger, and what is deleted with it."""
