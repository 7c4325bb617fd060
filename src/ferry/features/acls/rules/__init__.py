"""Access control lists: which to create and which to delete; pure."""
