"""Compares two live clusters."""
