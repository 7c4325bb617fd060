"""The lines of an exported ledger; pure."""
