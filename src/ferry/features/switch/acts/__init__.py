"""Acts of a switchover, a failover and a failback: one module for each step, and the journal that keeps them."""
