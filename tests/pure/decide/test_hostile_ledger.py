"""A wrong or hostile record of the ledger is one BadInput with its offset, or means nothing; never another error."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import pytest

from ferry.errors import BadInput, Refused
from ferry.features.archive.rules.export import Exported, record_line
from ferry.features.groups.rules.codec import held_groups, saved_groups, snapshots
from ferry.features.sink.rules.batch_state import standing
from ferry.features.switch.rules.approvals import approval_of_run
from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.checkpoint_codec import group_outcome
from ferry.ledger.codec import compact
from ferry.ledger.history import past_runs
from ferry.ledger.ledger import LedgerView, accounted, claims, fold, gaps, pauses, shared_topics
from ferry.ledger.map_rows import newer_rows
from ferry.ledger.mirror_state import mirror_state
from ferry.ledger.own_acls import due_in_ms, own_acls
from ferry.ledger.producer_codec import identical_lanes, lane_producer, own_producers, sent_places
from ferry.ledger.pruning import pruned
from ferry.ledger.rebuilt import newest_rebuild
from ferry.ledger.receipts import heard_receipts, last_receipts, open_receipts, receipts
from ferry.ledger.runs import has_run, newer_attempt, outcome, sealed_plan, slots_to_fence
from ferry.ledger.summary import parse_summary, rolled_up, seals
from ferry.ledger.switch_codec import open_switches, switch_states
from ferry.ledger.unit_codec import eras, last_units, narrowed_units, unit_receipts
from ferry.ledger.verified_codec import run_verified
from ferry.ledger.window_codec import dropped_lanes, recorded_windows
from ferry.model import LedgerRecord, Record
from ferry.plan.rules.starts import recorded_starts
from ferry.plan.rules.tombstones import seen_to_end
from ferry.protocol.slot import foreign_record
from tests.golden import Golden
from tests.pure.decide.test_ledger_document import documented
from tests.pure.decide.values import RECEIPT, lying
from tests.tiers import share

Read = Callable[[LedgerView], object]

DOCUMENTED = documented()
LANE = "live"
RUN = "manual__2026-11-20"
_NUMBERS = (-1, 2**64, 1.5, math.inf, math.nan, 1e308)
STRANGE: tuple[Any, ...] = (None, *_NUMBERS, "x", "\ud800", [], [[]], {}, {"v": 1}, True)

SHARES = 12
"""One in so many wrong values of the fields, where tables run in part: of each field one or two, of a record all."""

READERS: Mapping[str, Read] = {
    "accounted": lambda view: accounted(view, LANE),
    "approvals": lambda view: [approval_of_run(view, key[1]) for key, _ in view.of_kind("approval")],
    "adoptions": lambda view: list(adoptions(view, LANE)),
    "attempt": lambda view: newer_attempt(view, LANE, RUN, 4711, 0),
    "claims": claims,
    "dropped": lambda view: list(dropped_lanes(view)),
    "due": lambda view: due_in_ms(view, LANE, interval_s=600, settings="", now_ms=1),
    "eras": lambda view: eras(view, LANE),
    "gaps": lambda view: gaps(view, LANE),
    "has run": lambda view: has_run(view, LANE),
    "groups": lambda view: held_groups(view, LANE, lambda _: True),
    "lasts": lambda view: last_receipts(view, LANE),
    "mirror": lambda view: mirror_state(view, LANE),
    "open": lambda view: list(open_receipts(view, LANE)),
    "outcome": lambda view: outcome(view, LANE, RUN),
    "checkpoint": lambda view: group_outcome(view, LANE, RUN),
    "own acls": lambda view: own_acls(view, LANE),
    "past": lambda view: past_runs(view, LANE, 100),
    "pauses": lambda view: pauses(view, 1),
    "plan": lambda view: sealed_plan(view, LANE, RUN, 4711),
    "producers": lambda view: (lane_producer(view, LANE), own_producers(view, LANE), identical_lanes(view)),
    "pruned": pruned,
    "rebuilt": newest_rebuild,
    "receipts": lambda view: list(receipts(view, lane=LANE)),
    "rolled up": rolled_up,
    "rows": lambda view: newer_rows(view, lambda _: True, None),
    "seen": lambda view: seen_to_end(view, LANE, {}),
    "sent": lambda view: sent_places(view, LANE),
    "share": shared_topics,
    "slots": lambda view: slots_to_fence(view, LANE),
    "snapshots": lambda view: [saved_groups(view, LANE, name) for name in snapshots(view, LANE)],
    "starts": lambda view: recorded_starts(view, LANE, {}),
    "switches": lambda view: (switch_states(view), open_switches(view)),
    "units": lambda view: (last_units(view, LANE), narrowed_units(view, LANE, None, None)),
    "unit receipts": lambda view: unit_receipts(view, LANE, RUN, 4711),
    "verified": lambda view: run_verified(view, LANE, RUN),
    "windows": lambda view: recorded_windows(view, LANE),
}
"""Who reads a view; a reader that is not here is not held against hostile records."""


@lru_cache
def exported(record: Record) -> bytes:
    """The record's line in an export; of a record that others are changed beside, once."""
    return record_line(Exported(offset=0, record=record))


