"""Checks that both clusters still have what a lane's receipts describe.

Otherwise its offset map leads to wrong records. A run's guards (`ferry.plan.rules.guards`) compare the same facts. A
run that refuses a partition keeps its receipts, and so does a command that only translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.model import Gap, Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What the clusters show of a copied partition now.

    A value that is empty or None is not known, and not compared.
    """

    source_cluster_id: str = ""
    source_topic_id: str = ""
    target_topic_id: str = ""
    target_end: int | None = None
    target_cut: int | None = None
    """From this offset on the target's log has other records than those that were written to it."""


def map_trouble(last: Receipt, gaps: Sequence[Gap], now: Present) -> str | None:
    """Return why offsets of a partition cannot be translated by receipts up to the `last` one; None when they can.

    A lane that continues after its source topic was created again has a gap that says so, before its first new receipt.
    """
    went_on = any(
        gap.generation > last.generation and gap.void_from == 0 and gap.topic_id == now.source_topic_id for gap in gaps
    )
    return _trouble(str(last.source), last.source.topic, last, now, went_on=went_on)


def dealt_trouble(last: Receipt, now: Present) -> str | None:
    """Return why offsets of a repartitioned topic cannot be translated, by the `last` receipt of one target partition.

    None when they can.
    """
    return _trouble(f"topic {last.source.topic}", last.source.topic, last, now, went_on=False)


def _trouble(what: str, topic: str, last: Receipt, now: Present, *, went_on: bool) -> str | None:
    moved = last.source_cluster_id and now.source_cluster_id and last.source_cluster_id != now.source_cluster_id
    if moved and not went_on:
        return (
            f"offsets of {what} are not translated, because the source alias {last.flow.source} now leads to cluster "
            f"{now.source_cluster_id}, and what is copied came from {last.source_cluster_id}: do what a run's "
            "refusal cluster-changed says"
        )
    if _differ(last.source_topic_id, now.source_topic_id) and not went_on:
        return (
            f"offsets of {what} are not translated, because source topic {topic} was created again since it was copied "
            f"(topic id {last.source_topic_id}, now {now.source_topic_id}): do what a run's refusal topic-recreated "
            "says"
        )
    if _differ(last.target_topic_id, now.target_topic_id):
        return (
            f"offsets of {what} are not translated, because target topic {last.target.topic} was created again since "
            f"it was written (topic id {last.target_topic_id}, now {now.target_topic_id}): do what a run's refusal "
            "target-changed says"
        )
    wrote = last.target_next or 0
    if now.target_end is not None and now.target_end < wrote:
        return (
            f"offsets of {what} are not translated, because target {last.target} ends at offset {now.target_end} and "
            f"was written up to {wrote}: it lost records, do what a run's refusal target-changed says"
        )
    if now.target_cut is not None and now.target_cut < wrote:
        return (
            f"offsets of {what} are not translated: target {last.target} was written up to {wrote}, "
            f"but its log was since truncated to {now.target_cut} (leader epoch {last.target_epoch} ends there), and "
            "has other records there: it lost records, do what a run's refusal target-changed says"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A map leads to records that the source has lost, from source offset `at` on. `why` is a sentence."""

    at: int
    why: str


def map_cut(last: Receipt, gaps: Sequence[Gap], at: int) -> Cut | None:
    """Return where a partition's map ends, because the source log was cut `at` an offset before the end of `last`.

    `last` is the partition's last receipt. None when a later run has decided how to continue: then the gaps leave
    nothing in the map from there on.
    """
    later = (gap.void_from for gap in gaps if gap.generation > last.generation)
    if any(void_from is not None and void_from <= at for void_from in later):
        return None
    return Cut(at=at, why=_cut_sentence(last.source, at, last.end))


def dealt_cut(place: TopicPartition, reached: int, at: int) -> Cut:
    """Return where the map of a source partition of a repartitioned topic ends. `reached` is how far it was copied."""
    return Cut(at=at, why=_cut_sentence(place, at, reached))


def _cut_sentence(place: TopicPartition, at: int, copied: int) -> str:
    return (
        f"offsets of {place} from {at} on are not translated: it was copied up to {copied}, but its log was "
        "truncated there since (unclean leader election?): do what a run's refusal source-truncated says"
    )


def _differ(then: str, now: str) -> bool:
    return bool(then and now and then != now)
