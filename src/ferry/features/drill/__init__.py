"""Drills: rehearsed failovers."""
