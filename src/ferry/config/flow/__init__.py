"""What a file makes of a flow: its topics and groups, names, limits, guards and clients."""
