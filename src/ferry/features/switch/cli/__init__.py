"""The commands that move clients to the other cluster, and those that show switches before and after."""
