"""Drills: failovers that are rehearsed."""
