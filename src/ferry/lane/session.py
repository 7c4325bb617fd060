"""A lane of a flow over open connections: both clusters and the ledger, the start of every act on them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import lane_flow
from ferry.errors import Refused
from ferry.lane.connections import FlowConnections
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.messages.catalogue import sentence
from ferry.model import Sentence

T = TypeVar("T")

SETTLE_SECONDS = 5.0
"""How long a report waits for commit markers, which follow an acknowledged commit within milliseconds."""


def one_cluster(flow: FlowConfig, source_id: str, target_id: str) -> Sentence | None:
    """Return why the flow is refused if both of its aliases lead to the cluster of one id; None if they do not.

    An empty id is not known.
    """
    if not source_id or source_id != target_id:
        return None
    return sentence("clusters.same", cluster=source_id, **both_clusters(flow))


def both_clusters(flow: FlowConfig) -> dict[str, str]:
    """Return the facts that name both clusters of a flow, and the lines of the file that lead to them."""
    return {
        "source": flow.flow.source,
        "target": flow.flow.target,
        "source_line": flow.where("source", "consumer", "bootstrap.servers"),
        "target_line": flow.where("target", "producer", "bootstrap.servers"),
    }


class LaneSession:
    """The connections to both clusters of one flow, in one lane. Use as a context manager.

    Acts are coroutines on the event loop of the connections: `wait_for` runs one from any thread. They are given
    `open_lane`. `view` reads the ledger. `view_if_any` also allows a flow that never ran, and `settled_view` waits
    for the markers of chunks that were committed just before.
    """

    def __init__(self, flow: FlowConfig, *, lane: str | None = None, patience_s: float = 60.0) -> None:
        """`lane` is the flow's own by default. `patience_s` is how long an unreachable cluster is tried, in seconds."""
        flow = lane_flow(flow, lane)
        self.flow = flow
        self.lane = lane or flow.lane
        self.patience_s = patience_s
        self.connections = FlowConnections.of(flow, patience_s=patience_s)
        self.ledger_topic = self.connections.ledger
        self.open_lane = OpenLane.of(flow, self.lane, self.connections)

    def __enter__(self) -> Self:
        """Connect to both clusters.

        Raises Unreachable, which names the cluster that does not answer, and Refused when both are the same cluster.
        """
        self.connections.__enter__()
        why = one_cluster(self.flow, self.connections.source.cluster_id, self.connections.target.cluster_id)
        if why is not None:
            self.close()
            raise Refused(why)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.connections.close()

    async def view_if_any(self, run: str | None = None) -> LedgerView:
        """Return the ledger's view, or an empty one for a flow that never ran."""
        cache = self.open_lane.cache
        view = await cache.view_if_any()
        return view if run is None else await cache.with_run(view, self.lane, run)

    async def settled_view(self) -> LedgerView:
        """Return the ledger's view once the markers of committed chunks have arrived, or SETTLE_SECONDS have passed."""
        until = time.monotonic() + SETTLE_SECONDS
        view = await self.view()
        while view.open and time.monotonic() < until:
            await self.connections.loop.sleep(0.02)
            view = await self.view()
        return view

    async def view(self, run: str | None = None) -> LedgerView:
        """Return the ledger's view, with all that belongs to a run, however old that is."""
        cache = self.open_lane.cache
        return await cache.view() if run is None else await cache.view_with(self.lane, run)

    def wait_for(self, work: Callable[[], Awaitable[T]]) -> T:
        return self.connections.run(work)
