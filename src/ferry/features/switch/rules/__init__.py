"""Switching clients to the other cluster: which step is next, what is lost, which names and offsets hold there."""
