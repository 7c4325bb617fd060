"""`ferry verify` of copies with identical offsets that have no receipt, or receipts of markers alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.features.identical.rules.empty import MOST_BYTES
from ferry.kafka.connect import codes
from ferry.model import Record, TopicPartition
from ferry.wire.batch import HEADER_BYTES
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import HEARTBEATS
from tests.pure.answers.world import World, world
from tests.pure.identical.test_slot import BROKER, SETTINGS
from tests.pure.scripted.faults import Fault

KEPT = ("a->b.ferry.offsets = identical", "a->b.ferry.offsets.may.lose = true", "a->b.ferry.offsets.may.pass = true")
LANE = "backfill-june"
BEGINS, AT_ONCE = 1_000, 400
"""Where a log begins, and the empty records of a batch."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A flow of two topics that has not run yet."""
    with world(tmp_path) as found:
        for name in ("orders", "audit"):
            found.a.topic(name, 1)
            found.produce(found.a, name, 0, 10)
        found.write("topics = orders, audit", *HEARTBEATS, *KEPT)
        found.b.settings |= SETTINGS | BROKER
        yield found


def died(made: World, *words: str) -> None:
    """A run, or another command that copies, writes records and dies before their receipts."""
    made.b.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
    assert made.ask(*(words or ("run", "a->b"))).code != 0


def after_one_of_orders(made: World) -> None:
    made.write("topics = orders", *HEARTBEATS, *KEPT)
    assert made.ask("run", "a->b").code == 0
    made.write("topics = orders, audit", *HEARTBEATS, *KEPT)


def left_out(answer: Any) -> list[tuple[str, str, int, int]]:
    return [(one["topic"], one["kind"], *one["source_range"]) for one in answer.body["not_compared"]]


@pytest.mark.slow
def test_records_without_any_receipt_are_compared(made: World) -> None:
    after_one_of_orders(made)
    died(made)
    found = made.ask("verify", "a->b")
    assert (found.code, found.body["records"], found.body["identical"], left_out(found)) == (0, 20, 20, []), found
    assert any("a.audit-0" in note for note in found.body["notes"])
    assert made.ask("verify", "a->b", "--topic", "audit").body["records"] == 10
    since = made.ask("verify", "a->b", "--topic", "audit", "--partition", "0", "--from", "4")
    assert (since.body["records"], left_out(since)) == (6, [])


def test_a_flow_without_any_receipt_is_compared_and_a_difference_is_found(made: World) -> None:
    died(made)
    assert made.ask("verify", "a->b").body["records"] == 20
    made.change(made.b, "a.audit", 0)
    found = made.ask("verify", "a->b")
    assert (found.code, {one["topic"] for one in found.body["differences"]}) == (1, {"audit"}), found


@pytest.mark.slow
@pytest.mark.parametrize(
    "narrow", [("--one-in", "2"), ("--topic", "audit", "--partition", "0", "--to", "5")], ids=["sample", "end"]
)
def test_what_ends_at_the_receipts_names_records_without_one(made: World, narrow: tuple[str, ...]) -> None:
    after_one_of_orders(made)
    died(made)
    assert ("audit", "not-copied", 0, 10) in left_out(made.ask("verify", "a->b", *narrow))


@pytest.mark.slow
def test_a_run_that_has_receipts_of_other_partitions_is_compared_alone(made: World) -> None:
    made.write("topics = orders", *HEARTBEATS, *KEPT)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.write("topics = orders, audit", *HEARTBEATS, *KEPT)
    died(made)
    found = made.ask("verify", "a->b", "--run", "r1")
    assert (found.code, found.body["records"], left_out(found)) == (0, 10, [])


