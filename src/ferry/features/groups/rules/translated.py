"""The offsets that groups have committed at the source, translated by the offset maps of what is copied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ferry.features.groups.rules.offset_map import Translated
from ferry.features.groups.rules.repartition_map import DealtMap, GoesOn, read_of
from ferry.features.groups.rules.selection import GroupRules
from ferry.model import Checkpoint, CommittedOffset, Found, Offsets, TopicPartition


class Maps(Protocol):
    """The offset map of a partition (`ferry.features.groups.acts.offset_maps.PartitionMap`)."""

    @property
    def target(self) -> TopicPartition:
        """Return the partition of the copy."""

    def trouble_at(self, offset: int) -> str | None:
        """Return why the map does not translate an offset; None when it does."""

    def translate(self, offset: int) -> Translated:
        """Return where a reader of `offset` continues on the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedGroups:
    """The checkpoints of each group in copied topics, and its partitions of which nothing is copied yet.

    `troubled` are the target partitions for which no offset may be given, because their maps are not valid, each with
    the reason.
    """

    checkpoints: dict[str, list[Checkpoint]]
    uncopied: dict[str, list[TopicPartition]]
    committed: Mapping[str, Collection[TopicPartition]] = field(default_factory=dict)
    """All partitions of which a group has an offset at the source, also those that the flow does not copy, or not any
    more."""
    denied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Source topics that Ferry wrote offsets of and may not see any more, by group: whether the group has one is not
    known."""
    troubled: dict[str, dict[TopicPartition, str]] = field(default_factory=dict)
    merged: dict[str, set[str]] = field(default_factory=dict)
    """Source topics that a group has offsets of, and whose copies other flows write, too (ADR 9)."""

    def troubles(self) -> list[str]:
        """Return why maps are not valid, one sentence for each group and reason."""
        return [
            f"group {group}: {why}"
            for group, places in self.troubled.items()
            for why in dict.fromkeys(places.values())  # of a repartitioned topic there is one reason for all partitions
        ]


_NONE_DENIED: Mapping[str, frozenset[str]] = {}
_NONE_DEALT: Mapping[str, DealtMap] = {}


def translated(
    rules: GroupRules,
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    maps: Mapping[TopicPartition, Maps],
    denied: Mapping[str, frozenset[str]] = _NONE_DENIED,
    repartitioned: Mapping[str, DealtMap] = _NONE_DEALT,
) -> TranslatedGroups:
    """Translate what groups have committed in topics that the flow copies. Other topics are ignored.

    `denied` are topics of which `offsets` has nothing, because the login may not see them. `repartitioned` are the maps
    of repartitioned source topics.
    """
    checkpoints: dict[str, list[Checkpoint]] = {}
    uncopied: dict[str, list[TopicPartition]] = {}
    troubled: dict[str, dict[TopicPartition, str]] = {}
    merged: dict[str, set[str]] = {}
    for group, committed in offsets.items():
        found: list[Checkpoint] = []
        for source, at in committed.items():
            if rules.merges(source.topic):
                if rules.takes_topic(source.topic):
                    merged.setdefault(group, set()).add(source.topic)
                continue
            if source.topic in repartitioned:
                continue
            made = maps.get(source)
            if made is None:
                if rules.takes_topic(source.topic):
                    uncopied.setdefault(group, []).append(source)
                continue
            why = made.trouble_at(at.offset)
            if why is not None:
                troubled.setdefault(group, {})[made.target] = why
                continue
            outcome = made.translate(at.offset)
            found.append(
                Checkpoint(
                    group=group,
                    source=source,
                    source_offset=at.offset,
                    target=made.target,
                    target_offset=outcome.offset,
                    outcome=_FOUND[outcome.word],
                    metadata=at.metadata,
                )
            )
        for topic, read in read_of({place: at.offset for place, at in committed.items()}, repartitioned).items():
            here, against = dealt_checkpoints(group, topic, read, repartitioned[topic])
            found += here
            troubled.setdefault(group, {}).update(against)
        if found:
            checkpoints[group] = found
    return TranslatedGroups(
        checkpoints=checkpoints,
        uncopied=uncopied,
        committed=offsets,
        denied=denied,
        troubled={group: places for group, places in troubled.items() if places},
        merged=merged,
    )


def dealt_checkpoints(
    group: str, topic: str, read: Offsets, led: DealtMap
) -> tuple[list[Checkpoint], dict[TopicPartition, str]]:
    """Return where a group continues in the copy of a repartitioned topic, by target partition.

    The second value holds the target partitions for which no offset can be given, with the reason.
    """
    why = led.trouble_at(read)
    if why is not None:
        return [], dict.fromkeys([*led.places, *led.silent], why)
    ahead = led.is_ahead(read)
    found = [
        Checkpoint(
            group=group,
            source=TopicPartition(topic, place.partition),
            source_offset=sum(read),
            target=place,
            target_offset=at.offset,
            outcome=_found_dealt(at, ahead),
            read=read,
            again=at.again,
        )
        for place, at in led.goes_on(read).items()
    ]
    silent = {
        place: f"it is not known where {place} begins and ends: its leader does not answer" for place in led.silent
    }
    return found, silent


def _found_dealt(at: GoesOn, ahead: bool) -> Found:
    if at.again is None:
        return Found.BEFORE
    return Found.AGAIN if at.again else Found.AHEAD if ahead else Found.EXACT


_FOUND = {found.value: found for found in Found}
