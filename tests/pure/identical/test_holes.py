"""The real slot passes holes of transactional sources, over scripted brokers: copies, crashes, late markers, damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.identical.acts import copier, data_writer, markers, slot
from ferry.features.identical.acts.markers import APART_MS, MARKING_MS, Markers
from ferry.features.identical.rules.marked import CHECK_MS
from ferry.features.identical.rules.planned import LEASE_MS
from ferry.kafka.connect import codes
from ferry.ledger.receipts import last_receipts, receipts
from ferry.model import LedgerRecord, Segment, Slice, TopicPartition
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from tests.pure.identical.marking import AFTER_ALL_MS, Marking, later
from tests.pure.identical.test_slot import DAY, found
from tests.pure.protocol.world import LANE, TOPIC
from tests.pure.scripted import partitions
from tests.pure.scripted.batches import GONE
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work, place
from tests.pure.scripted.wire import scripted
from tests.tiers import share

SHAPES = ["c", "ca", "rcarc", "aaa", "racracrac", "rrrc", "crrr"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_transactional_source_is_copied_offset_by_offset(shape: str) -> None:
    lane = Marking(shape, "rr")
    with at_work(lane):
        result = lane.run("r")
        assert (result.refusals, result.retries) == ({}, 0)
        assert lane.is_identical()
        last = last_receipts(lane.view(), LANE)[place(0)]
        end = lane.source.log(TOPIC).end
        assert (last.end, last.target_next, last.identical, last.missing) == (end, end, True, 0)
        assert last.control_batches == shape.count("c") + shape.count("a")
        assert last.aborted_batches == shape.count("a")
        assert (lane.until(0), lane.until(1)) == (0, None)


def test_segments_name_the_records_alone() -> None:
    lane = Marking("rcar")
    with at_work(lane):
        lane.run("r")
        assert last_receipts(lane.view(), LANE)[place()].segments == (
            Segment(source_start=0, target_start=0, count=2),
            Segment(source_start=5, target_start=5, count=1),
        )


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_the_next_runs_continue_after_markers(shape: str) -> None:
    lane = Marking(shape)
    with at_work(lane):
        for name in ("first", "second", "third"):
            result = lane.run(name)
            assert (result.refusals, lane.is_identical()) == ({}, True)
            lane.grow(shape)


@pytest.mark.slow
def test_chunks_and_requests_of_one_batch_are_the_same_copy() -> None:
    lane = Marking("rcarcarca", "carca")
    with at_work(lane):
        result = lane.run("r", chunk_bytes=1, request_bytes=1)
        assert (lane.is_identical(), result.refusals) == (True, {})
        assert lane.until() == 0


def test_a_long_hole_takes_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copier, "MOST_MARKERS", 3)
    lane = Marking("r")
    lane.produce_aborted(0, 20)
    lane.grow("r")
    with at_work(lane):
        assert lane.run("r").refusals == {}
        assert lane.is_identical()
        last = last_receipts(lane.view(), LANE)[place(0)]
        assert (last.aborted_batches, last.control_batches, last.missing) == (1, 1, 0)


def test_a_plan_that_ends_in_a_hole_ends_there() -> None:
    lane = Marking("rr")
    lane.produce_aborted(0, 5)
    lane.grow("rr")
    with at_work(lane):
        lane.most_records = 4
        assert lane.run("first").refusals == {}
        assert lane.same_up_to() == 4
        lane.most_records = None
        assert lane.run("second").refusals == {}
        assert lane.is_identical()


def test_without_the_permission_the_hole_is_refused_and_nothing_is_written_for_it() -> None:
    lane = Marking("rcr")
    lane.found = found()
    with at_work(lane):
        result = lane.run("r")
        assert [(one.code, dict(one.facts)["at"]) for one in result.refusals.values()] == [("identical.hole", 2)]
        assert (lane.same_up_to(), lane.until(), lane.target.count("WriteTxnMarkers")) == (2, None, 0)


def test_a_permission_that_was_taken_away_is_named_and_the_other_partitions_are_copied() -> None:
    lane = Marking("rcr", "rr")
    with at_work(lane):
        lane.target.faults.append(Fault(api="WriteTxnMarkers", code=codes.CLUSTER_AUTHORIZATION_FAILED, times=9))
        result = lane.run("r")
        assert [one.code for one in result.refusals.values()] == ["identical.hole"]
        assert (lane.same_up_to(0), lane.same_up_to(1)) == (2, 2)
        assert lane.ends() == {place(0): 2, place(1): 2}
        lane.target.faults.clear()
        assert lane.run("second").refusals == {}
        assert lane.is_identical()


@pytest.mark.slow
@pytest.mark.parametrize("code", [-1, 6, 7, 43])
def test_a_lasting_error_of_a_marker_leaves_its_partition_out_and_the_others_are_copied(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Marking("rcr", "rr")
    with at_work(lane):
        lane.target.faults.append(Fault(api="WriteTxnMarkers", code=code, times=1000))
        result = lane.run("r")
        assert [(at, one.code) for at, one in result.refusals.items()] == [(place(0), "target.fails")]
        assert lane.ends()[place(1)] == 2
        lane.target.faults.clear()
        with later(monkeypatch, AFTER_ALL_MS):
            assert lane.run("second").refusals == {}
        assert lane.is_identical()


def test_a_record_that_is_gone_is_refused_whoever_may_write_markers() -> None:
    lane = Marking("rrcrr")
    entries = lane.source.log(TOPIC).entries
    entries[4] = replace(entries[4], payload=GONE)
    with at_work(lane):
        result = lane.run("r")
        assert [(one.code, dict(one.facts)["at"]) for one in result.refusals.values()] == [("identical.absent", 4)]
        assert lane.target.log(TOPIC).end == 4


@pytest.mark.slow
@pytest.mark.parametrize("code", [5, 6, 7, 19, 20, 56])
@pytest.mark.parametrize("applied", [True, False])
def test_an_error_is_followed_by_a_look_and_the_run_continues(code: int, applied: bool) -> None:
    lane = Marking("rcarcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", code=code, applied=applied, skip=1))
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.refusals, result.retries) == (True, {}, 1)
        assert lane.until() == 0


@pytest.mark.slow
@pytest.mark.parametrize("applied", [True, False])
def test_a_marker_without_an_answer_stops_the_partition_until_it_cannot_arrive(
    applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Marking("rcrcr", "rr")
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True, applied=applied))
        result = lane.copy(attempt)
        assert {one.code for one in result.refusals.values()} == {"identical.not-quiet"}
        assert (lane.same_up_to(0), lane.same_up_to(1)) == (3 if applied else 2, 2)
        assert lane.until()
        for by_ms, done in ((0, False), (MARKING_MS, False), (AFTER_ALL_MS - 60_000, False), (AFTER_ALL_MS, True)):
            with later(monkeypatch, by_ms):
                result = lane.run(f"after-{by_ms}")
            refused = {one.code for one in result.refusals.values()}
            assert refused == (set() if done or (applied and by_ms > MARKING_MS) else {"identical.not-quiet"})
        assert (lane.is_identical(), lane.until()) == (True, 0)


def test_nothing_is_written_before_a_batch_can_prove_that_no_marker_is_late() -> None:
    """It would end at the next hole, and wait there for a lateness."""
    lane = Marking("rcrcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True, applied=True))
        lane.copy(attempt)
        result = lane.run("second")
        (refusal,) = result.refusals.values()
        facts = dict(refusal.facts)
        assert (refusal.code, facts["at"], facts["until"]) == ("identical.not-quiet", 3, lane.until())
        assert (lane.same_up_to(), lane.ends()) == (3, {place(): 3})


@pytest.mark.slow
def test_a_marker_that_arrived_costs_no_lateness(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Marking("rcrcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True, applied=True))
        lane.copy(attempt)
        assert lane.same_up_to() == 3
        with later(monkeypatch, MARKING_MS + APART_MS + 1_000):
            assert lane.run("second").refusals == {}
        assert (lane.is_identical(), lane.until()) == (True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_holes_without_a_receipt_get_one_after_a_crash(
    shape: str, split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`split`: the target does not take a batch of the source as it is, and a marker follows it."""
    lane = Marking("r")
    if split:
        lane.produce_committed(0, 1000)
        lane.target.settings = {"max.message.bytes": "2000"}
    lane.grow(shape)
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert (lane.is_identical(), lane.ends()) == (True, {})
        assert lane.run("second").refusals == {}
        assert lane.is_identical()
        (receipt,) = receipts(lane.view(), lane=LANE)
        end = lane.source.log(TOPIC).end
        assert (receipt.start, receipt.end, receipt.target_next, receipt.missing) == (0, end, end, 0)
        assert (receipt.transcoded > 0) is split
        assert receipt.control_batches == shape.count("c") + shape.count("a") + split
        assert receipt.aborted_batches == shape.count("a")
        lane.grow("rc")
        with later(monkeypatch, AFTER_ALL_MS):
            assert lane.run("third").refusals == {}
        assert (lane.is_identical(), lane.until()) == (True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3])
