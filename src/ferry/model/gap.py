"""Gaps: places that a lane skipped, or went back from, because an operator or a policy decided it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.flow import TopicPartition
from ferry.model.refusal import RefusalKind


class Resolution(StrEnum):
    """What was decided in place of a refusal."""

    SKIP = "skip"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The place of one partition where an operator or a policy resolved a refusal, `why`.

    `skip`: source offsets `[start, end)` are not on the target. `restart`: the lane was at `start`, and continues at
    `end`. Receipts of runs before `generation` do not hold any more for source offsets from `void_from` on (None:
    all hold). `since` is that of the lane's last receipt, `topic_id` the source topic's. A kept gap may have
    neither who decided nor the reason.
    """

    source: TopicPartition
    start: int
    end: int
    why: RefusalKind
    run: str
    at_ms: int
    how: Resolution = Resolution.SKIP
    who: str = ""
    """`user@host`, or the key of the policy."""
    reason: str = ""
    generation: int = -1
    since: int = -1
    void_from: int | None = None
    topic_id: str = ""
    stranded: bool = False
    """Whether a switch left out its records: they were on the source, and never copied to the target."""
