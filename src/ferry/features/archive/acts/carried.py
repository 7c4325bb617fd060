"""The records that a rebuild keeps of the ledger that it deletes, in a file next to the export until they are written.

Without the file they would be in memory alone. A rebuild that was killed is run again, and finds them here.
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
    """The file next to an export. It is an export of its own, with the head of the export that is rebuilt from."""

    def __init__(self, export: Path, head: ExportHead) -> None:
        self.path = export.with_name(f"{export.name}.carried")
        self._head = head

    def read(self) -> list[Record]:
        """Return what an earlier attempt kept; empty if there was none.

        Raises BadInput if the file is from a rebuild of another export.
        """
        if not self.path.exists():
            return []
        lines = list(json_lines(self.path))
        if parse_head(lines[0] if lines else b"", str(self.path)) != self._head:
            raise BadInput(
                f"{self.path} was left by a rebuild from another export than the one next to it: rebuild from that "
                "one, or remove the file and lose the pauses and ACLs that it holds"
            )
        return [one.record for one in parse_records(lines, str(self.path)) if isinstance(one, Exported)]

    def write(self, records: Sequence[Record]) -> None:
        """Keep records; they are on the disk when this returns. Raises BadInput if they cannot be written."""
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
        """Delete the file: its records are in the ledger now."""
        self.path.unlink(missing_ok=True)
