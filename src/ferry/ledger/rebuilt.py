"""A ledger that was written again from an export: the record of that, and what may be replaced by it.

```
["rebuilt", upto]    who wrote the ledger again up to this offset, when, and from which export
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial

from ferry.codec.form import F, Form
from ferry.ledger.codec import decode_key, encode, head
from ferry.ledger.kinds import KINDS, OfLost
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.run_codec import writers_of
from ferry.messages.catalogue import sentence
from ferry.model import Fate, Flow, LedgerRecord, OpenedRun, Record, Sentence

FILLER = Record(key=encode(["filler"]), value=None)
"""A tombstone of a key that means nothing, written where the lost ledger had a marker or nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """Who wrote a ledger again, and from what.

    The carried records follow the export at `upto`, and this record follows them.
    """

    upto: int
    who: str
    at_ms: int
    file: str
    digest: str
    exported_at_ms: int
    records: int
    replaced: int
    """Records of a ledger that runs had begun after the loss, and that was deleted."""
    offset: int = -1
    """Ledger offset of the record; it is not part of the record's value."""

    @property
    def sentence(self) -> Sentence:
        """The note for the runs that continue."""
        return sentence(
            "run.ledger-rebuilt",
            who=self.who,
            at_ms=self.at_ms,
            file=self.file,
            exported_at_ms=self.exported_at_ms,
        )


_REBUILD = Form(
    Rebuild,
    *head("rebuilt"),
    F("upto"),
    F("who"),
    F("at_ms"),
    F("file"),
    F("digest"),
    F("exported_at_ms"),
    F("records"),
    F("replaced"),
)


def rebuild_record(rebuild: Rebuild) -> Record:
    """Make the record that marks the rebuild, after all that it wrote."""
    return Record(key=encode(["rebuilt", rebuild.upto]), value=encode(_REBUILD.dump(rebuild)))


def newest_rebuild(view: LedgerView) -> Rebuild | None:
    """Return the last rebuild of the ledger; None when there was none."""
    found = None
    for _, record in view.of_kind("rebuilt"):
        one = read_as(record, partial(_REBUILD.load, offset=record.offset))
        found = one if found is None or one.offset > found.offset else found
    return found


def rebuild_notes(view: LedgerView, opened: OpenedRun) -> list[Sentence]:
    """Return the note that the ledger was rebuilt, for the first run of a lane since."""
    rebuilt = newest_rebuild(view)
    earlier = (run.generation for run in view.runs if run.record.lane == opened.record.lane)
    if rebuilt is None or any(rebuilt.offset < generation < opened.generation for generation in earlier):
        return []
    return [rebuilt.sentence]


@dataclass(slots=True, kw_only=True)
class Successor:
    """The ledger that is in the place of the lost one, taken in record by record, ascending.

    `lanes` are those of the export. Where they begin is taken from the export.
    """

    lanes: Collection[str]
    records: int = 0
    slots: dict[str, int] = field(default_factory=dict)
    """The number of slots that may have writers, by lane."""
    flows: set[Flow] = field(default_factory=set)
    """Every name of the flow that those writers may have."""
    is_exported: bool = False
    """Whether it is the same ledger that was exported, so not lost."""
    topics: set[str] = field(default_factory=set)
    """Target topics of which it has receipts that the export lacks."""
    _carried: dict[bytes, Record] = field(default_factory=dict)
    _evidence: Counter[str] = field(default_factory=Counter)

    def take(self, record: LedgerRecord, *, exported: bool) -> None:
        """Take in a record; `exported` when the export has the same one at its offset."""
        if record.fate is Fate.ABORTED or record.key == FILLER.key:
            return
        self.records += 1
        key = decode_key(record.key)
        kind = str(key[0]) if key else ""
        row = KINDS.get(kind)
        if exported:
            self.is_exported |= row is not None and row.names_run
            return
        of_lost = OfLost.EVIDENCE if row is None else row.of_lost
        if kind in ("run", "fenced") and record.value is not None:
            slots, flows = writers_of(record)
            self.slots[key[1]] = max(self.slots.get(key[1], 0), slots)
            self.flows |= flows
        if of_lost is OfLost.CARRIED or (of_lost is OfLost.CARRIED_OF_NEW_LANES and key[1] not in self.lanes):
            self._carried.pop(record.key, None)
            self._carried[record.key] = Record(key=record.key, value=record.value)
        elif of_lost is OfLost.EVIDENCE and record.value is not None:
            self._evidence[kind] += 1
            if kind in ("receipt", "adopted"):
                self.topics.add(key[2])
            elif kind == "unit":
                self.topics.add(key[3])

    @property
    def carried(self) -> list[Record]:
        """The records that follow the export: pauses, Ferry's ACLs, and the beginnings that it lacks.

        These are the beginnings of lanes and windows.
        """
        return list(self._carried.values())

    @property
    def evidence(self) -> str:
        """Kinds and numbers of records with what a rebuild would lose, as text; empty when there is nothing."""
        return ", ".join(f"{_plural(kind)} ({count})" for kind, count in self._counts())

    def _counts(self) -> list[tuple[str, int]]:
        # A receipt is written twice, and so are a group's offsets.
        twice = {"last"} if self._evidence.keys() & {"receipt", "unit"} else set()
        twice |= {"offsets"} if "group" in self._evidence else set()
        return [(kind, count) for kind, count in sorted(self._evidence.items()) if kind not in twice]


def _plural(kind: str) -> str:
    return KINDS[kind].plural if kind in KINDS else f"records of kind {kind or None}"
