"""Guards: before a slice is planned, the clusters' present state is compared with the last receipt.

They fail closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ferry.messages.catalogue import sentence
from ferry.messages.refusals import open_facts, refused
from ferry.model import Position, Receipt, Refusal, Sentence, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.rules.facts import Facts, OtherFacts, SourceFacts, SourceTopic, TargetFacts, TargetTopic


def leaderless_refusal(topic: SourceTopic, number: int) -> Refusal:
    """Return the refusal of a source partition without a leader, or whose leader did not answer."""
    found = topic.unserved.get(number)
    if found is None:
        return refused("source.no-leader", topic.name, number)
    return refused("source.unserved", topic.name, number, kind=found.kind, why=found.why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """What on the clusters does not fit the last receipt: a refusal, and what a policy may do instead (ADR 18).

    - `restart`: the source offset at which the lane continues after a restart.
    - `lost`: the source offsets that are skipped if the lane continues where it is.
    - `void_from`: the source offset from which earlier receipts are no longer valid; None: all are.
    - `target_next`: only where the target changed, the offset after which the lane continues there; None: none.
    """

    refusal: Refusal
    restart: int
    lost: tuple[int, int]
    void_from: int | None = None
    target_next: int | None = None


def source_trouble(source: SourceFacts, topic: SourceTopic, number: int, last: Receipt, stands: int) -> Mismatch | None:
    """Return what does not fit: another cluster, a topic created again, a truncated log; None if the source still fits.

    `stands` is the offset that the lane has reached: the end of that receipt, or of a gap that an operator passed by
    hand.
    """
    part = topic.partitions[number]

    def mismatch(code: str, restart: int, void_from: int, **of: Any) -> Mismatch:
        refusal = refused(code, topic.name, number, **of)
        return Mismatch(refusal=refusal, restart=restart, lost=(restart, stands), void_from=void_from)

    moved = cluster_facts(source, last)
    if moved is not None:
        return mismatch("source.cluster-changed", part.log_start, 0, **moved)
    if topic.topic_id and last.source_topic_id and topic.topic_id != last.source_topic_id:
        ids = {"then": last.source_topic_id, "now": topic.topic_id}
        return mismatch("source.recreated", part.log_start, 0, end=last.end, **ids)
    if part.diverged is not None and part.diverged < last.end:
        cut, epoch = part.diverged, _shown(last.source_epoch)
        return mismatch("source.diverged", cut, cut, end=last.end, cut=cut, epoch=epoch)
    if part.log_end < stands:  # a lane that read uncommitted records may have passed the last stable offset
        return mismatch("source.shorter", part.log_end, part.log_end, log_end=part.log_end, end=stands)
    return None


def retention_trouble(topic: SourceTopic, number: int, start: int) -> Mismatch | None:
    """Return the loss of records from `start` on that the source has deleted; None when it still has them.

    The lane would continue at `start`.
    """
    part = topic.partitions[number]
    if part.log_start <= start:
        return None
    last = part.log_start - 1
    refusal = (
        refused("source.retention-passed.one", topic.name, number, log_start=part.log_start, start=start)
        if last == start
        else refused("source.retention-passed", topic.name, number, log_start=part.log_start, start=start, last=last)
    )
    return Mismatch(refusal=refusal, restart=part.log_start, lost=(start, part.log_start))


def target_trouble(
    facts: TargetFacts, topic: SourceTopic, number: int, target: TargetTopic | None, last: Receipt, start: int
) -> Mismatch | None:
    """Return what does not fit: the target topic is gone, created again or truncated; None if it still has the data.

    The lane would continue at the source offset `start`.
    """
    log_start = topic.partitions[number].log_start
    kept, target_next = 0, None
    if target is None:
        refusal = refused("target.gone", topic.name, number, target=last.target.topic, end=last.end)
    elif last.target_topic_id and target.topic_id and last.target_topic_id != target.topic_id:
        refusal = refused("target.recreated", topic.name, number, target=target.name)
    elif (end := target.ends.get(number, 0)) < (last.target_next or 0) or last.target in facts.cut:
        target_next = min(end, facts.cut.get(last.target, end))
        kept = facts.kept.get(last.target, 0)
        refusal = _shorter(topic, number, last, end, target_next)
    else:
        return None
    restart = max(log_start, min(start, kept))
    return Mismatch(refusal=refusal, restart=restart, lost=(restart, start), void_from=kept, target_next=target_next)


def _shorter(topic: SourceTopic, number: int, last: Receipt, end: int, cut: int) -> Refusal:
    """Return the refusal of a target partition that lost records: it ends before them, or was cut and filled again."""
    place, wrote = str(last.target), last.target_next or 0
    if end < wrote:
        return refused("target.shorter", topic.name, number, place=place, log_end=end, end=wrote)
    return refused("target.cut", topic.name, number, place=place, end=wrote, cut=cut, epoch=_shown(last.target_epoch))


def _shown(epoch: int | None) -> int:
    """Return a leader epoch as a fact, as plans in the ledger have it; -1: it is not known."""
    return -1 if epoch is None else epoch


def foreign_trouble(
    others: OtherFacts, topic: SourceTopic, number: int, last: Receipt, start: int, *, behind: int | None
) -> Mismatch | None:
    """Return the trouble of foreign records after ours at the target, or of an open foreign transaction; None without.

    The lane would continue at the source offset `start`, after the target offset `behind` (0, or None: it has no
    records before that offset).
    """
    offset, transaction = others.foreign.get(last.target), others.open_transactions.get(last.target)
    place = str(last.target)
    if offset is not None and behind:
        refusal = refused("foreign.record.behind", topic.name, number, place=place, offset=offset, ours=behind - 1)
    elif offset is not None:
        refusal = refused("foreign.record", topic.name, number, place=place, offset=offset)
    elif transaction is not None:
        refusal = _open(topic, number, last.target, transaction)
    else:
        return None
    return Mismatch(refusal=refusal, restart=start, lost=(start, start))


def _open(topic: SourceTopic, number: int, place: TopicPartition, transaction: OpenTransaction) -> Refusal:
    return refused("foreign.open", topic.name, number, **open_facts(f"target {place}", place, transaction))


def occupied_refusal(others: OtherFacts, topic: SourceTopic, number: int, target: TargetTopic) -> Refusal | None:
    """Return the refusal of a copy with records or an open transaction that no receipt accounts for; None without."""
    place = TopicPartition(topic=target.name, partition=number)
    offset, transaction = others.foreign.get(place), others.open_transactions.get(place)
    if offset is not None:
        return refused("foreign.occupied", topic.name, number, place=str(place), offset=offset)
    return None if transaction is None else _open(topic, number, place, transaction)


def unserved_refusal(topic: SourceTopic, number: int, target: TargetTopic | None) -> Refusal | None:
    """Return the refusal of a target partition that cannot be written now; None when it can, or is still to be created.

    It is not even tried: a transaction that touched a partition with too few replicas cannot end before they are back.
    Its markers wait for them, and all other partitions of the slot wait for it.
    """
    if target is None or number >= target.partitions:
        return None
    place = TopicPartition(topic=target.name, partition=number)
    if number not in target.ends:
        found = target.unserved.get(number)
        if found is None:
            return refused("target.no-leader", topic.name, number, place=str(place))
        return refused("target.unserved", topic.name, number, kind=found.kind, place=str(place), why=found.why)
    in_sync, replicas = target.replicas.get(number, (1, 1))
    needed = min(target.min_in_sync, replicas)  # as the broker counts (Partition.effectiveMinIsr)
    if in_sync >= needed:
        return None
    return refused("target.too-few-replicas", topic.name, number, place=str(place), in_sync=in_sync, needed=needed)


def cluster_facts(source: SourceFacts, last: Receipt) -> dict[str, Any] | None:
    """Return the facts of a source alias that now leads to another cluster; None if it does not."""
    then, now = last.source_cluster_id, source.cluster_id
    return {"alias": last.flow.source, "now": now, "then": then} if then and now and then != now else None


def cluster_sentence(facts: Facts, last: Receipt) -> str | None:
    """Return why an alias leads to another cluster than the receipt's, at the source or the target; else None."""
    moved = cluster_facts(facts.source, last)
    return target_cluster_sentence(facts.target, last) if moved is None else sentence("source.cluster-changed", **moved)


def target_cluster_sentence(target: TargetFacts, last: Receipt) -> str | None:
    """Return why nothing in the ledger holds for the target, because it came from another cluster; else None."""
    then, now = last.target_cluster_id, target.cluster_id
    if not then or not now or then == now:
        return None
    return sentence("target.cluster-changed", alias=last.flow.target, now=now, then=then)


def position_note(last: Receipt, position: Position | None) -> Sentence | None:
    """Return a note if the position group disagrees with the ledger; the ledger decides in any case."""
    wanted = (last.target_next or 0, last.end)
    if position is None:
        return sentence("position.missing", place=str(last.target), end=last.end)
    if (position.target_next, position.source_next) != wanted:
        return sentence(
            "position.moved", place=str(last.target), found=position.target_next, known=wanted[0], end=last.end
        )
    return None
