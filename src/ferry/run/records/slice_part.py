"""What a chunk has of one slice whose records are transformed: rows, with holes where the transform left some out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ferry.model import Receipt
from ferry.run.copy.chunk import PartProgress
from ferry.run.copy.outgoing import Outgoing
from ferry.run.records.rows import Row
from ferry.wire.batch import Batch
from ferry.wire.renumber import Run


@dataclass(slots=True, kw_only=True)
class SlicePart(PartProgress):
    """As a part that is copied. How many of its offsets had no record, and which ones were left out, nobody counts."""

    runs: int = 0
    """At least as many as its segments come to be; each batch may begin one."""

    letters: int = 0
    """Records that are among the dead letters in place of the copy."""

    def wants(self, row: Row) -> bool:
        """Whether a row is still to be written."""
        return self.end <= row.offset < self.piece.end

    def come_to(self, row: Row) -> None:
        """All up to this row is on its way."""
        self.end = row.offset + 1

    def come_to_end(self) -> None:
        """No row is left: the rest of the slice was left out, or was never there."""
        self.end = self.piece.end

    def outgoing(self, rows: Sequence[Row], batch: Batch) -> Outgoing:
        """The batch of these rows, as it is noted."""
        out = Outgoing(batch, _runs(rows), rows[-1].offset + 1, self.source_epoch, True, ())
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


def _runs(rows: Sequence[Row]) -> tuple[Run, ...]:
    """The source offsets of the rows, first one and number of each stretch without a hole."""
    found: list[Run] = []
    first = behind = rows[0].offset
    for row in rows:
        if row.offset != behind:
            found.append((first, behind - first))
            first = row.offset
        behind = row.offset + 1
    return (*found, (first, behind - first))
