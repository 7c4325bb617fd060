"""Copying one slot: fetch, pack, append in a transaction, and report the outcome."""