def read_all(records: list[LedgerRecord]) -> tuple[int, list[str]]:
    """How many readers were content, and the sentences of those that were not; any other exception is a failure."""
    content, sentences = 0, []

    def tried(read: Callable[[], object]) -> None:
        nonlocal content
        try:
            read()
            content += 1
        except (BadInput, Refused) as error:
            sentences.append(str(error))

    for one in records:
        tried(partial(exported, Record(key=one.key, value=one.value)))
    tried(lambda: [parse_summary(seal, records) for seal in seals(records)])
    tried(lambda: heard_receipts(records, "receipt", LANE, 4711))
    starts = {RECEIPT.target: -1}
    tried(lambda: foreign_record(records, lane=LANE, generation=-1, own_offsets=frozenset(), starts=starts))
    told = len(sentences)
    tried(lambda: standing(records, 7, "sink"))  # the ledger of applications has other values
    del sentences[told:]
    try:
        view = fold(records, 99)
    except BadInput as error:
        return content, [*sentences, str(error)]
    for read in READERS.values():
        tried(partial(read, view))
    return content, sentences


def mutated(value: Any, rng: random.Random) -> Any:
    """The same JSON with one thing in it that is otherwise."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        found = dict(value)
        if rng.random() < 0.25:
            del found[name]
        else:
            found[name] = mutated(found[name], rng)
        return found
    if isinstance(value, list) and value and rng.random() < 0.9:
        items = list(value)
        at = rng.randrange(len(items))
        if rng.random() < 0.25:
            del items[at]
        else:
            items[at] = mutated(items[at], rng)
        return items
    return rng.choice(STRANGE)


def mutations(record: Record, rng: random.Random) -> Record:
    """A record with another value, another key, or bytes that are no JSON."""
    key, value = record.key, record.value or b""
    match rng.randrange(10):
        case 0:
            value = rng.choice(
                [b"", b"{", b"[" * 200_000, b'{"v":1}', b"{}", b"null", b"\xff", b'{"v":1,"a":' + b"[" * 9_999]
            )
        case 1:
            key = json.dumps(mutated(json.loads(key), rng), separators=(",", ":")).encode()
        case 2:
            key = key[: rng.randrange(len(key))]
        case _:
            lines = value.split(b"\n")
            at = rng.randrange(len(lines))
            lines[at] = json.dumps(mutated(json.loads(lines[at]), rng), separators=(",", ":")).encode()
            value = b"\n".join(lines)
    return Record(key=key, value=value)


def fields_of(record: Record) -> Iterator[Record]:
    """The record without each of its fields, and with each of them of another kind."""
    if b"\n" in (record.value or b""):
        return
    body = json.loads(record.value or b"{}")
    for name in body:
        yield Record(key=record.key, value=compact({key: value for key, value in body.items() if key != name}))
        for strange in STRANGE:
            yield Record(key=record.key, value=compact({**body, name: strange}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "at",
    [
        pytest.param(at, id=one.key.decode()[:60], marks=pytest.mark.slow if at % 4 else ())
        for at, one in enumerate(DOCUMENTED)
    ],
)
def test_each_field_of_each_record_may_be_missing_or_of_another_kind(at: int) -> None:
    others = DOCUMENTED[:at], DOCUMENTED[at + 1 :]
    for wrong in share(fields_of(DOCUMENTED[at]), at, SHARES):
        _, sentences = read_all(lying(*others[0], wrong, *others[1]))
        for sentence in sentences:
            assert any(word in sentence for word in ("offset", "plan of run", "of switch")), sentence


@pytest.mark.parametrize("value", [b"{}", b"[" * 200_000, b'{"v":' + b"[" * 200_000, b"", b'{"v":1,"x":"\\ud800"}'])
@pytest.mark.parametrize("kind", sorted({json.loads(one.key)[0] for one in DOCUMENTED}))
def test_a_value_that_is_none_of_ferrys_names_its_offset_or_means_nothing(kind: str, value: bytes) -> None:
    for one in [one for one in DOCUMENTED if json.loads(one.key)[0] == kind]:
        read_all(lying(Record(key=one.key, value=value)))


@pytest.mark.parametrize(
    "key",
    [b'["run"]', b'["acl",1]', b'["plan","live","x",1,[]]', b'["last","live","t","0"]', b'["producer","live","t"]'],
)
def test_a_key_that_is_none_of_ferrys_means_nothing(key: bytes) -> None:
    _, sentences = read_all(lying(Record(key=key, value=b"{}")))
    assert not sentences
    assert not fold(lying(Record(key=key, value=b"{}")), 1).by_key


@pytest.mark.parametrize("at", range(len(DOCUMENTED)), ids=lambda at: DOCUMENTED[at].key.decode()[:60])
def test_a_key_with_fewer_or_more_parts_ends_as_declared(at: int) -> None:
    parts = json.loads(DOCUMENTED[at].key)
    for wrong in (*(parts[:count] for count in range(1, len(parts))), [*parts, "x"]):
        read_all(lying(Record(key=compact(wrong), value=b"{}")))
        read_all(lying(Record(key=compact(wrong), value=DOCUMENTED[at].value)))


def test_a_run_record_without_fields_says_where_it_lies_and_what_to_do(golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        fold(lying(Record(key=b'["run","live","x"]', value=b"{}")), 1)
    golden(wrong.value)


def test_mutated_ledgers_end_as_declared() -> None:
    rng = random.Random(20)
    for _ in range(60):
        read_all(lying(*(mutations(one, rng) if rng.random() < 0.1 else one for one in DOCUMENTED)))


@pytest.mark.parametrize("kind", ["run", "fenced"])
def test_a_record_with_more_slots_than_anybody_could_fence_is_named(kind: str, golden: Golden) -> None:
    one = next(one for one in DOCUMENTED if json.loads(one.key)[0] == kind)
    wrong = Record(key=one.key, value=compact({**json.loads(one.value or b""), "slots": 2**40}))
    with pytest.raises(BadInput) as caught:
        slots_to_fence(fold(lying(wrong), 1), json.loads(one.key)[1])
    golden(caught.value)


@pytest.mark.parametrize(
    ("kind", "read", "more"),
    [
        ("pause", "pauses", {"since_ms": "yesterday"}),
        ("pause", "pauses", {"since_ms": True}),
        ("gap", "gaps", {"partition": 2.5}),
        ("verified", "verified", {"not_compared": [7]}),
        ("accounted", "accounted", {"offsets": [[0, 512], [1, "x"], [2, 40]]}),
    ],
    ids=["a text", "a truth value", "a field of a part", "an entry of a list", "a partition"],
)
def test_a_field_of_another_kind_is_named_with_its_value(
    kind: str, read: str, more: Mapping[str, Any], golden: Golden
) -> None:
    one = next(one for one in DOCUMENTED if json.loads(one.key)[0] == kind)
    wrong = Record(key=one.key, value=compact({**json.loads(one.value or b""), **more}))
    with pytest.raises(BadInput) as caught:
        READERS[read](fold(lying(wrong), 1))
    golden(caught.value)
