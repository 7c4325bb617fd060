"""A run's budgets: how much of what could be copied this run copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ferry.model import Slice, TopicPartition
from ferry.plan.rules.candidates import Candidate
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.shares import fair_shares


class Ahead(Protocol):
    """What is not yet copied of one source partition; the run of `last_generation` copied some of it last."""

    @property
    def source(self) -> TopicPartition: ...
    @property
    def offsets(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def last_generation(self) -> int: ...


def within_budget(rules: Rules, needs: Sequence[Ahead]) -> dict[TopicPartition, int]:
    """Return how many offsets of each source partition the run copies within its budgets, in fair shares.

    If a budget is too small for all, the partitions that were copied longest ago come first, so that none starves.
    """
    by_turn = sorted(needs, key=lambda need: need.last_generation)
    wanted = {need.source: need.offsets for need in by_turn}
    if rules.max_records is not None:
        wanted = fair_shares(wanted, rules.max_records)
    if rules.max_bytes is not None:
        sizes = {c.source: max(1, c.bytes * wanted[c.source] // c.offsets) for c in by_turn if wanted[c.source]}
        shares = fair_shares(sizes, rules.max_bytes)
        for source, share in shares.items():
            if share < sizes[source]:
                wanted[source] = max(1, wanted[source] * share // sizes[source]) if share else 0
    return wanted


def bytes_within(candidate: Candidate, wanted: Mapping[TopicPartition, int]) -> int:
    """Return about how many bytes of a candidate the run copies."""
    return candidate.bytes * wanted[candidate.source] // candidate.offsets


def slice_of(candidate: Candidate, wanted: Mapping[TopicPartition, int], slot: int) -> Slice:
    """Return the slice that the run copies of a candidate."""
    return Slice(
        source=candidate.source,
        target=candidate.target,
        start=candidate.start,
        end=candidate.start + wanted[candidate.source],
        slot=slot,
        bytes_estimate=bytes_within(candidate, wanted),
        first=candidate.first,
        source_topic_id=candidate.source_topic_id,
        target_topic_id=candidate.target_topic_id,
        target_next=candidate.target_next,
        log_start=candidate.log_start,
        merged=candidate.merged,
        target_end=candidate.target_end,
        since=candidate.since,
        compacted=candidate.compacted,
        read_epoch=candidate.read_epoch,
        read_end=candidate.read_end,
        target_epoch=candidate.target_epoch,
        transform=candidate.transform.name if candidate.transform else "",
        transform_digest=candidate.transform.digest if candidate.transform else "",
    )
