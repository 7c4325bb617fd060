"""Access control lists (ACLs): those that Ferry needs, and how the target's differ from what the source's ask for."""
