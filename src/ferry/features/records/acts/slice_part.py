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
from ferry.wire.renumber import OffsetSpan


@dataclass(slots=True, kw_only=True)
class SlicePart(PartProgress):
    """The part of a transformed slice. It cannot say which offsets had no record, and which records were left out.

    All of its batches are built again, so none counts as transcoded.
    """

    runs: int = 0
    """At least as many as its segments; each batch may begin a segment."""

    letters: int = 0
    """Records that are among the dead letters in place of the copy."""

    def wanted(self, stretch: Stretch) -> npt.NDArray[np.bool_]:
        """Report for each row whether it is still to be written."""
        return (stretch.offsets >= self.end) & (stretch.offsets < self.piece.end)

    def come_to(self, _partition: int, offset: int) -> None:
        """Record that all up to this source offset is sent."""
        self.end = offset + 1

    def come_to_end(self) -> None:
        """Record that no row is left: the rest of the slice was left out, or was never there."""
        self.end = self.piece.end

    def outgoing(self, stretches: Sequence[Stretch], batch: Batch) -> PreparedBatch:
        """Return the batch of these rows with its source offsets, and count it."""
        offsets = np.concatenate([stretch.offsets for stretch in stretches])
        out = PreparedBatch(batch, runs_of(offsets), int(offsets[-1]) + 1, self.source_epoch, False, ())
        self.runs += len(out.runs)
        self.sent(out)
        return out

    def receipt(self) -> Receipt:
        """Return the receipt of this part; it has the transform, and no count of missing offsets."""
        piece = self.piece
        return replace(
            PartProgress.receipt(self),
            missing=None,
            transform=piece.transform,
            transform_digest=piece.transform_digest,
            dead_letters=self.letters,
        )


def runs_of(offsets: npt.NDArray[np.int64]) -> tuple[OffsetSpan, ...]:
    """Return the first offset and the number of each stretch without a hole, of ascending source offsets."""
    begins = np.concatenate(([0], np.flatnonzero(np.diff(offsets) != 1) + 1))
    counts = np.diff(np.append(begins, len(offsets)))
    return tuple(zip(offsets[begins].tolist(), counts.tolist(), strict=True))
