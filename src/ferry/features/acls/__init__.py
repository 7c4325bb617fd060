"""Access control lists: what Ferry needs, and what it copies."""
