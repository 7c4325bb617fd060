"""What each side had when a source was lost, and what of it is lost, known or not copied: tables of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ferry.config.flow.parts import Budget
from ferry.features.switch.rules.partition_state import (
    LOSS,
    STATE,
    Dealt,
    PartitionState,
    best_known,
    copied_ends,
    dealt_ends,
    longest,
    loss_of,
    loss_sentence,
    parse_standing,
    reaches_the_ends,
    recorded_partitions,
    standings,
    uncopied_sentence,
    unseen_of,
    with_frozen,
    without_partitions,
)
from ferry.ledger.ledger import fold
from ferry.model import (
    Era,
    RefusalKind,
    Slice,
)
from ferry.plan.rules.starts import start_record
from tests.golden import Golden
from tests.pure.decide.test_unit_codec import ONE, UNIT
from tests.pure.decide.values import PLAN, RECEIPT, lying, place, reading, redealt, refusal

HERE, COPY, LIVE = place("orders"), place("primary.orders"), place("orders", 1)

NOW = 1_000_000


def test_ends_are_the_furthest_that_anybody_saw() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, at_ms=10, max_timestamp_ms=7)
    planned = Slice(source=HERE, target=COPY, start=100, end=150, slot=0, bytes_estimate=1, first=False)
    plan = replace(PLAN, slices=(planned,))
    table = [
        ("nobody looked since the run that copied", [copied], None, {}, (100, "receipt", 5)),
        ("a run planned more", [copied], plan, {}, (150, "plan", 20)),
        ("the last run did not look at it", [copied], replace(PLAN, slices=()), {}, (100, "receipt", 5)),
        ("the last run copied all that it saw", [replace(copied, end=150)], plan, {}, (150, "plan", 20)),
        ("the last run had nothing to copy", [copied], replace(PLAN, slices=(), caught_up=1), {}, (100, "receipt", 20)),
        ("the source answers", [copied], plan, {HERE: 130}, (130, "source", NOW)),
        ("nothing was copied", [], plan, {}, (150, "plan", 20)),
    ]
    for what, lasts, made, live, wanted in table:
        (one,) = standings(lasts, made, 20, live, {}, {COPY: 77}, NOW, started_ms={RECEIPT.generation: 5})
        assert (one.source_end, one.source_known, one.observed_ms) == wanted, what
        assert (one.target_end, one.target_copied) == (77, 0)
        assert parse_standing(STATE.dump(one)) == one


@pytest.mark.parametrize(
    "left", [{"paused": (HERE.topic,)}, {"refusals": (refusal(HERE.topic, HERE.partition),)}], ids=["paused", "refused"]
)
def test_a_plan_says_nothing_of_the_ends_of_what_it_left_out(left: dict[str, Any]) -> None:
    """Partitions without a receipt count among those that have nothing to copy: the number alone shows nothing."""
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, max_timestamp_ms=3)
    plan = replace(PLAN, slices=(), caught_up=2, **left)
    (one,) = standings([copied], plan, 20, {}, {}, {}, NOW, started_ms={RECEIPT.generation: 5})
    assert (one.source_known, one.observed_ms, one.reached_ms) == ("receipt", 5, 0)


@pytest.mark.parametrize(
    ("left", "caught_up", "known"),
    [
        ({}, 2, ("plan", 20)),
        ({}, 1, ("none", 0)),
        ({"paused": (LIVE.topic,)}, 2, ("none", 0)),
        ({"refusals": (refusal(LIVE.topic, LIVE.partition),)}, 2, ("none", 0)),
    ],
    ids=["empty, as the last run read", "left by the last run", "paused", "refused"],
)
def test_the_end_of_what_was_never_copied_is_known_only_if_the_last_run_read_it(
    left: dict[str, Any], caught_up: int, known: tuple[str, int], golden: Golden
) -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, max_timestamp_ms=3)
    plan = replace(PLAN, slices=(), caught_up=caught_up, **left)
    beside = place("primary.orders", 1)
    found = standings([copied], plan, 20, {}, {LIVE: beside}, {COPY: 77}, NOW, goes_on={LIVE: 40})
    _, never = found
    assert (never.source_known, never.observed_ms) == known
    assert (never.copied_end, never.source_end, never.target_end) == (40, 40, None)
    assert (never.has_copy, never.is_silent) == (False, False), "a copy that does not exist need not answer"
    assert parse_standing(STATE.dump(never)) == never
    losses, unseen = loss_of(found, {}, NOW), unseen_of(found)
    assert not losses[1].certain
    assert unseen == ([] if known[0] == "plan" else [LIVE])
    if unseen:
        assert longest(losses) is None, "all that is lost of the others does not show since when"
        golden(loss_sentence(losses, unseen=unseen))


def test_caught_up_copies_of_a_repartitioned_topic_are_not_counted_as_partitions_of_others() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, max_timestamp_ms=3)
    plan = replace(PLAN, slices=(), caught_up=9)
    dealt = Dealt(place("clicks"), "copy", 6, 3, answers=True)
    found = standings([copied], plan, 20, {}, {LIVE: place("primary.orders", 1)}, {}, NOW, repartitioned=[dealt])
    assert [one.source_known for one in found] == ["receipt", "receipt", "none"]


def test_what_only_the_frozen_evidence_has_stays_a_part_of_it() -> None:
    """A run that planned, and copied nothing: the run that fenced it has a plan without slices."""
    planned = Slice(source=HERE, target=COPY, start=0, end=150, slot=0, bytes_estimate=1, first=True)
    (before,) = standings([], replace(PLAN, slices=(planned,)), 20, {}, {}, {}, NOW)
    (known,) = with_frozen([], [before])
    assert (known.source_end, known.source_known, loss_of([known], {}, NOW)[0].records) == (150, "plan", 150)
    (answered,) = standings([], None, 0, {HERE: 7}, {HERE: COPY}, {}, NOW)
    (kept,) = with_frozen([], [answered])
    assert kept.source_known == "freeze", "it does not answer any more"
    assert with_frozen([answered], [before]) == [answered]


def test_each_partition_that_a_run_saw_is_known_and_of_a_topic_that_none_saw_the_first() -> None:
    starts = (
        start_record("live", "orders", {0: 40}, {1: NOW}, "id", {}),
        start_record("live", "quiet", {0: 0}, {}, "id", {}),
        start_record("other", "audit", {0: 0}, {}, "id", {}),
    )
    gone = replace(refusal("", 0), partition=None, kind=RefusalKind.TOPICS_NONE)
    plan = replace(
        PLAN,
        paused=("quiet", "hushed"),
        refusals=(gone, replace(gone, topic="no"), refusal("clicks", 3), replace(refusal("hidden", 0), partition=None)),
    )
    found = recorded_partitions(fold(lying(*starts), 99), "live", plan)
    assert found == {place("orders"), place("orders", 1), place("quiet"), place("clicks", 3)}
    assert without_partitions(plan, {one.topic for one in found}) == [place("hidden"), place("hushed")]
    assert without_partitions(None, ()) == []


def test_what_a_lane_has_passed_over_is_not_left_to_copy() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100)
    for lasts, goes_on, wanted in [
        ([copied], {}, 100),
        ([copied], {HERE: 120}, 120),
        ([copied], {HERE: 90}, 100),
        ([], {HERE: 120}, 120),
        ([], {}, 0),
    ]:
        (one,) = standings(lasts, None, 20, {HERE: 130}, {HERE: COPY}, {COPY: 77}, NOW, goes_on=goes_on)
        assert (one.copied_end, one.source_end) == (wanted, 130)


def test_an_end_that_a_budget_set_was_not_seen_at_the_source() -> None:
    """More was there already: what is not copied may be as old as what was copied last."""
    copied = replace(RECEIPT, source=HERE, target=COPY, end=150, max_timestamp_ms=7)
    planned = Slice(source=HERE, target=COPY, start=100, end=150, slot=0, bytes_estimate=1, first=False)
    plan = replace(PLAN, slices=(planned,))
    for whole, reached_ms in ((True, 20), (False, 0)):
        (one,) = standings([copied], plan, 20, {}, {}, {}, NOW, whole=whole)
        assert (one.source_known, one.observed_ms, one.reached_ms) == ("plan", 20, reached_ms)


@pytest.mark.parametrize("cut_short", [False, True])
def test_a_plan_that_any_budget_cut_short_does_not_reach_the_ends(cut_short: bool) -> None:
    """That of one run, too (`--max-records`), which the file does not have."""
    planned = Slice(source=HERE, target=COPY, start=100, end=150, slot=0, bytes_estimate=10, first=False)
    plan = replace(PLAN, slices=(planned,), cut_short=cut_short)
    assert reaches_the_ends(plan, Budget(max_bytes=1_000, max_records=None, max_seconds=60)) is not cut_short
    assert not reaches_the_ends(plan, Budget(max_bytes=10, max_records=None, max_seconds=60))
    assert not reaches_the_ends(plan, Budget(max_bytes=1_000, max_records=50, max_seconds=60))


def test_what_others_wrote_on_the_new_cluster_is_not_taken_for_copied() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, target_next=100, target_topic_id="old")
    table = [
        ("behind what was copied lie others' records", {}, "old", 150, 100),
        ("the ledger knows more of it", {COPY: 120}, "old", 150, 120),
        ("what it knew is older than the last copy", {COPY: 60}, "old", 150, 100),
        ("the topic was created again", {}, "new", 30, 0),
        ("the end does not answer", {}, "", None, 100),
        ("not all that was copied is there any more", {}, "old", 90, 90),
    ]
    for what, accounted, topic_id, end, wanted in table:
        ends = {} if end is None else {COPY: end}
        known = copied_ends([copied], accounted, {COPY.topic: topic_id}, ends)
        (one,) = standings([copied], None, 0, {}, {}, ends, NOW, known)
        assert one.target_copied == wanted, what
        assert parse_standing(STATE.dump(one)) == one


def test_a_loss_is_counted_and_what_nobody_knows_is_said(golden: Golden) -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, at_ms=10, max_timestamp_ms=NOW - 5_000)
    (live,) = standings([copied], None, 0, {HERE: 100}, {}, {}, NOW)
    (behind,) = standings([copied], None, 0, {HERE: 104}, {}, {}, NOW)
    (gone,) = standings([copied], replace(PLAN, slices=(), caught_up=1), NOW - 60_000, {}, {}, {}, NOW)
    assert [LOSS.dump(one) for one in loss_of([live, behind, gone], {}, NOW)] == [
        {"topic": "orders", "partition": 0, "start": 100, "end": 100, "records": 0, "seconds": 0.0, "certain": True},
        {"topic": "orders", "partition": 0, "start": 100, "end": 104, "records": 4, "seconds": None, "certain": True},
        {"topic": "orders", "partition": 0, "start": 100, "end": 100, "records": 0, "seconds": 60.0, "certain": False},
    ]
    (aged,) = loss_of([behind], {HERE: NOW - 2_500}, NOW)
    assert aged.seconds == 2.5, "the oldest record that is not copied tells its age"
    assert "nothing is lost" in loss_sentence(loss_of([live], {}, NOW))
    golden(loss_sentence(loss_of([gone], {}, NOW)))
    (lost,) = loss_of([gone], {}, NOW - 20_000)
    assert lost.seconds == 40.0, "counted back from the time of the loss, where it is known"
    (unseen,) = loss_of([replace(gone, reached_ms=0)], {}, NOW)
    assert unseen.seconds is None
    assert longest([lost, unseen]) is None
    (early,) = loss_of([replace(behind, source_known="plan", reached_ms=NOW - 9_000)], {}, NOW)
    assert early.seconds == 9.0, "a run before it saw an end before that record"


LATER = NOW + 3_600_000
"""A timestamp that a producer's wrong clock set: an hour later than now."""


