"""Comparison and sync of access control lists."""
