"""Guards: before a slice is planned, what the clusters show now is held against the last receipt. Fail closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ferry.model import Position, Receipt, Refusal, RefusalKind, TopicPartition, UnitReceipt
from ferry.model.observed import OpenTransaction, Unserved, undecided_sentence
from ferry.plan.rules.facts import Facts, SourceTopic, TargetTopic

ANEW = "leave the topic out here (topics.exclude), and copy it anew under another alias of the source cluster"
"""The way out when what was copied and what is there now do not belong together: nothing is mixed or overwritten."""


def leaderless_refusal(topic: SourceTopic, number: int) -> Refusal:
    """The refusal of a source partition that nobody serves."""
    return _unled(topic, number, f"source {topic.name}-{number}", topic.unserved.get(number), "copies it")


def _unled(topic: SourceTopic, number: int, place: str, found: Unserved | None, later: str) -> Refusal:
    """No leader answers for `place`, for the reason that was `found`; `later` is what the next run does there."""
    if found is None:
        kind, why = RefusalKind.NO_LEADER, "has no leader: bring its brokers back, the next run copies it"
    else:
        kind, why = found.kind, f"is left out, {found.why}; the next run {later}"
    return Refusal(topic=topic.name, partition=number, kind=kind, message=f"{place} {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What the clusters show now does not fit the last receipt: a refusal, and what a policy may do instead (ADR 18).

    `restart`: where the lane goes on; `lost` are the source offsets that it leaves behind when it goes on where it
    stands. From the source offset `void_from` on (-1: none) earlier receipts do not hold any more. `target_next` is
    what the lane goes on behind at the target; None: as the last receipt says.
    """

    refusal: Refusal
    restart: int
    lost: tuple[int, int]
    void_from: int = -1
    target_next: int | None = None

    @classmethod
    def of(
        cls,
        topic: SourceTopic,
        number: int,
        kind: RefusalKind,
        message: str,
        *,
        restart: int,
        lost: tuple[int, int],
        void_from: int = -1,
        target_next: int | None = None,
    ) -> Self:
        """Of one partition of a source topic."""
        refusal = Refusal(topic=topic.name, partition=number, kind=kind, message=message)
        return cls(refusal=refusal, restart=restart, lost=lost, void_from=void_from, target_next=target_next)


def source_trouble(facts: Facts, topic: SourceTopic, number: int, last: Receipt, stands: int) -> Trouble | None:
    """Another cluster, topic created again, log truncated: None when the source still continues the last receipt.

    The lane `stands` behind that receipt, or behind what somebody passed by hand.
    """
    part = topic.partitions[number]

    def trouble(kind: RefusalKind, message: str, restart: int, void_from: int) -> Trouble:
        lost = restart, stands
        return Trouble.of(topic, number, kind, message, restart=restart, lost=lost, void_from=void_from)

    moved = cluster_refusal(facts, last)
    if moved is not None:
        return trouble(RefusalKind.CLUSTER_CHANGED, moved, part.log_start, 0)
    if topic.topic_id and last.source_topic_id and topic.topic_id != last.source_topic_id:
        return trouble(
            RefusalKind.TOPIC_RECREATED,
            f"source topic {topic.name} was deleted and created again after {last.end} offsets of partition {number} "
            f"were copied (topic id {last.source_topic_id}, now {topic.topic_id}): {ANEW}; or copy it behind the old "
            "records with ferry.guard.topic.recreated = restart",
            part.log_start,
            0,
        )
    place = f"{topic.name}-{number}"
    remedy = (
        f"compare both sides, then {ANEW}; or copy the new records behind the old ones with "
        "ferry.guard.source.truncated = restart"
    )
    if part.diverged is not None and part.diverged < last.end:
        return trouble(
            RefusalKind.SOURCE_TRUNCATED,
            f"source {place} was copied up to offset {last.end}, but its log was truncated to {part.diverged} since "
            f"(leader epoch {last.source_epoch} ends there; unclean leader election?): {remedy}",
            part.diverged,
            part.diverged,
        )
    if part.log_end < stands:  # a lane that read uncommitted records may have passed the last stable offset
        return trouble(
            RefusalKind.SOURCE_TRUNCATED,
            f"source {place} ends at offset {part.log_end} but was copied up to {stands}: its log was truncated "
            f"(unclean leader election?); {remedy}",
            part.log_end,
            part.log_end,
        )
    return None


