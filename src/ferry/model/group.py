"""Consumer groups: their kinds, their members, and their committed offsets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ferry.model.flow import TopicPartition


class GroupKind(StrEnum):
    """Kafka's `GroupType`, in the brokers' words; `unknown` on brokers before 3.8, which do not report it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


NO_STATE = ""
"""The state of a group on brokers before 2.6, which do not report it."""

_WITHOUT_MEMBERS = frozenset({"Empty", "Dead", NO_STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """A group as its coordinator lists it. `state` is Kafka's `GroupState`: Stable, Empty, Dead, Assigning, ..."""

    name: str
    kind: GroupKind
    state: str
    protocol_type: str
    """`consumer`, `connect`, ...; empty where offsets were only ever committed from outside."""

    @property
    def is_active(self) -> bool:
        """Whether it has members, by its state. Where the state is not known, the broker refuses what it must."""
        return self.state not in _WITHOUT_MEMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group, and the partitions that it reads."""

    member_id: str
    client_id: str
    host: str
    owns: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """A group with its members, if it has any."""

    name: str
    kind: GroupKind
    state: str
    members: tuple[Member, ...]

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        """The member that reads each partition."""
        return {place: member for member in self.members for place in member.owns}


class CommittedOffset(NamedTuple):
    """The committed offset of a group on a partition: the next offset to read, and its metadata.

    It is a tuple, because there are many: one for each partition of each group.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """The leader epoch of the last record read, as the consumer reported it; -1: it did not."""
