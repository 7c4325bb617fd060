"""What opens a run of a flow's lane: its record, and the port to fence and to write by."""

from __future__ import annotations

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.model import Origin, RunRecord


def driver_port(flow: FlowConfig, lane: str, ledger: LedgerTopic) -> KafkaDriver:
    """Where a run of the lane is opened: its ledger, and the slots to fence."""
    return KafkaDriver(ledger, flow.flow, lane, flow.transaction_timeout_ms)


def lane_record(flow: FlowConfig, lane: str, run: str, origin: Origin, *, slots: int | None = None) -> RunRecord:
    """The record of a run that begins now. `slots`: as many as the flow has tasks unless given."""
    return RunRecord(
        flow=flow.flow,
        lane=lane,
        run=run,
        slots=flow.tasks_max if slots is None else slots,
        config_digest=flow.digest(),
        started_ms=wall_ms(),
        origin=origin,
        deployment=flow.deployment,
    )
