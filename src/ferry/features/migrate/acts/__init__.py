"""Going on where another replicator stopped, and handing back to it."""
