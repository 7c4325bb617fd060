"""The steps of a switchover, a failover and a failback, one module for each, and the journal that records them."""
