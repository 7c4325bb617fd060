"""One target partition's part of a chunk, as whoever sends batches and asks the target's logs needs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ferry.model import Slice
from ferry.wire.renumber import Run


class Part(Protocol):
    """What `ferry.copy.chunk` has of a slice, and `ferry.features.records.acts.unit_part` of a dealt one."""

    target_next: int
    target_epoch: int
    segments: list[list[int]]
    expected: int

    @property
    def start(self) -> int:
        """Where the chunk begins, in source offsets."""

    @property
    def piece(self) -> Slice:
        """What it is a part of."""

    def written(self, runs: Iterable[Run], target_base: int) -> bool:
        """The broker's answer for one batch; False when another writer's records lie between ours."""

    def is_elsewhere(self, target_base: int) -> bool:
        """Whether the first batch came to lie where it should not."""