def retention_trouble(topic: SourceTopic, number: int, start: int) -> Trouble | None:
    """Records from `start` on, where the lane would go on, that the source has deleted; None when it has them."""
    part = topic.partitions[number]
    if part.log_start <= start:
        return None
    last = part.log_start - 1
    lost = f"record {start} was" if last == start else f"records {start} to {last} were"
    return Trouble.of(
        topic,
        number,
        RefusalKind.RETENTION_PASSED,
        f"source {topic.name}-{number} begins at offset {part.log_start}, {lost} deleted before being "
        f"copied: raise retention at the source, and go on there with ferry.guard.retention.passed = skip; or "
        f"{ANEW}",
        restart=part.log_start,
        lost=(start, part.log_start),
    )


def target_trouble(
    facts: Facts, topic: SourceTopic, number: int, target: TargetTopic | None, last: Receipt, start: int
) -> Trouble | None:
    """Target topic gone, created again or truncated since the last receipt: None when our data is still there.

    The lane would go on at `start`.
    """
    log_start = topic.partitions[number].log_start
    message = ""
    kept, target_next = 0, -1
    if target is None:
        message = f"target topic {last.target.topic} is gone although {last.end} source offsets were copied into it"
    elif last.target_topic_id and target.topic_id and last.target_topic_id != target.topic_id:
        message = f"target topic {target.name} was deleted and created again since the last receipt"
    elif (end := target.ends.get(number, 0)) < last.target_next or last.target in facts.cut:
        target_next = min(end, facts.cut.get(last.target, end))
        kept = facts.kept.get(last.target, 0)
        how = (
            f"ends at offset {end} but the last receipt wrote up to {last.target_next}"
            if end < last.target_next
            else f"was written up to {last.target_next} by the last receipt, but its log was cut to {target_next} "
            f"since (leader epoch {last.target_epoch} ends there; unclean leader election?), and others have filled it "
            "up again"
        )
        message = f"target {last.target} {how}: it lost records"
    if not message:
        return None
    restart = max(log_start, min(start, kept))
    return Trouble.of(
        topic,
        number,
        RefusalKind.TARGET_CHANGED,
        f"{message}: find out who did it, then {ANEW}; or copy again what it lost with "
        "ferry.guard.target.changed = restart",
        restart=restart,
        lost=(restart, start),
        void_from=kept,
        target_next=target_next,
    )


def foreign_trouble(
    facts: Facts, topic: SourceTopic, number: int, last: Receipt, start: int, *, behind: int
) -> Trouble | None:
    """Records of somebody else behind ours at the target, or a transaction that may become some; None: there are none.

    The lane would go on at `start`, `behind` this target offset (none of ours lie before it if it is below 1).
    """
    offset, transaction = facts.foreign.get(last.target), facts.undecided.get(last.target)
    if offset is not None:
        ours = f", behind our last record at {behind - 1}" if behind > 0 else ""
        message = (
            f"somebody else wrote to target {last.target}, at offset {offset}{ours}: find the writer and take its "
            f"right to write, then {ANEW}; or leave its records where they are with ferry.guard.foreign.writer = skip"
        )
    elif transaction is not None:
        message = _undecided(last.target, transaction)
    else:
        return None
    return Trouble.of(topic, number, RefusalKind.FOREIGN_WRITER, message, restart=start, lost=(start, start))


def _undecided(place: TopicPartition, transaction: OpenTransaction) -> str:
    return (
        f"{undecided_sentence(f'target {place}', place, transaction)}; or copy behind it, whatever comes of it, with "
        "ferry.guard.foreign.writer = skip"
    )


