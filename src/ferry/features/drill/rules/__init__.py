"""Drills: what was measured, held against the goals; pure."""
