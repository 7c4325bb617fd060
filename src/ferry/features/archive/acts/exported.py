"""An export that is read back: first all of it to check it, then record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ferry.errors import BadInput
from ferry.features.archive.rules.export import Exported, ExportEnd, ExportHead, parse_head, parse_records
from ferry.ledger.codec import decode_key
from ferry.ledger.reading import read_as
from ferry.ledger.rebuilt import FILLER
from ferry.ledger.receipt_codec import is_unit, parse_receipt
from ferry.ledger.run_codec import writers_of
from ferry.model import Fate, Flow, LedgerRecord, Receipt, Record

Lines = Callable[[Path], Iterator[bytes]]
"""Reads the lines of an export, in any format."""

_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of an export. `lasts` are the newest receipts of partitions.

    `slots` is the most that a run of a lane had.
    """

    head: ExportHead
    end: ExportEnd
    records: int
    lasts: tuple[Receipt, ...]
    lanes: frozenset[str]
    """The lanes whose beginning is in the export."""
    slots: dict[str, int]
    flows: frozenset[Flow]
    """All names of the flow in its runs."""


def read_export(path: Path, lines: Lines) -> Contents:
    """Read all of an export.

    Raises BadInput if it is incomplete or was changed, or has receipts of repartitioned topics.
    """
    head = parse_head(next(lines(path), b""), str(path))
    records, end = 0, ExportEnd(upto=0, digest="")
    lasts: dict[bytes, Receipt] = {}
    lanes: set[str] = set()
    slots: dict[str, int] = {}
    flows: set[Flow] = set()
    for one in parse_records(lines(path), str(path)):
        if isinstance(one, ExportEnd):
            end = one
            continue
        records += 1
        key, value = decode_key(one.record.key), one.record.value
        if key[:1] == ["last"]:
            lasts.pop(one.record.key, None)
        if value is None or key[:1] not in (["last"], ["run"], ["fenced"], ["began"]):
            continue
        record = LedgerRecord(offset=one.offset, key=one.record.key, value=value, fate=Fate.COMMITTED, producer_id=-1)
        if key[0] == "last" and is_unit(value):
            raise BadInput(
                f"{path} has receipts of repartitioned topics, which ferry ledger rebuild does not restore, because no "
                "position shows what was copied after the export: restore the ledger topic from a backup of the "
                "target's disks, or copy again under another alias of the source cluster"
            )
        if key[0] == "last":
            lasts[one.record.key] = read_as(record, parse_receipt)
        elif key[0] == "began":
            lanes.add(key[1])
        else:
            count, names = writers_of(record)
            slots[key[1]] = max(slots.get(key[1], 0), count)
            flows |= names
    return Contents(
        head=head,
        end=end,
        records=records,
        lasts=tuple(lasts.values()),
        lanes=frozenset(lanes),
        slots=slots,
        flows=frozenset(flows),
    )


def portions(path: Path, lines: Lines) -> Iterator[tuple[int, list[Record]]]:
    """Yield the export's records with fillers for the offsets between them, _AT_ONCE at a time.

    Each portion comes with its first offset.
    """
    first, portion = 0, list[Record]()
    for one in parse_records(lines(path), str(path)):
        offset = one.upto if isinstance(one, ExportEnd) else one.offset
        while first + len(portion) < offset:
            portion.append(FILLER)
            if len(portion) == _AT_ONCE:
                yield first, portion
                first, portion = first + len(portion), []
        if isinstance(one, Exported):
            portion.append(one.record)
        if len(portion) >= _AT_ONCE:
            yield first, portion
            first, portion = first + len(portion), []
    if portion:
        yield first, portion


class Beside:
    """An export that is compared with a ledger whose records come in ascending order."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self._rest = parse_records(lines(path), str(path))
        self._next: Exported | ExportEnd | None = next(self._rest, None)

    def has(self, record: LedgerRecord) -> bool:
        """Return whether the export has the same record at its offset."""
        while isinstance(self._next, Exported) and self._next.offset < record.offset:
            self._next = next(self._rest, None)
        if not isinstance(self._next, Exported) or self._next.offset != record.offset:
            return False
        return self._next.record == Record(key=record.key, value=record.value)
