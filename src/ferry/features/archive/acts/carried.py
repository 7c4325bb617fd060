"""What a rebuild carries over from the ledger that it deletes, kept in a file beside the export until it is written.

In between it would be in memory alone: a rebuild that is killed then is run again, and finds it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ferry.errors import BadInput
from ferry.features.archive.acts.export import json_lines
from ferry.features.archive.rules.export import (
    Digest,
    Exported,
    ExportHead,
    head_line,
    parse_head,
    parse_records,
    record_line,
)
from ferry.files import write_whole
from ferry.model import Record


class CarriedFile:
    """The file beside an export, an export of its own; its head is that of the export that is rebuilt from."""

    def __init__(self, export: Path, head: ExportHead) -> None:
        self.path = export.with_name(f"{export.name}.carried")
        self._head = head

    def read(self) -> list[Record]:
        """What an earlier attempt kept, none where none did; BadInput when that was a rebuild from another export."""
        if not self.path.exists():
            return []
        lines = list(json_lines(self.path))
        if parse_head(lines[0] if lines else b"", str(self.path)) != self._head:
            raise BadInput(
                f"{self.path} was left by a rebuild from another export than the one beside it: rebuild from that one, "
                "or remove the file to do without the pauses and ACLs that it holds"
            )
        return [one.record for one in parse_records(lines, str(self.path)) if isinstance(one, Exported)]

    def write(self, records: Sequence[Record]) -> None:
        """Keep records, on the disk when this returns; BadInput when they cannot be."""
        digest = Digest()
        lines = [digest.add(head_line(self._head))]
        lines += [digest.add(record_line(Exported(offset=at, record=one))) for at, one in enumerate(records)]
        lines.append(digest.end_line(len(records)))
        try:
            write_whole(self.path, "".join(f"{line.decode()}\n" for line in lines), durable=True)
        except OSError as error:
            raise BadInput(
                f"what goes over from the ledger that was begun since cannot be kept in {self.path} ({error}): copy "
                "the export to a folder that you may write to, and rebuild from there"
            ) from error

    def remove(self) -> None:
        """Forget what was kept: it lies in the ledger."""
        self.path.unlink(missing_ok=True)
