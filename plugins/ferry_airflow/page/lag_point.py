"""How far something was behind at a moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPoint:
    """How far a flow, a topic or a partition was behind at a moment; None where its oldest record told no age."""

    at_ms: int
    records: int
    bytes: int
    seconds: float | None
