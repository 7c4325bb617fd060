"""Comparing two live clusters."""
