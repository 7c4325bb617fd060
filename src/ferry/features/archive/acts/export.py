"""Write a ledger to a file of JSON lines, and read it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import IO, Protocol

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.archive.rules.export import Digest, Exported, ExportHead, head_line, record_line
from ferry.files import new_file, refuse_taken
from ferry.lane.connections import TargetConnection
from ferry.lane.summaries import LedgerLog
from ferry.model import Fate, Record

_PORTION = 50_000
"""How many offsets are read at once, so that memory does not grow with the ledger."""


class LinesWriter(Protocol):
    """Writes the lines of an export."""

    def line(self, line: bytes, one: Exported | None) -> None:
        """Write the next line; `one` is its record, or None for the head and the end."""

    def close(self) -> None:
        """Finish the content; the file stays open."""


def export_ledger(
    flow: FlowConfig,
    path: Path,
    make: Callable[[IO[bytes]], LinesWriter],
    *,
    patience_s: float = 60.0,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[int, int]:
    """Write the flow's ledger to a new file; return how many records it has, and up to which offset.

    `dry_run`: all is read and checked, and nothing is written. `on_progress` is called with how many offsets were read,
    and how many there are. Raises BadInput if there is no ledger or the file cannot be created, and Unreachable if the
    target does not answer.
    """
    refuse_taken(path)
    with (
        TargetConnection.of(flow, patience_s=patience_s) as connection,
        nullcontext() if dry_run else new_file(path) as file,
    ):
        head = ExportHead(
            flow=str(flow.flow),
            topic=connection.ledger.place.topic,
            cluster_id=connection.target.cluster_id or "",
            at_ms=wall_ms(),
        )

        async def work() -> tuple[int, int]:
            await connection.ledger.find()
            digest, end = Digest(), await connection.ledger.end()
            with closing(_Nowhere() if file is None else make(file)) as writer:
                writer.line(digest.add(head_line(head)), None)
                upto = start = await connection.ledger.start()
                async for one in committed(connection.ledger, end):
                    if isinstance(one, int):
                        upto = one
                    else:
                        writer.line(digest.add(record_line(one)), one)
                        on_progress(one.offset + 1 - start, end - start)
                writer.line(digest.end_line(upto), None)
            return digest.records, upto

        return connection.run(work)


async def committed(log: LedgerLog, end: int) -> AsyncIterator[Exported | int]:
    """Yield the committed records before `end`, up to the first undecided one.

    The last item is the offset up to which they go.
    """
    at, window = await log.start(), _PORTION
    while at < end:
        records, read = await log.read(at, min(end, at + window))
        first_open = min((record.offset for record in records if record.fate is Fate.OPEN), default=read)
        for record in records:
            if at <= record.offset < first_open and record.fate is Fate.COMMITTED:
                yield _exported(record.offset, record.key, record.value)
        if first_open == at and read >= end:
            break
        window = _PORTION if first_open > at else 2 * window
        at = first_open
    yield at


def _exported(offset: int, key: bytes, value: bytes | None) -> Exported:
    return Exported(offset=offset, record=Record(key=key, value=value))


class _Nowhere:
    """A LinesWriter that writes nothing, for a dry run."""

    def line(self, line: bytes, one: Exported | None) -> None:
        """Drop a line."""

    def close(self) -> None:
        """Do nothing: there is no file."""


class JsonLines:
    """A LinesWriter for JSON lines."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to a file that is open."""
        self._file = file

    def line(self, line: bytes, one: Exported | None) -> None:
        """Write the next line."""
        self._file.write(line + b"\n")

    def close(self) -> None:
        """Do nothing: there is nothing after the last line."""


def json_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of an export in JSON lines. Raises BadInput if the file cannot be read."""
    try:
        with path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except OSError as error:
        why = error.strerror or error
        raise BadInput(f"{path} cannot be read ({why}): name a file that ferry ledger export wrote") from error
