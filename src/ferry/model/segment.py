"""Segments: where target offset = source offset + constant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Segment:
    """`count` consecutive records, at `source_start..` in the source and `target_start..` in the target."""

    source_start: int
    target_start: int
    count: int

    @property
    def source_end(self) -> int:
        """First source offset after the segment."""
        return self.source_start + self.count

    @property
    def target_end(self) -> int:
        """First target offset after the segment."""
        return self.target_start + self.count


def joined(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return the same segments, with neighbours joined where both sides continue without a hole."""
    out: list[Segment] = []
    for segment in segments:
        last = out[-1] if out else None
        if last and last.source_end == segment.source_start and last.target_end == segment.target_start:
            out[-1] = replace(last, count=last.count + segment.count)
        else:
            out.append(segment)
    return tuple(out)
