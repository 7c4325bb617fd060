"""Names on the target: of the ledger, of a lane's writers, and of the consumer group that holds its positions."""

from __future__ import annotations

from ferry.model import Flow

DRIVER = "driver"
"""In place of a slot's number: the writer that writes what a lane's driver decides."""


def transactional_id(flow: Flow, lane: str, slot: int | str) -> str:
    """Return the transactional id: flow, lane and slot, without run or attempt.

    A later run's writer has the same id as an earlier one's, and fences it by that.
    """
    return f"ferry.{flow}.{lane}.{slot}"


def position_group(flow: Flow, lane: str) -> str:
    """Return the consumer group that shows a lane's positions to Kafka's own tools."""
    return f"ferry.{flow}.{lane}"


def ledger_topic(source_alias: str) -> str:
    """Return the name of the ledger of all flows from one source: `ferry-ledger.{source}.internal`."""
    return f"ferry-ledger.{source_alias}.internal"
