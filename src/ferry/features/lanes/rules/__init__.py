"""Lanes beside the live one: which offsets a window means, and what the ledger keeps of a lane."""
