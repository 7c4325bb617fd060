"""A record as readers of a topic see it: what a copy has to keep, and the offset, which it need not keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class RecordContent(NamedTuple):
    """One record. `timestamp` is ms, null is None. `headers` are bytes of format v2: equal bytes, equal headers.

    It is a tuple, because inner loops compare it: all but the offset is `content[1:]`.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDigest:
    """What is compared of a record: `digest` is of key, value and headers.

    `timestamp_ms` is None for log append time.
    """

    offset: int
    timestamp_ms: int | None
    digest: bytes
    leader_epoch: int = -1

    def same_as(self, other: ContentDigest) -> bool:
        """Return whether one is a copy of the other. Log append times are not compared: each broker sets its own."""
        times = {self.timestamp_ms, other.timestamp_ms}
        return self.digest == other.digest and (None in times or len(times) == 1)
