"""Drills: failovers rehearsed on both clusters, each with a report at its end."""
