"""A lane with open connections: what every act on it is given, and what opens a run of it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.connections import FlowConnections
from ferry.lane.ledger_cache import LedgerCache, LedgerCaches
from ferry.ledger.ledger import LedgerView
from ferry.model import Origin, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLane:
    """A lane of a flow, with open connections to both clusters. Lives on their event loop.

    Each ledger is read from its beginning once, by the first caller of `ledgers`; later reads continue from there.
    """

    flow: FlowConfig
    name: str
    source: Cluster
    target: Cluster
    ledger: LedgerTopic
    ledgers: LedgerCaches

    @classmethod
    def of(cls, flow: FlowConfig, name: str, connections: FlowConnections) -> OpenLane:
        """Return a lane over open connections. Both know the flow's ledger as far as either has read it."""
        return cls(
            flow=flow,
            name=name,
            source=connections.source,
            target=connections.target,
            ledger=connections.ledger,
            ledgers=LedgerCaches({(connections.target, flow.flow.source): connections.cache}),
        )

    @property
    def cache(self) -> LedgerCache:
        """The flow's ledger as far as this process has read it."""
        return self.ledgers.of(self.target, self.flow.flow.source)

    async def with_newest(self, view: LedgerView) -> LedgerView:
        """Return a view with the lane's newest run complete, as it is now; the same view if there is no run."""
        return await self.cache.view_with_newest(self.name, 1) if view.runs else view

    def driver_port(self) -> KafkaDriver:
        """Return the port that opens a run of the lane: its ledger, and the slots to fence."""
        return driver_port(self.flow, self.name, self.ledger)

    def record(self, run: str, origin: Origin) -> RunRecord:
        """Return the record that opens a run of this flow in this lane now."""
        return lane_record(self.flow, self.name, run, origin)


def driver_port(flow: FlowConfig, lane: str, ledger: LedgerTopic) -> KafkaDriver:
    """Return the port through which a run of the lane is opened: its ledger, and the slots to fence."""
    return KafkaDriver(ledger, flow.flow, lane, flow.copy.transaction_timeout_ms)


def lane_record(flow: FlowConfig, lane: str, run: str, origin: Origin, *, slots: int | None = None) -> RunRecord:
    """Make the record of a run that begins now. `slots` is the flow's number of slots by default."""
    return RunRecord(
        flow=flow.flow,
        lane=lane,
        run=run,
        slots=flow.slots if slots is None else slots,
        config_digest=flow.digest(),
        started_ms=wall_ms(),
        origin=origin,
        deployment=flow.deployment,
    )