@pytest.mark.parametrize("stamp", [LATER, NOW - 500, -1], ids=["later than now", "before now", "none"])
def test_a_loss_does_not_rest_on_what_producers_stamp(stamp: int, golden: Golden) -> None:
    """50 offsets were lost when a run ended midway. The records that it did copy say nothing about their age."""
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, max_timestamp_ms=stamp)
    planned = Slice(source=HERE, target=COPY, start=60, end=150, slot=0, bytes_estimate=1, first=False)
    plan = replace(PLAN, slices=(planned,))
    (one,) = standings([copied], plan, NOW - 1_000, {}, {}, {}, NOW)
    (lost,) = loss_of([one], {}, NOW)
    assert (lost.records, lost.seconds, lost.certain) == (50, None, False)
    if stamp == LATER:
        golden(loss_sentence([lost]))


@pytest.mark.parametrize(
    ("end", "caught_up", "left", "reached_ms"),
    [
        (100, 0, {}, 15),
        (90, 0, {}, 15),
        (101, 0, {}, 0),
        (None, 1, {}, 15),
        (None, 0, {}, 0),
        (None, 1, {"paused": (HERE.topic,)}, 0),
        (100, 0, {"cut_short": True}, 0),
    ],
)
def test_what_is_lost_came_after_a_run_that_planned_up_to_the_end_of_the_copy(
    end: int | None, caught_up: int, left: dict[str, Any], reached_ms: int
) -> None:
    """The newest run planned more, so the run before it shows since when that came: since its start (15)."""
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, max_timestamp_ms=LATER)
    newest = Slice(source=HERE, target=COPY, start=100, end=150, slot=0, bytes_estimate=1, first=False)
    earlier = replace(
        PLAN, slices=() if end is None else (replace(newest, start=0, end=end),), caught_up=caught_up, **left
    )
    looks = [(earlier, 15)] if reaches_the_ends(earlier, Budget(max_bytes=99, max_records=None, max_seconds=60)) else []
    (one,) = standings([copied], replace(PLAN, slices=(newest,)), 20, {}, {}, {}, NOW, earlier=looks)
    assert (one.source_end, one.observed_ms, one.reached_ms) == (150, 20, reached_ms)
    (answers,) = standings([copied], replace(PLAN, slices=(newest,)), 20, {HERE: 130}, {}, {}, NOW, earlier=looks)
    assert answers.reached_ms == reached_ms
    (frozen,) = best_known([answers], [replace(one, copied_end=130, source_end=130, reached_ms=0)])
    assert frozen.reached_ms == NOW, "all of it was copied that the source had then"