def occupied_refusal(facts: Facts, topic: SourceTopic, number: int, target: TargetTopic) -> Refusal | None:
    """Records in a copy that the ledger has no receipt of, or a transaction that may become some; None: it is empty."""
    place = TopicPartition(topic=target.name, partition=number)
    offset, transaction = facts.foreign.get(place), facts.undecided.get(place)
    if offset is not None:
        message = (
            f"target {place} already holds records, from offset {offset} on, of which the ledger has no receipt: "
            "when MirrorMaker copied them, take over from it (ferry adopt); when the ledger was lost, write it again "
            "from an export (ferry ledger rebuild), or delete the copy to have it copied anew; when somebody else "
            f"writes there, {ANEW}, or copy behind these records with ferry.guard.foreign.writer = skip"
        )
    elif transaction is not None:
        message = _undecided(place, transaction)
    else:
        return None
    return Refusal(topic=topic.name, partition=number, kind=RefusalKind.FOREIGN_WRITER, message=message)


def unserved_refusal(topic: SourceTopic, number: int, target: TargetTopic | None) -> Refusal | None:
    """The target partition cannot be written now: None when it can, or is still to be created.

    Not even tried, for a transaction that touched a partition with too few replicas cannot end before they are back:
    its markers wait for them, and all other partitions of the slot wait for it.
    """
    if target is None or number >= target.partitions:
        return None
    place = TopicPartition(topic=target.name, partition=number)
    if number not in target.ends:
        return _unled(topic, number, f"target {place}", target.unserved.get(number), "copies to it")
    in_sync, replicas = target.replicas.get(number, (1, 1))
    needed = min(target.min_in_sync, replicas)  # as the broker counts (Partition.effectiveMinIsr)
    if in_sync >= needed:
        return None
    return Refusal(
        topic=topic.name,
        partition=number,
        kind=RefusalKind.TOO_FEW_REPLICAS,
        message=f"target {place} has {in_sync} replicas in sync where min.insync.replicas asks for {needed}: bring its "
        "brokers back or ask for fewer, the next run copies it",
    )


def cluster_refusal(facts: Facts, last: Receipt | UnitReceipt) -> str | None:
    """The source alias now points at another cluster."""
    if last.source_cluster_id and facts.source_cluster_id and last.source_cluster_id != facts.source_cluster_id:
        return (
            f"the source alias {last.flow.source} now leads to cluster {facts.source_cluster_id}, the ledger was "
            f"written from {last.source_cluster_id}: correct the bootstrap servers, or use a new alias; or copy the "
            "other cluster's topics behind the old records with ferry.guard.cluster.changed = restart"
        )
    return None


def target_cluster_refusal(facts: Facts, last: Receipt | UnitReceipt) -> str | None:
    """The ledger came along from another cluster: nothing that it says of the target can be relied upon."""
    if last.target_cluster_id and facts.target_cluster_id and last.target_cluster_id != facts.target_cluster_id:
        return (
            f"the target alias {last.flow.target} now leads to cluster {facts.target_cluster_id}, whose ledger was "
            f"written on cluster {last.target_cluster_id}: correct the bootstrap servers; if the cluster is a copy of "
            "the other one, move the ledger topic away and use a new alias for the source"
        )
    return None


def position_note(last: Receipt, position: Position | None) -> str | None:
    """What to say when the position group disagrees with the ledger; the ledger decides in any case."""
    wanted = (max(last.target_next, 0), last.end)
    if position is None:
        return (
            f"position of {last.target} was missing (deleted or expired); the ledger's receipt up to {last.end} decides"
        )
    if (position.target_next, position.source_next) != wanted:
        return (
            f"position of {last.target} was {position.target_next} where the ledger says {wanted[0]} (somebody moved "
            f"it); the ledger's receipt up to {last.end} decides"
        )
    return None
