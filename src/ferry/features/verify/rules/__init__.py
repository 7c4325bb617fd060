"""Finds where two logs differ."""
