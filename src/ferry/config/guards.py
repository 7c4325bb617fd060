"""What a flow does when a guard trips: `ferry.guard.*`, named after the refusals that they turn into notes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OnGuard(StrEnum):
    """What becomes of the topic or partition that a guard is about."""

    FAIL = "fail"
    """It is refused, and the run is red until somebody looks at it."""
    SKIP = "skip"
    """It is passed over: said in the plan and, where records are lost, kept in the ledger as a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The guards that a file may soften; all others fail."""

    topic_gone: OnGuard = OnGuard.FAIL
    retention_passed: OnGuard = OnGuard.FAIL