def test_a_record_stamped_later_than_now_has_no_known_age() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100)
    (behind,) = standings([copied], None, 0, {HERE: 104}, {}, {}, NOW)
    ages = {stamp: loss_of([behind], {HERE: stamp}, NOW)[0].seconds for stamp in (LATER, NOW + 1, NOW, NOW - 2_500)}
    assert ages == {LATER: None, NOW + 1: None, NOW: 0.0, NOW - 2_500: 2.5}


def test_without_a_known_partition_neither_the_loss_nor_what_is_not_copied_is_known(golden: Golden) -> None:
    assert "nothing is lost" not in loss_sentence([])
    golden(loss_sentence([]), "loss")
    golden(uncopied_sentence([]), "not copied")
    assert longest([]) is None


def test_what_was_seen_before_the_flow_was_stopped_still_counts() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, at_ms=10)
    (before,) = standings([copied], None, 0, {HERE: 120}, {}, {}, 500)
    (after,) = standings([replace(copied, end=110)], None, 0, {}, {}, {}, 900)
    (known,) = best_known([before], [after])
    assert (known.copied_end, known.source_end, known.source_known, known.observed_ms) == (110, 120, "freeze", 500)
    assert loss_of([known], {}, 900)[0].records == 10
    assert not loss_of([known], {}, 900)[0].certain, "more may have come since"