def test_a_late_marker_lands_in_its_hole_or_is_waited_for(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run's marker stays in the network, and it dies; the second one comes to the hole."""
    lane = Marking("rcrcr")
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        first = lane.begin(lane.open("first"))
        lane.start_with_late_markers(first, elsewhere)
        for number in range(most):
            result = lane.run(f"next-{number}")
            assert {one.code for one in result.refusals.values()} == {"identical.not-quiet"}
            assert lane.same_up_to() == 2
        lane.target.release()
        assert lane.same_up_to() == 3
        with later(monkeypatch, AFTER_ALL_MS):
            assert lane.run("last").refusals == {}
        assert lane.is_identical()


def test_a_leader_that_moves_right_after_markers_is_read_at_its_new_broker() -> None:
    lane = Marking("rcrcr", nodes=(1, 2))
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", then=lambda: lane.target.move_leader(place(), 2)))
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.refusals, result.retries) == (True, {}, 1)


def test_a_marker_that_fails_amid_others_of_its_request_is_sent_again() -> None:
    """Brokers answer once for all markers of a producer, with what the last one met."""
    lane = Marking("r")
    lane.produce_aborted(0, 4)
    lane.grow("r")
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def lose_one() -> None:
            lane.target.log(TOPIC).entries.pop()

        lane.target.faults.append(Fault(api="WriteTxnMarkers", then=lose_one))
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.refusals, result.retries) == (True, {}, 1)


