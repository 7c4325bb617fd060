"""Receipts of units in the ledger: read as written, beside the others, and by no Ferry that does not know them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ferry.errors import BadInput
from ferry.ledger import codec
from ferry.ledger.codec import decode_key, decode_value
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.ledger.receipt_codec import parse_dealt_receipt, receipt_json, receipt_place, receipt_records
from ferry.ledger.receipts import heard_receipts, last_receipts, receipts
from ferry.ledger.run_codec import run_record
from ferry.ledger.runs import expired
from ferry.ledger.summary import parse_summary, rolled_up, seal_record, seals, summary_parts
from ferry.ledger.unit_codec import (
    era_record,
    eras,
    last_units,
    unit_receipts,
)
from ferry.model import Era, Fate, LedgerRecord, Reads, Receipt, Record, RunRecord, Segment, TopicPartition
from ferry.model.run import LOCAL
from ferry.protocol.slot import foreign_record
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, PLAN, RECEIPT, dealt_slice, reading, redealt

ERA = Era(
    source_topic="t",
    target_topic="a.t",
    since=4,
    begins=(3, 0),
    digest="d",
    partitions=2,
    source_topic_id="s",
    target_topic_id="i",
    spec='{"sql":"SELECT"}',
)
UNIT = dealt_slice(
    topic="t",
    target=TopicPartition("a.t", 1),
    starts=(3, 0),
    ends=(9, 4),
    slot=2,
    since=4,
    partitions=2,
    digest="d",
    target_next=7,
    target_end=8,
    epochs=(0, 3),
)
ONE = Receipt(
    flow=FLOW,
    lane=LANE,
    run="r1",
    generation=4,
    slot=2,
    source=TopicPartition("t", 1),
    target=TopicPartition("a.t", 1),
    start=3,
    end=10,
    target_next=10,
    segments=(Segment(source_start=3, target_start=7, count=3),),
    records=3,
    bytes=300,
    batches=1,
    digest="00000000",
    at_ms=5,
    since=4,
    transform_digest="d",
    target_epoch=2,
    reads=Reads(starts=(3, 0), ends=(9, 1), epochs=(1, None)),
)


def committed(*records: Record) -> LedgerView:
    return fold(lying(records), len(records))


def lying(records: tuple[Record, ...], fate: Fate = Fate.COMMITTED) -> list[LedgerRecord]:
    return [
        LedgerRecord(offset=at, key=one.key, value=one.value, fate=fate, producer_id=1)
        for at, one in enumerate(records)
    ]


def test_a_receipt_is_read_as_it_was_written_and_is_the_position() -> None:
    later = redealt(ONE, starts=(9, 1), ends=(9, 4), target_start=10, target_next=11, records=1)
    view = committed(*receipt_records(ONE), *receipt_records(later), era_record(LANE, ERA))
    assert parse_dealt_receipt(receipt_json(ONE)) == ONE
    assert unit_receipts(view, LANE, "r1", 4) == [ONE, later]
    assert unit_receipts(view, LANE, "r1", 5) == []
    assert last_units(view, LANE) == {ONE.target: later}
    assert last_units(view, "other") == {}
    assert eras(view, LANE) == {"a.t": ERA}


def test_readers_of_the_other_receipts_pass_units_over() -> None:
    records = (*receipt_records(RECEIPT), *receipt_records(ONE))
    view = committed(*records)
    assert last_receipts(view, LANE) == {RECEIPT.target: RECEIPT}
    assert list(receipts(view)) == [RECEIPT]
    assert heard_receipts(lying(records), "last", LANE, RECEIPT.generation) == ([RECEIPT], None)


def test_a_ferry_that_reads_format_1_alone_stops(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(codec, "IDENTICAL_VERSION", 1)
    for record in (*receipt_records(ONE), era_record(LANE, ERA)):
        with pytest.raises(BadInput) as caught:
            decode_value(record.value or b"", "it")
        golden(caught.value)


def test_a_plan_keeps_its_units_and_says_that_it_has_some() -> None:
    units = (
        UNIT,
        reading(UNIT, source=TopicPartition("t", 2), target=TopicPartition("a.t", 2)),
        reading(UNIT, starts=(4, 4), slot=3),
    )
    for plan, version in ((PLAN, 1), (replace(PLAN, slices=units), 2)):
        *parts, seal = plan_records(plan, part_bytes=100)
        values = {decode_key(one.key)[4]: one.value or b"" for one in parts}
        assert parse_plan(values, seal.value or b"", "plan") == plan
        assert json.loads(seal.value or b"")["head"]["v"] == version
    assert replace(PLAN, slices=units).row_slots == (2, 3)


def test_a_summary_keeps_positions_and_rules_and_leaves_the_receipts_where_they_lie() -> None:
    records = (*receipt_records(ONE), era_record(LANE, ERA))
    view = rolled_up(committed(*records))
    parts = summary_parts(view, 9)
    seal = seal_record(parts, view, 9, 3, 0)
    behind = [
        LedgerRecord(offset=3 + at, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=-1)
        for at, one in enumerate([*parts, seal])
    ]
    found = parse_summary(seals(behind)[0], behind)
    assert found is not None
    assert last_units(found, LANE) == {ONE.target: ONE}
    assert eras(found, LANE) == {"a.t": ERA}
    assert unit_receipts(found, LANE, "r1", 4) == []
    assert found.rolled.left == {receipt_records(ONE)[0].key.decode(): 0}
    altered = [replace(behind[0], value=(behind[0].value or b"") + b"\n"), *behind[1:]]
    assert parse_summary(seals(altered)[0], altered) is None, "it is not what was sealed"
    assert parse_summary(seals(behind)[0], behind[1:]) is None


def test_receipts_go_with_their_run_and_positions_stay() -> None:
    runs = [
        run_record(RunRecord(flow=FLOW, lane=LANE, run=name, slots=1, config_digest="", started_ms=0, origin=LOCAL))
        for name in ("r1", "r2", "r3")
    ]
    view = committed(runs[0], *receipt_records(ONE), *runs[1:])
    gone = {decode_key(one.key)[0] for one in expired(view, LANE, keep=1)}
    assert gone == {"run", "unit"}


def test_what_stands_against_a_commit(golden: Golden) -> None:
    own, other = receipt_records(ONE), receipt_records(redealt(ONE, starts=(9, 1), ends=(9, 2)))
    records = lying((*own, *other))

    def why(found: list[LedgerRecord], start: int, own_offsets: tuple[int, ...] = (0, 1)) -> str | None:
        return foreign_record(
            found, lane=LANE, generation=4, own_offsets=frozenset(own_offsets), starts={ONE.target: start}
        )

    golden(why(records, 3))
    assert why(records, 11) is None  # it ends there: an earlier chunk that was read late
    assert why(lying((*own, *other), Fate.ABORTED), 3, ()) is None
    assert why(lying(own), 3) is None
    (own_record, _) = lying(own, Fate.OPEN)
    assert receipt_place(own_record, LANE) == ONE.target
    assert receipt_place(own_record, "other") is None
