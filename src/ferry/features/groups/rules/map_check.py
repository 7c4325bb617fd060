"""Whether both clusters still have what a lane's receipts tell of: else its offset map leads to other records, or none.

The same comparisons as the guards of a run (`ferry.plan.rules.guards`). A run that refuses a partition leaves its
receipts as they are, and so does whoever only translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.model import Gap, Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What the clusters show of a copied partition now; what is empty or None is not known, and not compared."""

    source_cluster_id: str = ""
    source_topic_id: str = ""
    target_topic_id: str = ""
    target_end: int | None = None
    target_cut: int | None = None
    """From where on the target's log has other records than were written to it."""


def map_trouble(last: Receipt, gaps: Sequence[Gap], now: Present) -> str | None:
    """Why offsets of a partition cannot be translated by receipts up to the `last` one; None when they can.

    A lane that was told to go on behind a source topic created again says so in its `gaps`, before its first receipt.
    """
    went_on = any(
        gap.generation > last.generation and gap.void_from == 0 and gap.topic_id == now.source_topic_id for gap in gaps
    )
    return _trouble(str(last.source), last.source.topic, last, now, went_on=went_on)


def dealt_trouble(last: Receipt, now: Present) -> str | None:
    """The same of a topic that is dealt to other partitions, by the `last` receipt of one of these."""
    return _trouble(f"topic {last.source.topic}", last.source.topic, last, now, went_on=False)


def _trouble(what: str, topic: str, last: Receipt, now: Present, *, went_on: bool) -> str | None:
    moved = last.source_cluster_id and now.source_cluster_id and last.source_cluster_id != now.source_cluster_id
    if moved and not went_on:
        return (
            f"offsets of {what} are not translated, for the source alias {last.flow.source} now leads to "
            f"cluster {now.source_cluster_id}, and what is copied came from {last.source_cluster_id}: do what a run's "
            "refusal cluster-changed says"
        )
    if _differ(last.source_topic_id, now.source_topic_id) and not went_on:
        return (
            f"offsets of {what} are not translated, for source topic {topic} was created again "
            f"since it was copied (topic id {last.source_topic_id}, now {now.source_topic_id}): do what a run's "
            "refusal topic-recreated says"
        )
    if _differ(last.target_topic_id, now.target_topic_id):
        return (
            f"offsets of {what} are not translated, for target topic {last.target.topic} was created again "
            f"since it was written (topic id {last.target_topic_id}, now {now.target_topic_id}): do what a run's "
            "refusal target-changed says"
        )
    if now.target_end is not None and now.target_end < last.target_next:
        return (
            f"offsets of {what} are not translated, for target {last.target} ends at offset {now.target_end} "
            f"and was written up to {last.target_next}: it lost records, do what a run's refusal target-changed says"
        )
    if now.target_cut is not None and now.target_cut < last.target_next:
        return (
            f"offsets of {what} are not translated, for target {last.target} was written up to "
            f"{last.target_next}, but its log was cut to {now.target_cut} since (leader epoch {last.target_epoch} ends "
            "there), and has other records there: it lost records, do what a run's refusal target-changed says"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """From source offset `at` on a map leads to records that the source has lost; `why`, as a sentence."""

    at: int
    why: str


def map_cut(last: Receipt, gaps: Sequence[Gap], at: int) -> Cut | None:
    """Where a source log that was cut `at` an offset, before the end of its `last` receipt, ends a partition's map.

    None when a run has decided since how to go on: the map of its gaps holds nothing from there on.
    """
    if any(gap.generation > last.generation and 0 <= gap.void_from <= at for gap in gaps):
        return None
    return Cut(at=at, why=_cut_sentence(last.source, at, last.end))


def dealt_cut(place: TopicPartition, reached: int, at: int) -> Cut:
    """The same of a source partition of a topic that is dealt, of which was `reached` so much."""
    return Cut(at=at, why=_cut_sentence(place, at, reached))


def _cut_sentence(place: TopicPartition, at: int, copied: int) -> str:
    return (
        f"offsets of {place} from {at} on are not translated, for it was copied up to {copied}, but its log was "
        "truncated there since (unclean leader election?): do what a run's refusal source-truncated says"
    )


def _differ(then: str, now: str) -> bool:
    return bool(then and now and then != now)
