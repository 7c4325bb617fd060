"""What is handed back to MirrorMaker 2: the lane's positions as those of its source connector. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ferry.config.flow.transforms import CONNECT
from ferry.features.migrate.rules.connect_offsets import ConnectorOffsets, format_key, format_value
from ferry.model import Pause, Record, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.progress import next_offset

HANDED_BACK = "handed back to MirrorMaker 2"
"""The beginning of the reason for which a hand-back pauses the flow."""


def pause_with(held: Pause | None, who: str, run: str, at_ms: int, *, written: bool) -> Pause:
    """Return the flow's pause with the hand-back `run`, until it is adopted or resumed.

    Before the positions are `written`, it says so. An operator's pause that is in force stays in it, with who made it;
    if it was to end at a time, it does not.
    """
    reason = f"{HANDED_BACK} by {run}"
    if not written:
        reason += ", which has not written all positions yet: if it ended, hand back again before MirrorMaker 2 starts"
    before = None if held is None else pause_without(held)
    if before is None:
        return Pause(topic="", who=who, why=reason, since_ms=at_ms)
    return replace(before, why=f"{before.why}; {reason}", until_ms=0)


def pause_without(held: Pause) -> Pause | None:
    """Return what is left of a pause when MirrorMaker 2 has been adopted again; None if a hand-back alone made it."""
    before, handed, _ = held.why.rpartition(HANDED_BACK)
    if not handed:
        return held
    return replace(held, why=before.removesuffix("; ")) if before else None


class Handed(StrEnum):
    """What happens to one partition's position."""

    WRITE = "write"
    UNCHANGED = "unchanged"
    """MirrorMaker 2 has this position already."""
    NOTHING = "nothing"
    """Nothing was copied: MirrorMaker 2 begins it at its beginning, as the lane would."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedRow:
    """One source partition: the lane's position, and MirrorMaker 2's own position (-1: none)."""

    source: TopicPartition
    verdict: Handed
    position: int
    was: int
    why: str = ""


def hand_back_rows(rules: Rules, facts: Facts, theirs: ConnectorOffsets) -> list[HandedRow]:
    """Return all partitions that the flow copies, with their positions.

    A partition is refused if MirrorMaker 2's own position is higher: it has copied records that the lane has not.
    """
    return [
        _row(rules, facts, TopicPartition(topic=name, partition=number), theirs)
        for name in sorted(facts.source.topics)
        if rules.only is None or name in rules.only
        for number in sorted({*facts.source.topics[name].partitions, *facts.source.topics[name].leaderless})
    ]


def _row(rules: Rules, facts: Facts, source: TopicPartition, theirs: ConnectorOffsets) -> HandedRow:
    was = theirs.next_offsets.get(source, -1)
    why = _transformed(rules, source.topic)
    if why is not None:
        return HandedRow(source=source, verdict=Handed.REFUSED, position=-1, was=was, why=why)
    part = facts.source.topics[source.topic].partitions.get(source.partition)
    target = TopicPartition(
        topic=rules.policy.format_remote_topic(rules.flow.source, source.topic), partition=source.partition
    )
    last = facts.lane.receipts.get(target)
    if part is None and last is None:
        why = f"{source} has no leader, and the lane has not copied it: bring its brokers back"
        return HandedRow(source=source, verdict=Handed.REFUSED, position=-1, was=was, why=why)
    stands = next_offset(facts, source, part, last) if part is not None else (last.end if last is not None else 0)
    if part is not None and last is None and stands <= part.log_start:
        return HandedRow(source=source, verdict=Handed.NOTHING, position=stands, was=was)
    if was > stands:
        why = (
            f"MirrorMaker 2 is at offset {was} of {source}, beyond the lane, which is at {stands}: it has copied "
            "records since, so adopt it first"
        )
        return HandedRow(source=source, verdict=Handed.REFUSED, position=stands, was=was, why=why)
    if stands == 0:
        return HandedRow(source=source, verdict=Handed.NOTHING, position=0, was=was)
    verdict = Handed.UNCHANGED if was == stands else Handed.WRITE
    return HandedRow(source=source, verdict=verdict, position=stands, was=was)


def _transformed(rules: Rules, topic: str) -> str | None:
    """Return why MirrorMaker 2 must not get a topic: it would continue without the file's transform; None if it may."""
    transform = rules.transform_of(topic)
    if transform is None or (transform.name == CONNECT and transform.partitions is None):
        return None  # Connect's own transforms are in its file, too
    return (
        f"ferry.transform.{transform.name} makes the copy of {topic}, and MirrorMaker 2 would continue without it: "
        "choose other topics with --topic, or write the same as transforms of Connect first"
    )


def position_records(rows: list[HandedRow], theirs: ConnectorOffsets, connector: str, cluster: str) -> list[Record]:
    """Return the records that Kafka Connect reads when MirrorMaker 2 starts, for the rows to be written.

    A key that exists keeps its bytes: Connect and compaction take the last record of each key.
    """
    return [
        Record(
            key=theirs.keys.get(row.source, format_key(connector, cluster, row.source)),
            value=format_value(row.position),
        )
        for row in rows
        if row.verdict is Handed.WRITE
    ]
