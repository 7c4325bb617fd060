"""The ledger's record of what became of consumer groups in a run.

```
["checkpoint", lane, run]
```
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.ledger.codec import LEDGER_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import ages_row, parse_ages
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


def _parse_outcome(body: Json) -> GroupOutcome:
    return GroupOutcome(
        groups=body["groups"],
        offsets=body["offsets"],
        unchanged=body["unchanged"],
        left=tuple(_parse_left(one) for one in body["left"]),
        inexact=body["inexact"],
        more=body["more"],
        at_ms=body["at_ms"],
        unnamed=body["unnamed"] if "unnamed" in body else body["more"],
        again=body.get("again", 0),
        latency=parse_ages(body.get("latency_ms")),
    )


def outcome_json(found: GroupOutcome) -> Json:
    """A run's groups as the documented JSON object."""
    return {
        "groups": found.groups,
        "offsets": found.offsets,
        "unchanged": found.unchanged,
        "inexact": dict(found.inexact),
        "left": [left_json(one) for one in found.left],
        "more": found.more,
        **({"again": found.again} if found.again else {}),
        "at_ms": found.at_ms,
        "latency_ms": ages_row(found.latency),
    }


def left_json(left: Left) -> Json:
    """What was left as the documented JSON object."""
    return {
        "group": left.group,
        "topic": left.place.topic if left.place else None,
        "partition": left.place.partition if left.place else None,
        "why": left.why.value,
        "message": left.message,
    }


def _parse_left(body: Json) -> Left:
    place = None if body["topic"] is None else TopicPartition(body["topic"], body["partition"])
    return Left(group=body["group"], place=place, why=Why(body["why"]), message=body["message"])
