"""Consumer groups: what kind they are, who is in them, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ferry.model.flow import TopicPartition


class GroupKind(StrEnum):
    """Kafka's `GroupType`, in the brokers' words; `unknown` is what brokers before 3.8 do not say."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


NO_STATE = ""
"""The state of a group on brokers before 2.6, which do not say it."""

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
        """Whether it has members, as far as its state tells; where it does not, the broker refuses what it must."""
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
    """A group with its members; none when nobody is in it."""

    name: str
    kind: GroupKind
    state: str
    members: tuple[Member, ...]

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        """Who reads each partition."""
        return {place: member for member in self.members for place in member.owns}


class CommittedOffset(NamedTuple):
    """Where a group stands on a partition: the next offset to read, and what its consumer noted with it.

    A tuple, as there are many: one for each partition of each group.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """Of the last record read, as the consumer said; -1: it did not."""
