"""Names at the target: of a lane's writers, and of the group that has its positions."""

from __future__ import annotations

from ferry.model import Flow

DRIVER = "driver"
"""In place of a slot's number: the writer of what a lane's driver decides."""


def transactional_id(flow: Flow, lane: str, slot: int | str) -> str:
    """Flow, lane and slot, without run or attempt: a later run's writer fences an earlier one's by having its name."""
    return f"ferry.{flow}.{lane}.{slot}"


def position_group(flow: Flow, lane: str) -> str:
    """The consumer group that shows a lane's positions to Kafka's own tools."""
    return f"ferry.{flow}.{lane}"
