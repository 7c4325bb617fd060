"""The ledger's record of what became of consumer groups in a run.

```
["checkpoint", lane, run]
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, enum, many
from ferry.ledger.codec import LEDGER_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import AGES
from ferry.model import WANTED, GroupOutcome, Left, Record, TopicPartition, Why

SHOWN = 200
"""Groups and partitions that the record of a run names one by one; the others are counted."""


def checkpoint_record(lane: str, run: str, found: GroupOutcome) -> Record:
    """What became of the groups in a run. Not all may be named: each group comes before more partitions of another one,
    and those that failed come first."""
    left = _heads_first(found.left)
    shown = left[:SHOWN]
    named = {one.group for one in shown}
    more = found.more + len(left) - len(shown)
    unnamed = {one.group for one in left if one.why in WANTED} - named
    body = {
        "v": LEDGER_VERSION,
        "kind": "checkpoint",
        **outcome_json(found),
        "left": [left_json(one) for one in shown],
        "more": more,
        **({"unnamed": found.unnamed + len(unnamed)} if more else {}),
    }
    return Record(key=encode(["checkpoint", lane, run]), value=encode(body))


def _heads_first(left: Iterable[Left]) -> list[Left]:
    seen: set[str] = set()
    heads, rest = list[Left](), list[Left]()
    for one in sorted(left, key=lambda one: (one.why is not Why.FAILED, one.why not in WANTED)):
        (rest if one.group in seen else heads).append(one)
        seen.add(one.group)
    return [*heads, *rest]


def group_outcome(view: LedgerView, lane: str, run: str) -> GroupOutcome | None:
    """What a run's record says; None when its groups were not looked at (yet)."""
    for key, record in view.of_kind("checkpoint"):
        if key[1:] == [lane, run]:
            return read_as(record, _parse_outcome)
    return None


def newest_outcome(view: LedgerView, lane: str) -> GroupOutcome | None:
    """What the newest record of a lane says; None when the ledger has none."""
    found = [record for key, record in view.of_kind("checkpoint") if key[1] == lane]
    return read_as(max(found, key=lambda one: one.offset), _parse_outcome) if found else None


def _parse_left(body: Json) -> Left:
    place = None if body["topic"] is None else TopicPartition(body["topic"], body["partition"])
    return LEFT.load(body, place=place)


LEFT = Form(
    Left,
    F("group"),
    F("topic", lambda left: left.place.topic if left.place else None),
    F("partition", lambda left: left.place.partition if left.place else None),
    F("why", kind=enum(Why)),
    F("message"),
)

left_json = LEFT.dump
"""What was left as the documented JSON object."""

_OUTCOME = Form(
    GroupOutcome,
    F("groups"),
    F("offsets"),
    F("unchanged"),
    F("inexact", kind=Kind(dict)),
    F("left", kind=many(replace(LEFT.kind, load=_parse_left))),
    F("more"),
    F("again", default=0, omit=lambda found: not found.again),
    F("at_ms"),
    F("latency_ms", "latency", AGES, default=None),
)

outcome_json = _OUTCOME.dump
"""A run's groups as the documented JSON object."""


def _parse_outcome(body: Json) -> GroupOutcome:
    return _OUTCOME.load(body, unnamed=body["unnamed"] if "unnamed" in body else body["more"])
