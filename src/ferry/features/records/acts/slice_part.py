"""What a chunk has of one slice whose records are transformed: rows, with holes where the transform left some out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch
from ferry.features.records.acts.rows import Stretch
from ferry.model import Receipt
from ferry.wire.batch import Batch
from ferry.wire.renumber import Run


@dataclass(slots=True, kw_only=True)
class SlicePart(PartProgress):
    """As a part that is copied. Which of its offsets had no record, and which ones were left out, nobody can tell here.

    All of its batches are made anew, so that none counts as transcoded.
    """

    runs: int = 0
    """At least as many as its segments come to be; each batch may begin one."""

    letters: int = 0
    """Records that are among the dead letters in place of the copy."""

    def wanted(self, stretch: Stretch) -> npt.NDArray[np.bool_]:
        """Whether each of the rows is still to be written."""
        return (stretch.offsets >= self.end) & (stretch.offsets < self.piece.end)

    def come_to(self, _partition: int, offset: int) -> None:
        """All up to this source offset is on its way."""
        self.end = offset + 1

    def come_to_end(self) -> None:
        """No row is left: the rest of the slice was left out, or was never there."""
        self.end = self.piece.end

    def outgoing(self, stretches: Sequence[Stretch], batch: Batch) -> PreparedBatch:
        """The batch of these rows, as it is noted."""
        offsets = np.concatenate([stretch.offsets for stretch in stretches])
        out = PreparedBatch(batch, runs_of(offsets), int(offsets[-1]) + 1, self.source_epoch, False, ())
        self.runs += len(out.runs)
        self.sent(out)
        return out

    def receipt(self) -> Receipt:
        """As of a part that is copied."""
        piece = self.piece
        return replace(
            PartProgress.receipt(self),
            missing=None,
            transform=piece.transform,
            transform_digest=piece.transform_digest,
            dead_letters=self.letters,
        )


def runs_of(offsets: npt.NDArray[np.int64]) -> tuple[Run, ...]:
    """Of rising source offsets the first one and number of each stretch without a hole."""
    begins = np.concatenate(([0], np.flatnonzero(np.diff(offsets) != 1) + 1))
    counts = np.diff(np.append(begins, len(offsets)))
    return tuple(zip(offsets[begins].tolist(), counts.tolist(), strict=True))
