"""The ledger's record of the outcome of consumer groups in a run.

```
["checkpoint", lane, run]
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, enum, many, typed
from ferry.ledger.codec import Json, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import AGES
from ferry.ledger.sentence_codec import OF_MESSAGE, read_sentence
from ferry.model import WANTED, GroupOutcome, Left, Record, TopicPartition, Why

SHOWN = 200
"""The most groups and partitions that the record of a run names; the others are counted."""


def checkpoint_record(lane: str, run: str, found: GroupOutcome) -> Record:
    """Make the record of the groups in a run. It may not name all of them.

    Each group comes before more partitions of another one, and those that failed come first.
    """
    left = _heads_first(found.left)
    shown = left[:SHOWN]
    named = {one.group for one in shown}
    more = found.more + len(left) - len(shown)
    unnamed = {one.group for one in left if one.why in WANTED} - named
    kept = replace(found, left=tuple(shown), more=more, unnamed=found.unnamed + len(unnamed))
    return Record(key=encode(["checkpoint", lane, run]), value=encode(CHECKPOINT.dump(kept)))


def _heads_first(left: Iterable[Left]) -> list[Left]:
    seen: set[str] = set()
    heads, rest = list[Left](), list[Left]()
    for one in sorted(left, key=lambda one: (one.why is not Why.FAILED, one.why not in WANTED)):
        (rest if one.group in seen else heads).append(one)
        seen.add(one.group)
    return [*heads, *rest]


def group_outcome(view: LedgerView, lane: str, run: str) -> GroupOutcome | None:
    """Return what a run's record shows; None when its groups were not processed (yet)."""
    for key, record in view.of_kind("checkpoint"):
        if key[1:] == [lane, run]:
            return read_as(record, _parse_outcome)
    return None


def newest_outcome(view: LedgerView, lane: str) -> GroupOutcome | None:
    """Return what the newest record of a lane shows; None when the ledger has none."""
    found = [record for key, record in view.of_kind("checkpoint") if key[1] == lane]
    return read_as(max(found, key=lambda one: one.offset), _parse_outcome) if found else None


def _parse_left(body: Json) -> Left:
    place = None if body["topic"] is None else TopicPartition(body["topic"], body["partition"])
    left = LEFT.load(body, place=place)
    return replace(left, message=read_sentence(left.message, body))


LEFT = Form(
    Left,
    F("group", says="empty: of all groups of a broker, or of the run"),
    F(
        "topic",
        lambda left: left.place.topic if left.place else None,
        typed(str | None),
        says="of the target; of the source where nothing of it is copied; null: the whole group",
    ),
    F("partition", lambda left: left.place.partition if left.place else None, typed(int | None)),
    F("why", kind=enum(Why)),
    F("message"),
    *OF_MESSAGE,
)

left_json = LEFT.dump
"""Return what was left, as the documented JSON object."""

OUTCOME = Form(
    GroupOutcome,
    F("groups", says="that offsets were written of"),
    F("offsets", says="written"),
    F("unchanged", says="offsets that were right already"),
    F(
        "inexact",
        kind=Kind(dict),
        least=None,
        says="written offsets by outcome (gap, ahead, before, again), where that is not exact",
    ),
    F("left", kind=many(replace(LEFT.kind, load=_parse_left))),
    F("more", says="left ones that are not named"),
    F(
        "again",
        default=0,
        omit=lambda found: not found.again,
        least=1,
        says="records at most that the written groups read again in repartitioned topics, where inexact has `again`",
    ),
    F("at_ms"),
    F(
        "latency_ms",
        "latency",
        AGES,
        default=None,
        says="from asking the source for offsets to the target's answer: the shortest, the mean, the longest, and of "
        "how many groups; null: none was written, or it is not known",
    ),
)

CHECKPOINT = Form(
    GroupOutcome,
    *head("checkpoint"),
    *OUTCOME.table,
    F("unnamed", lambda found: found.unnamed, omit=lambda found: not found.more),
)


def _parse_outcome(body: Json) -> GroupOutcome:
    return CHECKPOINT.load(body, unnamed=body["unnamed"] if "unnamed" in body else body["more"])
