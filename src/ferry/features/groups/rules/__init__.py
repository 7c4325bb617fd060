"""Offsets of consumer groups: translated, and when they may be written."""
