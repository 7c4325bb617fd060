"""Metrics, alerts, and runs that begin because of lag."""
