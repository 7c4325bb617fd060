"""Checks this machine and the clusters of flows."""