MAX_AGE_MS = DAY - LEASE_MS - 2 * ((DAY - LEASE_MS) // 4)
"""How old the producer state may be whose sequence number is used."""


@pytest.mark.slow
def test_a_number_that_is_no_offset_is_not_used_when_its_producer_state_may_expire() -> None:
    lane = Marking("rc", "rr")
    with at_work(lane):
        lane.run("first")
        for number in (0, 1):
            lane.grow("rr", number)
        lane.target.aged_ms = MAX_AGE_MS + 1
        before_ms = wall_ms()
        result = lane.run("second")
        after_ms = wall_ms()
        (refusal,) = result.refusals.values()
        facts = dict(refusal.facts)
        assert (refusal.code, facts["at"], facts["place"]) == ("identical.expires", 3, str(place(0)))
        rest_ms = DAY - lane.target.aged_ms + CHECK_MS
        assert before_ms + rest_ms <= int(facts["until"]) <= after_ms + rest_ms
        assert (lane.same_up_to(0), lane.same_up_to(1)) == (3, 4)
        lane.target.expire()
        assert lane.run("third").refusals == {}
        assert lane.is_identical()


@pytest.mark.parametrize(("later_ms", "sent"), [(30_000, True), (60_000, False)])
def test_a_number_that_is_no_offset_is_sent_while_its_producer_state_is_young(
    later_ms: int, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot lives for longer than its producer state may age."""
    lane = Marking("rc")
    with at_work(lane):
        lane.run("first")
        lane.grow("r")
        lane.target.aged_ms = MAX_AGE_MS - 60_000
        attempt = lane.begin(lane.open("second"))

        def slept() -> int:
            monkeypatch.setattr(slot, "wall_ms", lambda: wall_ms() + later_ms)
            return wall_ms() + later_ms

        monkeypatch.setattr(data_writer, "wall_ms", slept)
        result = lane.copy(attempt)
        assert {one.code for one in result.refusals.values()} == (set() if sent else {"identical.expires"})
        assert (lane.is_identical(), lane.same_up_to(), result.retries) == (sent, 4 if sent else 3, 0 if sent else 1)


@pytest.mark.parametrize(("shape", "api"), [("rrr", "Produce"), ("arr", "WriteTxnMarkers")])
def test_each_batch_and_each_marker_renews_its_producer_state(
    shape: str, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Marking("rc")
    with at_work(lane):
        lane.run("first")
        lane.grow(shape)
        lane.target.aged_ms = MAX_AGE_MS - 60_000
        attempt = lane.begin(lane.open("second"))
        before = lane.target.count(api)
        monkeypatch.setattr(
            data_writer, "wall_ms", lambda: wall_ms() + (60_000 if lane.target.count(api) > before else 0)
        )
        result = lane.copy(attempt, request_bytes=1)
        assert (lane.is_identical(), result.retries, result.refusals) == (True, 0, {})


@pytest.mark.parametrize("shape", ["rc", "rcr", "ra"])
def test_a_foreign_record_right_before_a_marker_gets_no_receipt(shape: str) -> None:
    lane = Marking(shape)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        at = shape.count("c") + 1

        def foreign() -> None:
            log = lane.target.log(TOPIC)
            log.entries.insert(at, replace(log.entries[0], producer=77))

        lane.target.faults.append(Fault(api="WriteTxnMarkers", then=foreign))
        result = lane.copy(attempt)
        assert result.refusals
        assert lane.ends().get(place(), 0) <= at


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["c", "a", "rc"])
def test_producer_state_that_is_gone_changes_nothing(shape: str) -> None:
    lane = Marking("rrc")
    with at_work(lane):
        for name in ("first", "second", "third"):
            assert lane.run(name).refusals == {}
            assert lane.is_identical()
            lane.target.expire()
            lane.grow(shape + "rr")
        assert lane.run("last").refusals == {}
        assert lane.is_identical()


@pytest.mark.parametrize("late_ms", [MAX_SKEW_MS + 60_000, -MAX_SKEW_MS - 60_000, MAX_SKEW_MS - 60_000])
def test_a_slot_whose_clock_is_wrong_does_not_judge_by_it_when_markers_are_late(
    late_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Marking("rcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True))
        lane.copy(attempt)
        attempt = lane.begin(lane.open("second"))
        monkeypatch.setattr(partitions, "wall_ms", lambda: wall_ms() - late_ms)
        if abs(late_ms) > MAX_SKEW_MS:
            with pytest.raises(Refused):
                lane.copy(attempt)
            assert lane.same_up_to() == 2
        else:
            assert {one.code for one in lane.copy(attempt).refusals.values()} == {"identical.not-quiet"}


def test_a_clock_that_was_set_forward_after_it_was_compared_makes_no_slot_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, begin = Marking("rcr"), Markers.__init__

    def set_forward(it: Markers, *arguments: Any, **named: Any) -> None:
        begin(it, *arguments, **named)
        for module in (markers, slot):
            monkeypatch.setattr(module, "wall_ms", lambda: wall_ms() + DAY)

    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True))
        lane.copy(attempt)
        attempt = lane.begin(lane.open("second"))
        monkeypatch.setattr(Markers, "__init__", set_forward)
        assert {one.code for one in lane.copy(attempt).refusals.values()} == {"identical.not-quiet"}
        assert lane.same_up_to() == 2


def test_a_ledger_without_the_brokers_time_does_not_show_that_the_clock_is_right() -> None:
    lane = Marking("rcr")
    lane.target.stamps = False
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True))
        lane.copy(attempt)
        assert {one.code for one in lane.run("second").refusals.values()} == {"identical.clock.unstamped"}
        assert lane.until()


def test_a_machine_that_was_stopped_sends_no_marker_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that counts sleep did not count that; the wall clock was set again."""
    lane = Marking("rcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        opened = Markers.open

        async def then_stopped(it: Markers, places: Iterable[TopicPartition]) -> None:
            await opened(it, places)
            monkeypatch.setattr(markers, "wall_ms", lambda: wall_ms() + MARKING_MS + APART_MS)
            monkeypatch.setattr(Markers, "open", opened)

        monkeypatch.setattr(Markers, "open", then_stopped)
        result = lane.copy(attempt)
        assert (lane.is_identical(), result.retries, result.refusals) == (True, 1, {})


def test_a_clock_that_was_set_back_does_not_shorten_the_time_for_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Marking("rcr")
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True))
        opened = Markers.open

        async def set_back(it: Markers, places: Iterable[TopicPartition]) -> None:
            monkeypatch.setattr(markers, "wall_ms", lambda: wall_ms() - DAY)
            await opened(it, places)

        monkeypatch.setattr(Markers, "open", set_back)
        began = wall_ms()
        lane.copy(attempt)
        assert (lane.until() or 0) > began + MARKING_MS


@contextmanager
def early_readings(monkeypatch: pytest.MonkeyPatch, times: int) -> Iterator[None]:
    """That many readings of the ledger end where the run begins: a broker answers that leads no more."""
    left, learn = iter(range(times)), Markers.learn

    def early(
        it: Markers, pieces: Iterable[Slice], records: Iterable[LedgerRecord], end: int
    ) -> dict[TopicPartition, int | None]:
        if next(left, None) is None:
            return learn(it, pieces, records, end)
        return learn(it, pieces, [], 0)

    with monkeypatch.context() as patched:
        patched.setattr(Markers, "learn", early)
        yield


def test_a_record_about_markers_that_an_early_reading_did_not_show_is_seen_before_one_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task marks, late; another one of the same run does not see that in the ledger at first."""
    lane = Marking("rcr")
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        attempt = lane.begin(lane.open("r"))
        lane.start_with_late_markers(attempt, elsewhere)
        with early_readings(monkeypatch, 1):
            result = lane.copy(attempt)
        assert {one.code for one in result.refusals.values()} == {"identical.not-quiet"}
        lane.target.release()
        assert lane.same_up_to() == 3


@pytest.mark.slow
def test_an_early_reading_does_not_close_what_another_task_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other task has markers of an earlier run to close, and stops before the hole."""
    lane = Marking("rcr")
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True, applied=True))
        lane.copy(attempt)
        lane.grow("rcr")
        with later(monkeypatch, AFTER_ALL_MS):
            attempt = lane.begin(lane.open("second"))
            lane.start_with_late_markers(attempt, elsewhere)
            with early_readings(monkeypatch, 1):
                lane.copy(attempt)
            assert lane.until()


