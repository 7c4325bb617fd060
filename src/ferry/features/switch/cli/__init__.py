"""Commands that move clients to the other cluster, and what is there to see before and after."""
