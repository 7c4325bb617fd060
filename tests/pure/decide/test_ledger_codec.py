"""What Ferry writes to the ledger it reads again, whatever the names; what others wrote it names."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from ferry.errors import BadInput
from ferry.ledger.adoption_codec import parse_adoption
from ferry.ledger.codec import (
    IDENTICAL_VERSION,
    claim_record,
    decode_key,
    decode_value,
    encode,
    gap_record,
    lifted_record,
    parse_gap,
    parse_pause,
    pause_record,
    resume_record,
)
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt, receipt_json, receipt_records
from ferry.ledger.run_codec import (
    Outcome,
    fenced_record,
    outcome_record,
    parse_refusal,
    parse_run,
    refusal_json,
    run_record,
)
from ferry.ledger.slice_codec import change_json, parse_change, parse_slice, slice_json
from ferry.ledger.switch_codec import parse_switch
from ferry.model import (
    Fate,
    Gap,
    LedgerRecord,
    Pause,
    Receipt,
    Record,
    Refusal,
    RefusalKind,
    Resolution,
    RunRecord,
    Slice,
    ThrottleTime,
    TopicChange,
)
from tests.golden import Golden
from tests.pure.decide.values import (
    FLOW,
    RECEIPT,
    changes,
    gaps,
    pauses,
    place,
    receipts,
    refusals,
    run_of,
    runs,
    slices,
)

NEW_IN_RUNS = {"deployment", "took_over"}


def body(record: Record) -> dict[str, object]:
    assert record.value is not None
    return decode_value(record.value, "here")


@given(runs)
def test_runs_come_back(run: RunRecord) -> None:
    assert parse_run(body(run_record(run))) == run


@pytest.mark.parametrize(
    "value",
    ["\udce4", {"why": "W\udce4hrung"}, {"\ud800": 1}, ["run", ["r\udfff"]]],
    ids=["text", "value", "key", "list"],
)
def test_what_no_reader_takes_is_never_encoded(value: object, golden: Golden) -> None:
    with pytest.raises(BadInput) as refused:
        encode(value)
    golden(refused.value)


@pytest.mark.parametrize("text", ["\\udce4", "\U0001f600", "Währung"])
def test_a_text_that_utf8_can_write_comes_back(text: str) -> None:
    assert decode_value(encode({"why": text}), "here") == {"why": text}


def test_a_run_of_an_earlier_ferry_names_no_deployment() -> None:
    old = {key: value for key, value in body(run_record(run_of("r1"))).items() if key not in NEW_IN_RUNS}
    assert len(old) == len(body(run_record(run_of("r1")))) - 2
    assert parse_run(old) == replace(run_of("r1"), deployment="", took_over="")


@given(receipts)
def test_receipts_come_back_under_both_keys(receipt: Receipt) -> None:
    own, last = receipt_records(receipt)
    target = receipt.target
    assert parse_receipt(body(own)) == receipt
    assert own.value == last.value
    since = [] if receipt.since < 0 else [receipt.since]
    assert decode_key(own.key) == ["receipt", receipt.lane, target.topic, target.partition, receipt.start, *since]
    assert decode_key(last.key) == ["last", receipt.lane, target.topic, target.partition]


def test_gaps_of_different_logs_and_reasons_do_not_replace_one_another() -> None:
    gap = Gap(source=place("orders"), start=40, end=51, why=RefusalKind.RETENTION_PASSED, run="r", at_ms=1)
    others = [replace(gap, since=7), replace(gap, why=RefusalKind.STUCK), replace(gap, why=RefusalKind.STUCK, since=7)]
    assert len({gap_record("live", one).key for one in (gap, *others)}) == 4
    assert decode_key(gap_record("live", gap).key) == ["gap", "live", "orders", 0, 40], "as earlier versions wrote it"


def test_a_gap_of_an_earlier_version_is_a_skip() -> None:
    body = {
        "topic": "orders",
        "partition": 0,
        "start": 40,
        "end": 51,
        "why": "retention-passed",
        "run": "r",
        "at_ms": 1,
    }
    assert parse_gap(body) == Gap(
        source=place("orders"),
        start=40,
        end=51,
        why=RefusalKind.RETENTION_PASSED,
        run="r",
        at_ms=1,
        how=Resolution.SKIP,
    )


def test_a_receipt_from_before_throttles_were_told_says_that_there_was_none() -> None:
    older = receipt_json(replace(RECEIPT, throttled=ThrottleTime(ferry=7)))
    del older["throttled_ms"]
    assert parse_receipt(older) == RECEIPT


def test_a_receipt_from_before_target_epochs_knows_of_none() -> None:
    older = receipt_json(replace(RECEIPT, target_epoch=6))
    del older["target_epoch"]
    assert parse_receipt(older) == replace(RECEIPT, target_epoch=None)


@given(pauses)
def test_pauses_come_back(pause: Pause) -> None:
    assert parse_pause(body(pause_record(pause))) == pause
    assert resume_record(pause.topic) == Record(key=pause_record(pause).key, value=None)


@given(gaps)
def test_gaps_come_back(gap: Gap) -> None:
    assert parse_gap(body(gap_record("live", gap))) == gap


@given(refusals)
def test_refusals_come_back(refusal: Refusal) -> None:
    assert parse_refusal(json.loads(encode(refusal_json(refusal)))) == refusal


@pytest.mark.slow
@given(slices)
def test_slices_come_back(piece: Slice) -> None:
    assert parse_slice(json.loads(encode(slice_json(piece)))) == piece


@given(slices, changes)
def test_a_plan_with_a_field_that_is_not_known_is_not_carried_out(piece: Slice, change: TopicChange) -> None:
    for parse, body in ((parse_slice, slice_json(piece)), (parse_change, change_json(change))):
        with pytest.raises(TypeError):
            parse({**body, "of_a_newer_ferry": 1})


@pytest.mark.parametrize("pair", [[1, 2, 3], [1], "12"], ids=repr)
def test_a_pair_of_an_adoption_is_two_numbers(pair: object) -> None:
    good = dict.fromkeys(("lane", "run", "topic", "target_topic", "where", "who", "source_topic_id"), "")
    good |= dict.fromkeys(("target_topic_id", "source_cluster_id", "target_cluster_id"), "")
    numbers = ("generation", "partition", "target_partition", "start", "end", "target_start", "target_next", "at_ms")
    body = {**good, **dict.fromkeys((*numbers, "source_epoch", "since"), 1), "flow": "a->b", "by": "mm2"}
    assert parse_adoption({**body, "pairs": [[1, 2]]}).pairs == ((1, 2),)
    found = LedgerRecord(
        offset=7, key=b'["adopted"]', value=encode({**body, "pairs": [pair]}), fate=Fate.COMMITTED, producer_id=-1
    )
    with pytest.raises(BadInput, match="offset 7"):
        read_as(found, parse_adoption)


@pytest.mark.parametrize("options", ["text", ["stop"], None], ids=repr)
def test_options_of_a_switch_are_an_object(options: object) -> None:
    body = {"id": "s", "verb": "failover", "flow": "a->b", "via": "a->b", "who": "ann", "approved_by": ""}
    with pytest.raises((TypeError, AttributeError)):
        parse_switch({**body, "approved_ms": 0, "at_ms": 0, "options": options})


@given(changes)
def test_topic_changes_come_back(change: TopicChange) -> None:
    assert parse_change(json.loads(encode(change_json(change)))) == change


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (run_record(run_of("r1")), '["run","live","r1"]'),
        (fenced_record("live", "r1", 3, 2, [RECEIPT.flow]), '["fenced","live"]'),
        (receipt_records(RECEIPT)[0], '["receipt","live","a.orders",0,0]'),
        (receipt_records(RECEIPT)[1], '["last","live","a.orders",0]'),
        (outcome_record("live", "r1", Outcome()), '["outcome","live","r1"]'),
        (claim_record("a.orders", FLOW, "live"), '["claim","a.orders","live"]'),
        (resume_record(""), '["pause",""]'),
    ],
)
def test_keys_are_the_documented_ones_so_that_compaction_keeps_the_last_of_each(record: Record, key: str) -> None:
    assert record.key.decode() == key


def test_equal_values_give_equal_bytes() -> None:
    assert encode({"b": 1, "a": 2}) == encode({"a": 2, "b": 1}) == b'{"a":2,"b":1}'
    assert receipt_records(RECEIPT) == receipt_records(replace(RECEIPT))


def test_a_newer_ledger_is_refused_with_the_remedy(golden: Golden) -> None:
    value = encode({"v": IDENTICAL_VERSION + 1})
    with pytest.raises(BadInput) as caught:
        decode_value(value, "run record at 7")
    golden(caught.value)


@pytest.mark.parametrize("key", [b"mine", b"{}", b"[]", b"7", b"\xff", b""])
def test_a_foreign_key_has_no_parts(key: bytes) -> None:
    assert decode_key(key) == []


@pytest.mark.parametrize("value", [b"mine", b"[]", b"7", b"\xff", b"", b'{"v":"new"}'])
def test_a_foreign_value_is_named(value: bytes, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        decode_value(value, "record at 7")
    golden(caught.value)


def test_a_pause_that_was_lifted_keeps_whose_it_was_and_who_lifted_it() -> None:
    pause = Pause(topic="audit", who="ann@desk-7", why="upgrade", since_ms=1)
    record = lifted_record(pause, "bob@desk-8", 5)
    kept = parse_pause(json.loads(record.value or b""))
    assert (kept.who, kept.lifted_by, kept.lifted_ms) == ("ann@desk-7", "bob@desk-8", 5)
    assert not kept.holds_at(2), "whatever a clock says"
    assert kept.until_ms == 5, "an earlier Ferry reads that its time is over"
    assert b"lifted" not in (pause_record(pause).value or b"")
