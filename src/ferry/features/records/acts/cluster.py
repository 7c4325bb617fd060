"""A connection to one cluster, independent of a flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ferry.config.client_options import ConnectionOptions
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.lane.connections import manager_options


@contextmanager
def connected(alias: str, options: ConnectionOptions, *, patience_s: float = 60.0) -> Iterator[Cluster]:
    """Connect to the cluster while the block lasts, on its own event loop; Unreachable when it does not answer."""
    arguments = manager_options(options)
    loop = event_loop()  # after what can fail, because it holds sockets
    cluster = Cluster(loop, alias, arguments, patience_s=patience_s)
    try:
        loop.run(cluster.open)
        yield cluster
    finally:
        cluster.close()
        loop.close()
