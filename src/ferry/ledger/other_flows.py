"""Other flows' ledgers on one cluster: the topics that they own, and the offsets that they wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferry.ledger.ledger import LedgerView, claims, shared_topics
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.receipts import open_receipts
from ferry.messages.refusals import refused
from ferry.model import Plan, Range, Receipt, Refusal, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFlow:
    """Another flow into the same cluster, named as its ledger names it; topics are those of that cluster."""

    ledger: str
    claimed: frozenset[str]
    shared: frozenset[str]
    """Claimed topics that it agrees to write together with other flows."""
    written: Mapping[TopicPartition, tuple[Range, ...]]
    """Target offsets of its records, whatever their run, with those of transactions that are still open."""


def other_flow_of(
    ledger: str, view: LedgerView, topics: Collection[str], rows: Mapping[ReceiptChain, Sequence[MapEntry]]
) -> OtherFlow:
    """Return what a flow's ledger shows about `topics`.

    `rows` are its receipts there, as far as they are of interest.
    """
    claimed = frozenset(claims(view)) & frozenset(topics)
    undecided = (receipt for receipt in open_receipts(view) if receipt.target.topic in topics)
    return OtherFlow(ledger=ledger, claimed=claimed, shared=shared_topics(view), written=ranges(rows, undecided))


def ranges(
    rows: Mapping[ReceiptChain, Sequence[MapEntry]], undecided: Iterable[Receipt]
) -> dict[TopicPartition, tuple[Range, ...]]:
    """Return the target offsets of records, ascending: those of committed receipts, and of undecided ones."""
    found: dict[TopicPartition, list[Range]] = {}
    parts = [(of.target, row.segments) for of, ones in rows.items() for row in ones]
    for target, segments in [*parts, *((receipt.target, receipt.segments) for receipt in undecided)]:
        found.setdefault(target, []).extend((segment.target_start, segment.target_end) for segment in segments)
    return {place: tuple(sorted(ones)) for place, ones in found.items()}


def uncut(
    written: Mapping[TopicPartition, tuple[Range, ...]], cut: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[Range, ...]]:
    """Return the parts of `written` before the offsets where logs were cut; other producers wrote what is there now."""
    return {
        place: tuple((low, min(high, at)) for low, high in parts if low < at)
        if (at := cut.get(place)) is not None
        else parts
        for place, parts in written.items()
    }


def gaps(written: Iterable[Range], start: int, end: int) -> list[Range]:
    """Return the parts of `[start, end)` that no range covers, ascending."""
    found, at = [], start
    for low, high in sorted(written):
        if low >= end:
            break
        if low > at:
            found.append((at, low))
        at = max(at, high)
    if at < end:
        found.append((at, end))
    return found


def owned_elsewhere(topic: str, target: str, merged: bool, neighbours: Iterable[OtherFlow]) -> Refusal | None:
    """Return why another flow's claim on topic `target` forbids copying `topic` to it; None: it does not.

    `merged`: the own flow agrees to share it.
    """
    for other in neighbours:
        if target not in other.claimed:
            continue
        if not merged:
            return refused("owned.by-flow", topic, target=target, ledger=other.ledger)
        if target not in other.shared:
            return refused("owned.not-shared", topic, target=target, ledger=other.ledger)
    return None


def without_owned_elsewhere(plan: Plan, merged: Collection[str], neighbours: Collection[OtherFlow]) -> Plan:
    """Return the plan without what goes to a target topic of another flow; `merged` are target topics to be shared."""
    refusals: dict[str, Refusal] = {}
    for topic, target in plan.copies:
        refusal = owned_elsewhere(topic, target, target in merged, neighbours)
        if refusal is not None:
            refusals[topic] = refusal
    return plan.without(refusals) if refusals else plan
