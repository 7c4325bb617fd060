"""Windows and dropped lanes as records of the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import by_partition, many
from ferry.ledger.codec import encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.model import Record, WindowRecord

WINDOW = Form(
    WindowRecord,
    *head("window"),
    F("topic"),
    F("topic_id"),
    F("from_ms"),
    F("to_ms"),
    F("offsets", "ranges", by_partition()),
    F("run"),
    F("at_ms"),
)


def window_record(found: WindowRecord) -> Record:
    """Make the record of the offsets of a window of one source topic; written before the plan of its first run."""
    return Record(key=encode(["window", found.lane, found.topic, found.window]), value=encode(WINDOW.dump(found)))


def recorded_windows(view: LedgerView, lane: str) -> list[WindowRecord]:
    """Return the windows of a lane, in the order in which they were first planned or last extended."""
    return [
        read_as(record, partial(parse_window, key))
        for key, record in view.of_kind("window")
        if key[1] == lane and record.value is not None
    ]


def parse_window(key: list[Any], body: Json) -> WindowRecord:
    """Return the window of a record that `window_record` made."""
    return WINDOW.load(body, lane=key[1], window=key[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A lane that was dropped: by whom, when, and how much it held."""

    lane: str
    who: str
    at_ms: int
    topics: tuple[str, ...]
    """The lane's topics on the target."""
    records: int


DROPPED = Form(Dropped, *head("dropped"), F("who"), F("at_ms"), F("topics", kind=many()), F("records"))


def dropped_record(found: Dropped) -> Record:
    """Make the final record of a lane that was dropped."""
    return Record(key=encode(["dropped", found.lane]), value=encode(DROPPED.dump(found)))


def dropped_lanes(view: LedgerView) -> Iterable[Dropped]:
    """Yield the lanes that were dropped, also one that was begun again since."""
    for key, record in view.of_kind("dropped"):
        yield read_as(record, partial(DROPPED.load, lane=key[1]))
