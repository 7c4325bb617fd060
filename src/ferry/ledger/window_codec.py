"""Windows and dropped lanes as records of the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ferry.ledger.codec import LEDGER_VERSION, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.model import Record, WindowRecord


def window_record(found: WindowRecord) -> Record:
    """What a window of one source topic is in offsets; written before the plan of its first run."""
    body: dict[str, Any] = {
        "v": LEDGER_VERSION,
        "kind": "window",
        "topic": found.topic,
        "topic_id": found.topic_id,
        "from_ms": found.from_ms,
        "to_ms": found.to_ms,
        "offsets": [[number, start, end] for number, (start, end) in sorted(found.ranges.items())],
        "run": found.run,
        "at_ms": found.at_ms,
    }
    return Record(key=encode(["window", found.lane, found.topic, found.window]), value=encode(body))


def recorded_windows(view: LedgerView, lane: str) -> list[WindowRecord]:
    """The windows of a lane, in the order in which they were first planned or last extended."""
    return [
        read_as(record, partial(parse_window, key))
        for key, record in view.of_kind("window")
        if key[1] == lane and record.value is not None
    ]


def parse_window(key: list[Any], body: dict[str, Any]) -> WindowRecord:
    """Inverse of `window_record`."""
    return WindowRecord(
        lane=key[1],
        topic=key[2],
        window=key[3],
        from_ms=body["from_ms"],
        to_ms=body["to_ms"],
        topic_id=body["topic_id"],
        ranges={number: (start, end) for number, start, end in body["offsets"]},
        run=body["run"],
        at_ms=body["at_ms"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """That a lane was dropped: by whom, when, and how much it held."""

    lane: str
    who: str
    at_ms: int
    topics: tuple[str, ...]
    """Its topics on the target."""
    records: int


def dropped_record(found: Dropped) -> Record:
    """The last word on a lane that was dropped."""
    body = {
        "v": LEDGER_VERSION,
        "kind": "dropped",
        "who": found.who,
        "at_ms": found.at_ms,
        "topics": list(found.topics),
        "records": found.records,
    }
    return Record(key=encode(["dropped", found.lane]), value=encode(body))


def dropped_lanes(view: LedgerView) -> Iterable[Dropped]:
    """The lanes that were dropped; one that was begun again since is among them."""
    for key, record in view.of_kind("dropped"):
        yield read_as(record, partial(_parse_dropped, key[1]))


def _parse_dropped(lane: str, body: dict[str, Any]) -> Dropped:
    return Dropped(
        lane=lane, who=body["who"], at_ms=body["at_ms"], topics=tuple(body["topics"]), records=body["records"]
    )
