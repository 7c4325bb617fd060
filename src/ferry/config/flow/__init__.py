"""What a file defines for a flow: its topics and groups, names, limits, guards and clients."""
