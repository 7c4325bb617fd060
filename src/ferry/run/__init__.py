"""Acts: plan, copy and report a run, compare clusters, move groups and clients, rehearse it."""
