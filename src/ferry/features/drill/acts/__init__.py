"""Rehearsals of a failover on both clusters, each with a report at its end."""
