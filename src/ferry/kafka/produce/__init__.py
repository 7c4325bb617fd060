"""Writing: transactions of a slot, the ledger topic, and plain topics."""
