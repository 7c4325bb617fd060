"""What the ledger says of where a lane continues after records of clients, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ferry.features.identical.acts.markers import markers_request
from ferry.features.identical.rules import late
from ferry.features.identical.rules.late import GENERATION, senders, stopped_at
from ferry.features.identical.rules.late import LANE as OF_LANE
from ferry.features.identical.rules.planned import continuing, with_identical, without_unfit
from ferry.features.verify.rules.compare_ranges import after_clients
from ferry.ledger.codec import IDENTICAL_VERSION
from ferry.ledger.copied import Copied
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.ledger.producer_codec import (
    Continued,
    continued,
    continued_record,
    continued_since,
    identical_lanes,
    own_producers,
    producer_record,
    receipts_of_now,
    sent_places,
)
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.switch_codec import done_records, switch_record
from ferry.model import PLAN_VERSION, Flow, Receipt, Record, Segment, TopicPartition
from ferry.model.switch import Evidence, Step, StepDone, Switch, Verb
from tests.pure.decide.values import RECEIPT, lying, place
from tests.pure.identical.test_planned import ORDERS, PIECE, PLAN, found
from tests.pure.identical.test_slot import Identical
from tests.pure.protocol.world import LANE
from tests.pure.scripted.lane import at_work

HERE, OTHER = place("orders"), place("orders", 1)
RETURN = Continued(at=50, producer_id=9, run="s-reverse", at_ms=7, source_topic_id="new", source_cluster_id="cluster-a")
OLD = replace(RECEIPT, target=HERE, identical=True)
"""It ends at offset 40."""


def view_of(*records: Record) -> LedgerView:
    return fold(lying(*records), 99)


def received(one: Receipt) -> list[Record]:
    return list(receipt_records(one))


# The ledger.


def test_the_newest_record_counts_of_the_lane_alone_and_comes_back_as_it_was() -> None:
    newer = replace(RETURN, at=60, producer_id=10, source_topic_id="")
    records = [
        continued_record("live", HERE, RETURN),
        continued_record("live", HERE, newer),
        continued_record("live", OTHER, RETURN),
        continued_record("drill", HERE, RETURN),
    ]
    view = view_of(*records)
    assert continued(view, "live") == {HERE: newer, OTHER: RETURN}
    assert [continued_since(view, lane) for lane in ("live", "drill", "other")] == [2, 3, -1]
    assert sent_places(view, "live") == {HERE, OTHER}, "batches may come there, also without a receipt"
    assert identical_lanes(view) == ["drill", "live"]


def test_a_lane_has_the_producer_id_of_its_first_copy_and_one_of_each_return() -> None:
    first = producer_record("live", producer_id=5, run="r", at_ms=1)
    returned = [continued_record("live", one, replace(RETURN, producer_id=id_)) for one, id_ in ((HERE, 9), (OTHER, 8))]
    assert own_producers(view_of(), "live") == frozenset()
    assert own_producers(view_of(first), "live") == {5}
    assert own_producers(view_of(*returned), "live") == {8, 9}
    assert own_producers(view_of(first, *returned), "live") == {5, 8, 9}


@pytest.mark.parametrize(
    ("last", "at", "ids"),
    [
        (OLD, 50, ("new", "cluster-a")),
        (OLD, 40, ("new", "cluster-a")),
        (OLD, 39, ("id-orders", "cluster-a")),
        (replace(OLD, start=50, end=70, target_next=70), 50, ("id-orders", "cluster-a")),
    ],
    ids=["clients wrote after it", "no client wrote", "an older return", "it is from after the return"],
)
def test_a_receipt_from_before_a_return_has_the_ids_of_the_source_from_which_the_lane_continues(
    last: Receipt, at: int, ids: tuple[str, str]
) -> None:
    view = view_of(*received(last), continued_record("live", HERE, replace(RETURN, at=at)))
    (now,) = receipts_of_now(view, "live").values()
    assert (now.source_topic_id, now.source_cluster_id) == ids
    assert (now.start, now.end, now.target_next) == (last.start, last.end, last.target_next)


def test_a_partition_that_clients_did_not_use_keeps_its_receipt_and_one_without_a_receipt_gets_none() -> None:
    view = view_of(*received(OLD), continued_record("live", OTHER, RETURN))
    assert receipts_of_now(view, "live") == {HERE: OLD}


# A plan.


@pytest.mark.parametrize(("next_of", "begins"), [(None, 50), (40, 50), (50, 50), (70, 70)])
def test_a_slice_continues_after_records_of_clients_or_after_later_receipts(next_of: int | None, begins: int) -> None:
    piece = replace(PIECE, target_next=next_of)
    assert continuing(piece, {HERE: RETURN}) == replace(piece, continued_at=50, target_next=begins)
    assert continuing(piece, {OTHER: RETURN}) == piece


def test_a_plan_of_a_return_has_its_producer_id_and_no_empty_records_and_a_format_of_its_own() -> None:
    """Its log does not begin with what the lane wrote, and nothing before the cut-over may be deleted."""
    piece = replace(PIECE, start=50, log_start=20, target_end=50, first=False)
    other = replace(PIECE, source=OTHER, target=OTHER)
    facts = found(
        continued={ORDERS: RETURN}, may_pass=True, may_lose=True, sent={ORDERS: frozenset({0})}, begins={ORDERS: 0}
    )
    plan = with_identical(replace(PLAN, slices=(continuing(piece, facts.continued), other)), facts, 5)
    assert [(one.producer, one.continued_at, one.empty_until) for one in plan.slices] == [
        (RETURN.producer_id, 50, None),
        (5, None, None),
    ]
    assert (plan.refusals, plan.version) == ((), PLAN_VERSION)
    records = plan_records(plan)
    parts = {index: record.value or b"" for index, record in enumerate(records[:-1])}
    assert parse_plan(parts, records[-1].value or b"", "it") == plan
    assert replace(plan, slices=plan.slices[1:]).version < PLAN_VERSION


def test_without_the_record_of_a_return_the_same_slice_is_refused() -> None:
    piece = replace(PIECE, start=50, target_end=50, target_next=40, first=False)
    plan = replace(PLAN, slices=(piece,))
    assert [one.code for one in without_unfit(plan, found()).refusals] == ["identical.begins"]
    again = replace(PLAN, slices=(continuing(piece, {ORDERS: RETURN}),))
    assert without_unfit(again, found(continued={ORDERS: RETURN})).refusals == ()
    lost = replace(PLAN, slices=(continuing(replace(piece, target_end=49), {ORDERS: RETURN}),))
    assert [one.code for one in without_unfit(lost, found(continued={ORDERS: RETURN})).refusals] == ["identical.lost"]


# Markers.


def test_a_request_of_markers_has_one_of_each_producer_id_at_a_time() -> None:
    third = place("orders", 2)
    request = markers_request({HERE: 2, OTHER: 1, third: 1}, {HERE: 5, OTHER: 9, third: 5})
    sent = [
        (one.producer_id, one.producer_epoch, [(topic.name, topic.partition_indexes) for topic in one.topics])
        for one in request.markers
    ]
    assert sent == [(5, 0, [("orders", [0, 2])]), (9, 0, [("orders", [1])]), (5, 0, [("orders", [0])])]


# What may arrive.


def stopped(lane: str, generation: int | None, name: str = "s") -> list[Record]:
    """The records of a switch that has done its step `stop`."""
    flow = Flow(source="a", target="b")
    switch = Switch(
        id=name, verb=Verb.SWITCHOVER, named=flow, via=flow, who="ann", approved_by="b", approved_ms=0, at_ms=0
    )
    facts = {} if generation is None else {GENERATION: generation, OF_LANE: lane}
    done = StepDone(step=Step.STOP, who="ann", begun_ms=1, done_ms=2, evidence=Evidence(sentence="", facts=facts))
    return [switch_record(switch), *done_records(name, done)]


@pytest.mark.parametrize(
    ("records", "at"),
    [
        ([], -1),
        (stopped("live", None), -1),
        (stopped("drill", 7), -1),
        (stopped("live", 7), 7),
        ([*stopped("live", 70), *stopped("live", 8, "t")], 70),
    ],
    ids=["none", "of an earlier Ferry", "another lane", "one", "two"],
)
def test_the_ledger_has_the_run_by_which_a_switch_stopped_the_lane(records: Sequence[Record], at: int) -> None:
    assert stopped_at(view_of(*records), "live") == at


def test_runs_before_a_stop_do_not_count_because_the_step_ended_when_none_could_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = Identical([[3]])
    with at_work(lane):
        first = lane.open("first")
        lane.copy(lane.begin(first))
        lane.produce(0, 2)
        second = lane.open("second")
        view = lane.view()

        def ends(stop: int) -> list[dict[TopicPartition, int] | None]:
            monkeypatch.setattr(late, "stopped_at", lambda *_: stop)
            return [None if one.ends is None else dict(one.ends) for one in senders(view, LANE)]

        every: list[dict[TopicPartition, int] | None] = [{first.slices[0].target: 3}, {second.slices[0].target: 5}]
        assert ends(-1) == ends(first.generation) == every
        assert ends(first.generation + 1) == ends(second.generation) == every[1:]
        assert ends(second.generation + 1) == []
        monkeypatch.setattr(late, "KEPT_RUNS", 2)
        assert ends(-1)[0] is None, "it may have let some go"
        assert ends(first.generation) == every, "those came before"
        assert ends(second.generation) == every[1:]


# What is compared.


def copied(*segments: tuple[int, int, int], void: tuple[tuple[int, int], ...] = ()) -> Copied:
    parts = tuple(Segment(source_start=a, target_start=b, count=c) for a, b, c in segments)
    ranges = tuple((one.source_start, one.source_end) for one in parts)
    return Copied(
        source=HERE,
        target=HERE,
        ranges=ranges,
        segments=parts,
        void=void,
        target_next=parts[-1].target_end if parts else 0,
        shared=False,
        source_topic_id="old",
    )


@pytest.mark.parametrize(
    ("before", "segments", "next_of", "source"),
    [
        (copied((0, 0, 40)), [(0, 50)], 50, "new"),
        (copied((0, 0, 40), (50, 50, 10)), [(0, 50), (50, 10)], 60, "old"),
        (copied((0, 0, 55)), [(0, 50), (50, 5)], 55, "old"),
        (copied(), [(0, 50)], 50, "new"),
    ],
    ids=["no run since", "a run since", "a receipt across", "no receipt"],
)
def test_all_is_compared_up_to_where_the_lane_continued_and_then_what_it_copied(
    before: Copied, segments: list[tuple[int, int]], next_of: int, source: str
) -> None:
    after = after_clients(replace(before, void=((30, 52),)), RETURN)
    assert [(one.source_start, one.count) for one in after.segments] == segments
    assert all(one.source_start == one.target_start for one in after.segments)
    assert (after.ranges, after.target_next, after.void) == (((0, next_of),), next_of, ((50, 52),))
    assert after.source_topic_id == source


def test_the_record_needs_a_ferry_that_knows_identical_offsets() -> None:
    assert json.loads(continued_record("live", HERE, RETURN).value or b"")["v"] == IDENTICAL_VERSION