@pytest.mark.parametrize("times", [1, 99])
def test_a_marker_at_the_end_that_the_ledger_does_not_show_is_not_called_foreign_at_once(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Marking("rc", "r")
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)
        with early_readings(monkeypatch, times):
            result = lane.copy(attempt)
        refused = {one.code for one in result.refusals.values()}
        assert refused == (set() if times == 1 else {"target.unseen"})
        assert lane.same_up_to(1) == 1


@pytest.mark.slow
def test_a_marker_of_another_producer_is_foreign() -> None:
    lane = Marking("rcr")
    with at_work(lane):
        lane.run("first")
        lane.target.log(TOPIC).mark(77, 0, committed=True)
        lane.grow("r")
        result = lane.run("second")
        assert {one.code for one in result.refusals.values()} == {"identical.foreign"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "fate"),
    [
        *product(
            ("Produce", "WriteTxnMarkers", "EndTxn", "TxnOffsetCommit", "InitProducerId"),
            ("lost", "applied and lost", "error"),
        )
    ],
)
@pytest.mark.parametrize("skip", share(range(4), 1, 4))
def test_a_fault_at_any_step_disturbs_nothing(api: str, fate: str, skip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Marking("rrcraracr", "crc")
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        error = codes.COORDINATOR_NOT_AVAILABLE if api in ("EndTxn", "InitProducerId", "TxnOffsetCommit") else 7
        fault = Fault(
            api=api,
            skip=skip,
            lost="lost" in fate,
            applied="applied" in fate,
            code=error if fate == "error" else None,
        )
        lane.target.faults.append(fault)
        lane.copy(attempt, chunk_bytes=1)
        assert lane.same_up_to(0) + lane.same_up_to(1) > 0
        lane.target.faults.clear()
        with later(monkeypatch, AFTER_ALL_MS):
            assert lane.run("second").refusals == {}
        assert (lane.is_identical(), lane.until(0), lane.until(1)) == (True, 0, 0)
