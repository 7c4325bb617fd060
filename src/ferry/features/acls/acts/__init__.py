"""Access control lists are compared."""
