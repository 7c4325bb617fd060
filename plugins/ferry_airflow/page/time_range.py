"""The time that the charts and the list of runs of a page show: a parameter of its address, `range`; pure."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

Chosen = Literal["15m", "1h", "4h", "24h", "all"]
TimeRange = Annotated[Chosen, Query(alias="range")]
ALL: Chosen = "all"
RANGES: dict[Chosen, tuple[str, int]] = {
    "15m": ("15 min", 900_000),
    "1h": ("1 h", 3_600_000),
    "4h": ("4 h", 4 * 3_600_000),
    "24h": ("24 h", 24 * 3_600_000),
}
"""Each limited range with its name on the page and its length in ms."""
CHOICES = ((ALL, "all"), *((key, name) for key, (name, _) in RANGES.items()))


def since(chosen: Chosen, now_ms: int) -> int:
    """Return when the range begins (epoch ms); 0 if it has no beginning."""
    return 0 if chosen == ALL else now_ms - RANGES[chosen][1]
