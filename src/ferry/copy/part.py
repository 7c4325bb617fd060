"""One target partition's part of a chunk, for the code that sends batches and that checks the target's logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ferry.model import Slice
from ferry.wire.renumber import OffsetSpan


class Part(Protocol):
    """`ferry.copy.chunk` has one for a slice, `ferry.features.records.acts.row_parts` those of transformed slices."""

    target_next: int | None
    target_epoch: int
    segments: list[list[int]]
    expected: int

    @property
    def start(self) -> int:
        """The source offset at which the chunk begins."""

    @property
    def wrote(self) -> bool:
        """Whether the chunk has written anything to the target partition."""

    @property
    def piece(self) -> Slice:
        """The slice that it is a part of."""

    def written(self, runs: Iterable[OffsetSpan], target_base: int) -> bool:
        """Note the broker's answer for one batch; return False if another writer's records are between ours."""

    def is_elsewhere(self, target_base: int) -> bool:
        """Return whether the first batch got another offset than expected."""
