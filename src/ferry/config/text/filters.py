"""Which topics (or groups) a flow takes: MirrorMaker 2's include and exclude lists.

Source: `DefaultTopicFilter` and `MirrorUtils.compilePatternList` of Kafka 4.3.0. The items of a list are joined with
`|` into one regular expression, which must match the whole name; an empty list matches nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ferry.config.text.regex import compile_java
from ferry.errors import BadInput
from ferry.model import Flow, scratch_lane
from ferry.policy import (
    DefaultReplicationPolicy,
    ReplicationPolicy,
    RoutedPolicy,
    copies_of,
    is_ferry_internal,
    is_heartbeats_topic,
    would_loop,
)

TOPICS_DEFAULT = (".*",)
TOPICS_EXCLUDE_DEFAULT = (r"mm2.*\.internal", r".*\.replica", "__.*")

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
"""Characters of a topic name (Kafka's `Topic.LEGAL_CHARS`): an item that has no other characters means a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternList:
    """A list of Java regular expressions of which one must match the whole of a name."""

    items: tuple[str, ...]
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the list. Raises regex.NotExpressible when Java or Python cannot read it."""
        object.__setattr__(self, "_pattern", compile_java("|".join(self.items)) if self.items else None)

    def matches(self, name: str) -> bool:
        """Return whether one item matches the whole of `name`."""
        return self._pattern is not None and self._pattern.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFilter:
    """`topics` without `topics.exclude`."""

    include: PatternList
    exclude: PatternList

    def takes(self, name: str) -> bool:
        """Return whether `name` is included and not excluded."""
        return self.include.matches(name) and not self.exclude.matches(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """`groups` without `groups.exclude`."""

    include: PatternList
    exclude: PatternList

    def takes(self, group: str) -> bool:
        """Return whether the consumer group `group` is included and not excluded."""
        return self.why_not(group) is None

    def why_not(self, group: str) -> str | None:
        """Return why the filter leaves `group` out, as half a sentence; None when it takes it."""
        if not self.include.matches(group):
            return "groups does not include it"
        return "groups.exclude leaves it out" if self.exclude.matches(group) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSelection:
    """Everything that decides whether a flow copies a topic: filter, policy, internal names, loops, heartbeats."""

    flow: Flow
    filter: TopicFilter
    policy: ReplicationPolicy
    heartbeats: bool = True
    """Whether heartbeat topics are copied even when the filter excludes them (`heartbeats.replication.enabled`)."""
    others: tuple[TopicSelection, ...] = field(default=(), repr=False, compare=False)
    """The other enabled flows of the file, where names do not show where a topic came from."""
    there: Transforming | None = field(default=None, repr=False, compare=False)
    """What the opposite flow transforms."""

    def why_not(self, topic: str) -> str | None:
        """Return why the flow leaves `topic` out, as half a sentence; None when it copies it."""
        if is_ferry_internal(topic):
            return "it is a ledger of Ferry"
        lane = scratch_lane(topic)
        if lane is not None:
            return f"it is a scratch topic of lane {lane}"
        if self.is_internal(topic):
            return "it is an internal topic of Kafka or MirrorMaker"
        if would_loop(self.policy, topic, self.flow.target):
            return f"it came from {self.flow.target}, and would go round in a loop"
        if self.filter.takes(topic):
            return self.transformed_there(topic)
        left_out = (
            "topics.exclude leaves it out" if self.filter.include.matches(topic) else "topics does not include it"
        )
        return None if self.heartbeats and is_heartbeats_topic(self.policy, topic) else left_out

    def is_internal(self, topic: str) -> bool:
        """Return whether `topic` serves Kafka or MirrorMaker 2.

        That includes names that the policy gives but does not recognise.
        """
        target = self.flow.target
        written = self.policy.checkpoints_topic(target), self.policy.offset_syncs_topic(target)
        return self.policy.is_internal_topic(topic) or topic in written

    def takes(self, topic: str) -> bool:
        """Return whether the flow copies `topic`."""
        return self.why_not(topic) is None

    def transformed_there(self, topic: str) -> str | None:
        """Return why `topic` does not go back to where it came from, as half a sentence; None: it may go back.

        It does not go back when a transform of the opposite flow made it, because it is not what came from there.
        """
        back = self.there
        if back is None or any(one.matches(topic) for one in back.but):
            return None
        try:
            name = back.renamer_to(topic)
            if name is None:
                origin = self.policy.format_remote_topic(self.flow.source, topic)
                if back.policy.format_remote_topic(back.flow.source, origin) != topic:
                    return None
                name = next((name for name, topics in back.topics if topics.matches(origin)), None)
        except BadInput:  # a policy of the user's own does not know what to do with this name
            return None
        if name is None:
            return None
        return (
            f"{back.flow} makes it by ferry.transform.{name}: what that leaves out or changes is nowhere on "
            f"{self.flow.source}, so it does not go back"
        )

    def way_back(self, topic: str) -> tuple[Flow, ...]:
        """Return the flows that would bring a copy of `topic` back to be copied by this flow again.

        Empty when none do.
        """
        copies = copies_of(self.policy, self.flow.source, topic)
        ways: dict[tuple[str, str], tuple[Flow, ...]] = {(self.flow.target, name): () for name in copies}
        waiting = deque(ways)
        while waiting:
            place = cluster, name = waiting.popleft()
            for other in self.others:
                if other.flow.source != cluster or other.flow in ways[place] or not other.takes(name):
                    continue
                way = (*ways[place], other.flow)
                for arrived in ((other.flow.target, copy) for copy in copies_of(other.policy, cluster, name)):
                    if arrived[0] == self.flow.source and self.takes(arrived[1]):
                        return way
                    if arrived not in ways:
                        ways[arrived] = way
                        waiting.append(arrived)
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transforming:
    """A flow's transforms, by name, with the source topics of each."""

    flow: Flow
    policy: ReplicationPolicy
    topics: tuple[tuple[str, PatternList], ...]
    but: tuple[PatternList, ...] = ()
    """Topics that the asking flow transforms itself: the two wishes have equal rank."""

    def renamer_to(self, topic: str) -> str | None:
        """Return the transform that gives a copy the name `topic`.

        Only transforms count that name their source topics one by one. For a regular expression it cannot be known:
        there the receipts show what came from there.
        """
        if not isinstance(self.policy, RoutedPolicy):
            return None
        for name, topics in self.topics:
            for item in topics.items:
                if LEGAL_NAME.fullmatch(item) and topic in copies_of(self.policy, self.flow.source, item):
                    return name
        return None


def with_others(selections: Sequence[TopicSelection]) -> tuple[TopicSelection, ...]:
    """Return the selections, each with the others; without them where names show every loop by themselves."""
    separators = {one.policy.separator for one in selections if isinstance(one.policy, DefaultReplicationPolicy)}
    aliases = {alias for one in selections for alias in (one.flow.source, one.flow.target)}
    if len(separators) == 1 and all(
        isinstance(one.policy, DefaultReplicationPolicy) and all(map(one.policy.shows, aliases)) for one in selections
    ):
        return tuple(selections)
    return tuple(
        replace(one, others=tuple(other for other in selections if other.flow != one.flow)) for one in selections
    )
