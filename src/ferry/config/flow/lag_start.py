"""When a flow's lag itself starts a run."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LagStart:
    """So many records behind in all, or an oldest one of such an age, start a run; None: that does not."""

    records: int | None = None
    seconds: int | None = None
    every_seconds: int = EVERY_SECONDS
    """How often the lag is looked at."""

    def __bool__(self) -> bool:
        return self.records is not None or self.seconds is not None
