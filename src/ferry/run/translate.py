"""Translate an offset between the two sides of a flow, by its ledger and the target's log end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ferry.config.flow import FlowConfig
from ferry.decide.offset_map import Translated
from ferry.errors import BadInput
from ferry.model import TopicPartition
from ferry.run.connections import TargetConnection
from ferry.run.offset_maps import PartitionMap, offset_maps


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What became of an offset; the outcome counts on the side that was not asked about."""

    source: TopicPartition
    target: TopicPartition
    outcome: Translated


def translate(
    flow: FlowConfig, place: TopicPartition, offset: int, *, backward: bool = False, patience_s: float = 60.0
) -> Translation:
    """Where `offset` of a source partition went; `backward`: where `offset` of a target partition came from.

    Asks the target only. Raises Unreachable, and BadInput when the flow's lane has copied nothing of the partition.
    """
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        return connection.run(partial(_translate, connection, flow, place, offset, backward))


async def _translate(
    connection: TargetConnection, flow: FlowConfig, place: TopicPartition, offset: int, backward: bool
) -> Translation:
    made = (await offset_maps(connection, flow.lane, {place: [offset]}, backward=backward)).get(place)
    if made is None:
        other = (await offset_maps(connection, flow.lane, {place: [offset]}, backward=not backward)).get(place)
        raise BadInput(_nothing_of(flow, place, other, backward))
    return Translation(source=made.source, target=made.target, outcome=made.translate(offset))


def _nothing_of(flow: FlowConfig, place: TopicPartition, other: PartitionMap | None, backward: bool) -> str:
    """The sentence for a partition without receipts; it names the other side's name where that was given."""
    if other is not None and backward:
        return f"{place} is a source partition: with --reverse name that of the target, {other.target}"
    if other is not None:
        return f"{place} is a target partition: name that of the source, {other.source}, or add --reverse"
    side = "target" if backward else "source"
    return (
        f"lane {flow.lane} of flow {flow.flow} has copied nothing of {side} partition {place}: "
        "name one that `ferry ledger` lists, or run the flow first"
    )
