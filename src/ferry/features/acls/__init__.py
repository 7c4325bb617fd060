"""Access control lists: what Ferry needs, and how those of the target differ from what the source asks for."""
