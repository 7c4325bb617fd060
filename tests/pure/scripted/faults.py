"""Requests to scripted brokers, and what becomes of them.

An error code before or after a request was carried out, no answer, a late one, or a request that stays in the network;
`Fault.then` moves leaders and coordinators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

_TOPICS = "topics", "topic_data", "v3_and_below_topics"
_PARTITIONS = "partitions", "partition_data", "partition_indexes"


class At(Enum):
    """Where an answer has an error code."""

    INNER = "at each innermost place that has one: of a partition mostly"
    ONE = "at the last partition alone of several; other requests are not met"
    NAMED = "at each innermost place of the topic that the fault names"
    LISTED = "at what the answer lists (a topic of Metadata, a group of OffsetFetch), which lists nothing then"
    OUTER = "at the answer itself, which lists nothing then"


@dataclass(kw_only=True)
class Fault:
    """What becomes of requests of one kind (`api`: Produce, EndTxn): the first `times` of them after `skip`.

    `code` is the error that is answered, None for the true answer; `at`: where in the answer. `applied`: the request is
    carried out all the same.
    `lost`: no answer, and the connection is cut. `late_s`: the answer is that late. `held`: the request stays in the
    network until `Brokers.release`. `topic`, `key`: only requests that name this topic, or this group or transactional
    id. `only`: those for which it holds. `then` runs when the fault has happened.
    """

    api: str
    code: int | None = None
    at: At = At.INNER
    applied: bool = False
    lost: bool = False
    late_s: float = 0.0
    held: bool = False
    times: int = 1
    skip: int = 0
    topic: str | None = None
    key: str | None = None
    only: Callable[[Asked], bool] | None = None
    then: Callable[[], object] | None = None
    happened: int = 0

    def meets(self, asked: Asked) -> bool:
        """Whether this request is one of them; counts it."""
        if not self._concerns(asked):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.happened >= self.times:
            return False
        self.happened += 1
        return True

    def _concerns(self, asked: Asked) -> bool:
        """Whether a request is of the kind."""
        return (
            asked.api == self.api
            and (self.topic is None or self.topic in asked.topics)
            and (self.key is None or self.key in asked.keys)
            and (self.only is None or self.only(asked))
            and (self.at is not At.ONE or asked.partitions >= 2)
        )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came to a broker."""

    node: int
    api: str
    number: int
    """Its correlation id, which its answer has, too."""
    request: Any
    topics: frozenset[str]
    """Names of the topics in it, also where it has their ids, or asks for the metadata of all."""

    @property
    def partitions(self) -> int:
        """How many partitions it names; a group's offsets of all count as two."""
        groups = getattr(self.request, "groups", None) or ()
        many = [topics for one in (self.request, *groups) for name in _TOPICS if (topics := getattr(one, name, None))]
        found = (getattr(topic, name, None) or () for topics in many for topic in topics for name in _PARTITIONS)
        return sum(map(len, found)) + sum(2 for one in groups if getattr(one, "topics", ()) is None)

    @property
    def keys(self) -> set[str]:
        """Groups and transactional ids in it."""
        names = ("transactional_id", "v3_and_below_transactional_id", "group_id", "key")
        lists = [getattr(self.request, name, None) or () for name in ("groups", "coordinator_keys")]
        many = {one if isinstance(one, str) else one.group_id for found in lists for one in found}
        return many | {value for name in names if (value := getattr(self.request, name, None))}
