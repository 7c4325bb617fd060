"""What groups have committed at the source, translated by the offset maps of what is copied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ferry.decide.groups.offset_map import Translated
from ferry.decide.groups.which import GroupRules
from ferry.model import Checkpoint, CommittedOffset, Found, TopicPartition


class Maps(Protocol):
    """The offset map of a partition (`ferry.run.groups.offset_maps.PartitionMap`)."""

    @property
    def target(self) -> TopicPartition:
        """Its copy."""

    def trouble_at(self, offset: int) -> str | None:
        """Why it does not lead on from an offset; None when it does."""

    def translate(self, offset: int) -> Translated:
        """As OffsetMap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedGroups:
    """The checkpoints of each group in copied topics; and its partitions of which nothing is copied yet.

    `troubled` are the target partitions that no offset may be given for, as their maps do not hold, and why.
    """

    checkpoints: dict[str, list[Checkpoint]]
    uncopied: dict[str, list[TopicPartition]]
    committed: Mapping[str, Collection[TopicPartition]] = field(default_factory=dict)
    """All partitions that a group has an offset of at the source, also those that the flow does not copy (any more)."""
    denied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Source topics that Ferry wrote offsets of and may not see any more: whether the group has one is not known."""
    troubled: dict[str, dict[TopicPartition, str]] = field(default_factory=dict)
    merged: dict[str, set[str]] = field(default_factory=dict)
    """Source topics that a group has offsets of, and whose copies other flows write, too (ADR 9)."""
    dealt: dict[str, set[str]] = field(default_factory=dict)
    """The same of topics whose records are dealt to other partitions (ADR 39)."""

    def troubles(self) -> list[str]:
        """Each group and partition whose map does not hold, as a sentence."""
        return [f"group {group}: {why}" for group, places in self.troubled.items() for why in places.values()]


_NONE_DENIED: Mapping[str, frozenset[str]] = {}


def translated(
    rules: GroupRules,
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    maps: Mapping[TopicPartition, Maps],
    denied: Mapping[str, frozenset[str]] = _NONE_DENIED,
) -> TranslatedGroups:
    """Translate what groups have committed in topics that the flow copies; of other topics nothing is said.

    `denied` are topics of which `offsets` has nothing, as the login may not see them.
    """
    checkpoints: dict[str, list[Checkpoint]] = {}
    uncopied: dict[str, list[TopicPartition]] = {}
    troubled: dict[str, dict[TopicPartition, str]] = {}
    merged: dict[str, set[str]] = {}
    dealt: dict[str, set[str]] = {}
    for group, committed in offsets.items():
        found: list[Checkpoint] = []
        for source, at in committed.items():
            merges = rules.merges(source.topic)
            if merges or rules.deals(source.topic):
                if rules.takes_topic(source.topic):
                    (merged if merges else dealt).setdefault(group, set()).add(source.topic)
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
        if found:
            checkpoints[group] = found
    return TranslatedGroups(
        checkpoints=checkpoints,
        uncopied=uncopied,
        committed=offsets,
        denied=denied,
        troubled=troubled,
        merged=merged,
        dealt=dealt,
    )


_FOUND = {found.value: found for found in Found}
