"""A record as readers of a topic see it: what a copy has to keep, and the offset, which it need not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Content(NamedTuple):
    """One record. `timestamp` is ms, null is None. `headers` are as format v2 has them: equal bytes, equal headers.

    A tuple, as inner loops compare it: all but the offset is `content[1:]`.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDigest:
    """A record as far as it is compared: `digest` is of key, value and headers. `timestamp_ms` None: log append."""

    offset: int
    timestamp_ms: int | None
    digest: bytes
    leader_epoch: int = -1

    def same_as(self, other: ContentDigest) -> bool:
        """Whether one is a copy of the other: log append times are their own broker's."""
        times = {self.timestamp_ms, other.timestamp_ms}
        return self.digest == other.digest and (None in times or len(times) == 1)
