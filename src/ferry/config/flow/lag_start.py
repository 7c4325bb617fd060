"""When a flow's lag itself starts a run."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LagStart:
    """A total lag of `records`, or an age of `seconds` of the oldest record, starts a run; None: that starts none."""

    records: int | None = None
    seconds: int | None = None
    every_seconds: int = EVERY_SECONDS
    """How often the lag is checked, in seconds."""

    def __bool__(self) -> bool:
        return self.records is not None or self.seconds is not None
