"""Copying one slice: fetch, pack, append in a transaction, and tell the outcome."""
