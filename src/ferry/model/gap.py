"""Gaps: places that a lane passed over, or went back from, because somebody or some policy said so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.flow import TopicPartition
from ferry.model.refusal import RefusalKind


class Lifted(StrEnum):
    """What was decided in place of a refusal."""

    SKIP = "skip"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What became of one partition where a refusal, `why`, was lifted.

    `skip`: source offsets `[start, end)` are not on the target. `restart`: the lane stood at `start`, and goes on at
    `end`. What receipts of runs before `generation` say of source offsets from `void_from` on (-1: none) does not hold
    any more. `since` is that of the lane's last receipt, `topic_id` the source topic's. Of gaps that were written by
    earlier versions neither who decided nor the reason is known.
    """

    source: TopicPartition
    start: int
    end: int
    why: RefusalKind
    run: str
    at_ms: int
    how: Lifted = Lifted.SKIP
    who: str = ""
    """`user@host`, or the key of the policy."""
    reason: str = ""
    generation: int = -1
    since: int = -1
    void_from: int = -1
    topic_id: str = ""
