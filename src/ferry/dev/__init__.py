"""Real Kafka clusters on this machine, started from the Maven jars: for `ferry dev`, tests, the demo and the bench.

`up` starts what a `ClusterSpec` describes and returns when every broker serves. `down` ends exactly the processes that
`up` recorded in its home folder. `status` reads the same records. A `RunningCluster` can also kill, pause and restart
each broker on its own data and ports, which fault tests need.
"""

from ferry.dev.broker import Broker
from ferry.dev.cluster import ClusterStatus, RunningCluster, attach, down, status, up, up_all
from ferry.dev.guard import guard
from ferry.dev.spec import ClusterSpec, Listener

__all__ = [
    "Broker",
    "ClusterSpec",
    "ClusterStatus",
    "Listener",
    "RunningCluster",
    "attach",
    "down",
    "guard",
    "status",
    "up",
    "up_all",
]