def test_what_a_source_told_before_and_has_lost_itself_is_lost() -> None:
    copied = replace(RECEIPT, source=HERE, target=COPY, end=100, at_ms=10)
    (before,) = standings([copied], None, 0, {HERE: 120}, {}, {}, 500)
    for end, told in [(105, (120, "freeze")), (120, (120, "source")), (130, (130, "source"))]:
        (after,) = standings([copied], None, 0, {HERE: end}, {}, {}, 900)
        (known,) = best_known([before], [after])
        assert (known.source_end, known.source_known) == told
        assert loss_of([known], {}, 900)[0].certain is (told[1] == "source")


def test_what_a_dealt_topic_loses_counts_from_where_all_of_its_copy_has_it() -> None:
    era = Era(source_topic="orders", target_topic="copy", since=1, begins=(0,), digest="d", partitions=2)
    last = redealt(ONE, topic="orders", target=place("copy"), ends=(9,), since=1, at_ms=4)
    lasts = [last, redealt(last, target=place("copy", 1), ends=(6,), at_ms=5)]
    started = {last.generation: 3}
    assert dealt_ends([era], lasts, {place("copy")}, started) == [Dealt(HERE, "copy", 6, 3, answers=False)]
    dealt = dealt_ends([era], lasts, {place("copy"), place("copy", 1)}, started)
    cut = replace(PLAN, slices=(), cut_short=True)
    for live, plan, wanted, reached_ms in [
        ({}, None, (6, 6, "receipt", 3), 0),
        ({}, replace(PLAN, slices=()), (6, 6, "receipt", 3), 3),
        ({}, replace(PLAN, slices=(), paused=("orders",)), (6, 6, "receipt", 3), 0),
        ({}, replace(PLAN, slices=(reading(UNIT, source=place("orders", 1), ends=(12, 4)),)), (6, 12, "plan", 7), 0),
        ({}, replace(PLAN, slices=(reading(UNIT, source=place("orders", 1), ends=(6, 4)),)), (6, 6, "plan", 7), 7),
        ({HERE: 20}, None, (6, 20, "source", NOW), 0),
        ({HERE: 6}, None, (6, 6, "source", NOW), NOW),
        ({}, replace(cut, slices=(reading(UNIT, source=place("orders", 1), ends=(12, 4)),)), (6, 12, "plan", 0), 0),
        ({}, cut, (6, 6, "receipt", 0), 0),
        ({HERE: 20}, cut, (6, 20, "source", NOW), 0),
    ]:
        (one,) = standings([], plan, 7, live, {HERE: COPY}, {COPY: 77}, NOW, repartitioned=dealt)
        assert (one.copied_end, one.source_end, one.source_known, one.observed_ms) == wanted
        assert one.reached_ms == reached_ms
        assert (one.source, one.target_end, one.target_copied) == (HERE, 0, 0)


def test_what_a_source_that_is_gone_holds_is_not_known(golden: Golden) -> None:
    """Evidence that is frozen after a loss once said "0 records" of a source that nobody could ask."""
    answered = PartitionState(
        source=place("orders"),
        target=place("a.orders"),
        copied_end=10,
        source_end=13,
        source_known="source",
        observed_ms=5,
        target_end=11,
    )
    golden(uncopied_sentence([answered]))
    gone = replace(answered, source_end=10, source_known="receipt")
    golden(uncopied_sentence([answered, gone]), "one did not answer")
