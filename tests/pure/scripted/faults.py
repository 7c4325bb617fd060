"""Requests to scripted brokers, and what becomes of them.

An error code before or after a request was carried out, no answer, a late one, or a request that stays in the network;
`Fault.then` moves leaders and coordinators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Fault:
    """What becomes of requests of one kind (`api`: Produce, EndTxn): the first `times` of them after `skip`.

    `code` is the error that is answered, None for the true answer; `applied`: the request is carried out all the same.
    `lost`: no answer, and the connection is cut. `late_s`: the answer is that late. `held`: the request stays in the
    network until `Brokers.release`. `topic`, `key`: only requests that name this topic, or this group or transactional
    id. `then` runs when the fault has happened.
    """

    api: str
    code: int | None = None
    applied: bool = False
    lost: bool = False
    late_s: float = 0.0
    held: bool = False
    times: int = 1
    skip: int = 0
    topic: str | None = None
    key: str | None = None
    then: Callable[[], object] | None = None
    happened: int = 0

    def meets(self, asked: Asked) -> bool:
        """Whether this request is one of them; counts it."""
        if asked.api != self.api or (self.topic is not None and self.topic not in asked.topics):
            return False
        if self.key is not None and self.key not in asked.keys:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.happened >= self.times:
            return False
        self.happened += 1
        return True


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came to a broker."""

    node: int
    api: str
    number: int
    """Its correlation id, which its answer has, too."""
    request: Any
    topics: frozenset[str]
    """Names of the topics in it, also where it has their ids."""

    @property
    def keys(self) -> set[str]:
        """Groups and transactional ids in it."""
        names = ("transactional_id", "v3_and_below_transactional_id", "group_id", "key")
        many = {one if isinstance(one, str) else one.group_id for one in getattr(self.request, "groups", None) or ()}
        return many | {value for name in names if (value := getattr(self.request, name, None))}