def test_a_copy_among_its_empty_records_has_nothing_to_compare(made: World) -> None:
    after_one_of_orders(made)
    made.produce(made.a, "audit", 0, BEGINS)
    made.a.begins[TopicPartition("audit", 0)] = BEGINS
    made.b.settings["max.message.bytes"] = str(HEADER_BYTES + AT_ONCE * MOST_BYTES)
    fault = Fault(api="Produce", topic="a.audit", skip=1, code=codes.TOPIC_AUTHORIZATION_FAILED, times=99)
    made.b.faults.append(fault)
    assert made.ask("run", "a->b").code != 0
    assert made.b.log("a.audit", 0).end == AT_ONCE
    found = made.ask("verify", "a->b")
    assert (found.code, found.body["records"]) == (0, 10), found
    assert left_out(found) == [("audit", "not-copied", BEGINS, BEGINS)]


def transact(made: World, *, committed: bool) -> None:
    """A transaction of one record in `audit`, at the source."""
    audit, txns = TopicPartition("audit", 0), made.a.target
    producer, epoch = txns.init_producer("txn")
    identity = ProducerIdentity(producer_id=producer, producer_epoch=epoch, sequence=0, transactional=True)
    made.a.write_in("txn", audit, build_batch([Record(key=b"k", value=b"v")], made.now_ms, identity))
    txns.end_txn("txn", epoch, committed=committed)
    made.a.deliver_markers()


@pytest.mark.parametrize("how", [(), ("--without-ledger",)], ids=["ledger", "without"])
def test_markers_and_aborted_records_of_the_source_are_no_records_that_a_copy_lacks(
    made: World, how: tuple[str, ...]
) -> None:
    after_one_of_orders(made)
    transact(made, committed=False)
    transact(made, committed=True)
    made.produce(made.a, "audit", 0, 1)
    died(made)
    assert made.b.log("a.audit", 0).end == made.a.log("audit", 0).end == 10 + 2 + 2 + 1
    found = made.ask("verify", "a->b", *how)
    assert (found.code, found.body["differences"], found.body["records"]) == (0, [], 10 + 10 + 2), found
    assert made.ask("run", "a->b").code == 0
    found = made.ask("verify", "a->b", *how)
    assert (found.code, found.body["differences"], found.body["records"]) == (0, [], 10 + 10 + 2), found


def test_empty_records_before_markers_alone_are_deleted_by_the_run_that_has_a_record(made: World) -> None:
    audit = TopicPartition("audit", 0)
    transact(made, committed=True)
    first = made.a.begins[audit] = made.a.log("audit", 0).end - 1
    copy = TopicPartition("a.audit", 0)
    assert made.ask("run", "a->b").code == 0
    assert (made.b.log("a.audit", 0).end, made.b.begins.get(copy, 0)) == (first + 1, 0)
    made.produce(made.a, "audit", 0, 1)
    assert made.ask("run", "a->b").code == 0
    assert (made.b.log("a.audit", 0).end, made.b.begins.get(copy, 0)) == (first + 2, first)


def test_a_source_topic_that_is_gone_is_named(made: World) -> None:
    after_one_of_orders(made)
    died(made)
    del made.a.ids["audit"]
    del made.a.leaders[TopicPartition("audit", 0)]
    assert ("audit", "source-replaced", 0, 0) in left_out(made.ask("verify", "a->b"))


@pytest.mark.parametrize("again", [False, True])
def test_a_lane_that_was_dropped_has_nothing_to_compare_until_it_copies_again(made: World, again: bool) -> None:
    window = "--from-offset", "audit:0:2", "--to-offset", "audit:0:7"
    backfill, verify = ("backfill", "a->b", "--lane", LANE, *window), ("verify", "a->b", "--lane", LANE)
    assert made.ask(*backfill).code == 0
    assert made.ask(*verify).body["records"] == 5
    assert made.ask("lanes", "drop", "a->b", LANE, "--yes").code == 0
    if again:
        died(made, *backfill)
        assert (made.ask(*verify).body["records"], left_out(made.ask(*verify))) == (5, [])
        return
    found = made.ask(*verify)
    assert (found.code, found.body["error"]["kind"]) == (2, "bad-input")
