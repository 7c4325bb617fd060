"""Access control lists are read and written."""
