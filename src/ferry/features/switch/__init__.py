"""Switchover, failover and failback, and whether a flow is ready for them."""
