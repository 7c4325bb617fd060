"""Translate an offset between the two sides of a flow, by its ledger and the target's log end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ferry.config.flow import FlowConfig
from ferry.decide.ledger import LedgerView, gaps, receipts
from ferry.decide.offset_map import OffsetMap, Translated
from ferry.errors import BadInput
from ferry.model import Receipt, TopicPartition
from ferry.net.fetch import READ_COMMITTED
from ferry.net.offsets import LATEST, listed_offsets
from ferry.run.connections import TargetConnection


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
    view = await connection.view()
    found = _of_target(view, flow.lane, place) if backward else _of_source(view, flow.lane, place)
    if not found:
        raise BadInput(_nothing_of(flow, view, place, backward))
    source, target = found[-1].source, found[-1].target
    stands_at = await _last_stable(connection, target)
    make = OffsetMap.backward if backward else OffsetMap.forward
    made = make(found, gaps(view, flow.lane), stands_at)
    return Translation(source=source, target=target, outcome=made.translate(offset))


def _of_source(view: LedgerView, lane: str, place: TopicPartition) -> list[Receipt]:
    """Receipts of a source partition; where the policy renamed its copy in between, of the newest copy."""
    found = [receipt for receipt in receipts(view, lane=lane, topic=place.topic) if receipt.source == place]
    return [receipt for receipt in found if receipt.target == found[-1].target]


def _of_target(view: LedgerView, lane: str, place: TopicPartition) -> list[Receipt]:
    return list(receipts(view, lane=lane, target=place))


def _nothing_of(flow: FlowConfig, view: LedgerView, place: TopicPartition, backward: bool) -> str:
    """The sentence for a partition without receipts; it names the other side's name where that was given."""
    others = _of_source(view, flow.lane, place) if backward else _of_target(view, flow.lane, place)
    if others and backward:
        return f"{place} is a source partition: with --reverse name that of the target, {others[-1].target}"
    if others:
        return f"{place} is a target partition: name that of the source, {others[-1].source}, or add --reverse"
    side = "target" if backward else "source"
    return (
        f"lane {flow.lane} of flow {flow.flow} has copied nothing of {side} partition {place}: "
        "name one that `ferry ledger` lists, or run the flow first"
    )


async def _last_stable(connection: TargetConnection, target: TopicPartition) -> int | None:
    """Where a read_committed reader of the target ends now; None when that cannot be learned."""
    if target.topic not in await connection.target.refresh([target.topic]):
        return None
    listed = await listed_offsets(connection.target, {target: LATEST}, isolation=READ_COMMITTED)
    return listed.found.get(target)
