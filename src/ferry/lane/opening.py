"""What opens a run of a flow's lane: its record, and the port through which it fences and writes."""

from __future__ import annotations

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.model import Origin, RunRecord


def driver_port(flow: FlowConfig, lane: str, ledger: LedgerTopic) -> KafkaDriver:
    """Return the port through which a run of the lane is opened: its ledger, and the slots to fence."""
    return KafkaDriver(ledger, flow.flow, lane, flow.copy.transaction_timeout_ms)


def lane_record(flow: FlowConfig, lane: str, run: str, origin: Origin, *, slots: int | None = None) -> RunRecord:
    """Make the record of a run that begins now. `slots` is the flow's number of tasks by default."""
    return RunRecord(
        flow=flow.flow,
        lane=lane,
        run=run,
        slots=flow.copy.tasks_max if slots is None else slots,
        config_digest=flow.digest(),
        started_ms=wall_ms(),
        origin=origin,
        deployment=flow.deployment,
    )
