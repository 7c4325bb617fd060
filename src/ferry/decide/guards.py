"""Guards: before a slice is planned, what the clusters show now is held against the last receipt. Fail closed."""

from __future__ import annotations

from ferry.decide.facts import Facts, SourcePartition, SourceTopic, TargetTopic, Unserved
from ferry.model import Position, Receipt, Refusal, RefusalKind, TopicPartition

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


def source_refusal(topic: SourceTopic, number: int, part: SourcePartition, last: Receipt) -> Refusal | None:
    """Retention passed, log truncated, topic deleted and created again: None when the source still continues us."""

    def refusal(kind: RefusalKind, message: str) -> Refusal:
        return Refusal(topic=topic.name, partition=number, kind=kind, message=message)

    place = f"{topic.name}-{number}"
    if topic.topic_id and last.source_topic_id and topic.topic_id != last.source_topic_id:
        return refusal(
            RefusalKind.TOPIC_RECREATED,
            f"source topic {topic.name} was deleted and created again after {last.end} offsets of partition {number} "
            f"were copied (topic id {last.source_topic_id}, now {topic.topic_id}): {ANEW}",
        )
    if part.log_start > last.end:
        return refusal(
            RefusalKind.RETENTION_PASSED,
            f"source {place} begins at offset {part.log_start}, records {last.end} to {part.log_start - 1} were "
            f"deleted before they were copied: raise retention at the source, and {ANEW}; or go on behind them with "
            "ferry.guard.retention.passed = skip",
        )
    if part.end < last.end:
        return refusal(
            RefusalKind.SOURCE_TRUNCATED,
            f"source {place} ends at offset {part.end} but was copied up to {last.end}: its log was truncated "
            f"(unclean leader election?); compare both sides, then {ANEW}",
        )
    return None


def target_refusal(topic: SourceTopic, number: int, target: TargetTopic | None, last: Receipt) -> Refusal | None:
    """Target topic gone, created again or truncated since the last receipt: None when our data is still there."""
    message = ""
    if target is None:
        message = f"target topic {last.target.topic} is gone although {last.end} source offsets were copied into it"
    elif last.target_topic_id and target.topic_id and last.target_topic_id != target.topic_id:
        message = f"target topic {target.name} was deleted and created again since the last receipt"
    elif target.ends.get(number, 0) < last.target_next:
        message = (
            f"target {last.target} ends at offset {target.ends.get(number, 0)} but the last receipt wrote up to "
            f"{last.target_next}: it lost records"
        )
    if not message:
        return None
    return Refusal(
        topic=topic.name,
        partition=number,
        kind=RefusalKind.TARGET_CHANGED,
        message=f"{message}: find out who did it, then {ANEW}",
    )


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


def cluster_refusal(facts: Facts, last: Receipt) -> str | None:
    """The source alias now points at another cluster: nothing of this flow may be planned."""
    if last.source_cluster_id and facts.source_cluster_id and last.source_cluster_id != facts.source_cluster_id:
        return (
            f"the source alias {last.flow.source} now leads to cluster {facts.source_cluster_id}, the ledger was "
            f"written from {last.source_cluster_id}: correct the bootstrap servers, or use a new alias"
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
