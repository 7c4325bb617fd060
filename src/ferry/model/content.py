"""A record as readers of a topic see it: what a copy has to keep, and the offset, which it need not."""

from __future__ import annotations

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
