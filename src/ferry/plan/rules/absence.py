"""Topics that a flow names and the source does not list: vanished topics, names that match nothing. Always reported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ferry.config.text.filters import LEGAL_NAME, PatternList
from ferry.messages.refusals import passed, refused
from ferry.model import Flow, Receipt, Refusal, Sentence
from ferry.plan.rules.facts import LaneFacts, SourceFacts, SourceTopic


def absent_topics(copied: Iterable[Receipt], listed: Collection[str], takes: Callable[[str], bool]) -> frozenset[str]:
    """Return source topics that the lane has copied and the flow still takes, but that the source does not list."""
    topics = {receipt.source.topic for receipt in copied}
    return frozenset(topic for topic in topics if topic not in listed and takes(topic))


def unmatched_names(include: PatternList, listed: Collection[str]) -> tuple[str, ...]:
    """Return the items of `topics` that are a name, not a pattern, and match no topic of the source."""
    names = [item for item in include.items if LEGAL_NAME.fullmatch(item)]
    return tuple(name for name in names if not any(map(PatternList(items=(name,)).matches, listed)))


def gone_refusal(lane: LaneFacts, flow: Flow, topic: str) -> Refusal:
    """Return the refusal of a topic that was copied before and that the source no longer lists."""
    copied = sum(last.source.topic == topic for last in lane.receipts.values())
    copied += sum(last.source.topic == topic for last in lane.units.values())
    return refused("source.gone", topic, partitions=copied, cluster=flow.source)


def gone_note(refusal: Refusal) -> Sentence:
    """Return the note that replaces the refusal of a topic that is gone, if the flow's guard is set to skip."""
    return passed("passed.left-out", refusal)


def hidden_refusals(source: SourceFacts, flow: Flow, only: Collection[str] | None) -> list[Refusal]:
    """Return the refusals of topics (narrowed to `only`) that the flow names and that its login may not see."""
    return [
        refused("source.hidden", topic, cluster=flow.source)
        for topic in sorted(source.hidden - source.absent)
        if only is None or topic in only
    ]


def lost_partitions(lasts: Iterable[Receipt], topic: SourceTopic) -> list[Receipt]:
    """Return the last receipts of a target topic whose source partitions no longer exist, by source partition.

    The source topic was then created again with fewer partitions.
    """
    there = {*topic.partitions, *topic.leaderless}
    return sorted(
        (last for last in lasts if last.source.topic == topic.name and last.source.partition not in there),
        key=lambda last: last.source,
    )


def lost_refusal(topic: SourceTopic, last: Receipt) -> Refusal:
    """Return the refusal of a partition that the source topic no longer has."""
    count = len(topic.partitions) + len(topic.leaderless)
    return refused("source.recreated.fewer", topic.name, last.source.partition, end=last.end, partitions=count)
