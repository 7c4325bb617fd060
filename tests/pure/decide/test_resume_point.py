"""Where a policy sends a partition in place of a refusal, what is written down, and what stays true of the map."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.config.text.filters import PatternList
from ferry.errors import Refused
from ferry.ledger.history import current_segments, holders, voided
from ferry.ledger.ledger import fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import lane_ends
from ferry.ledger.report import GuardCount, guard_counts
from ferry.ledger.resume import slices_left
from ferry.ledger.source_reads import diverged
from ferry.model import Gap, Plan, RefusalKind, Resolution, Segment
from ferry.model.observed import OpenTransaction, Unavailable
from ferry.plan.rules.facts import Facts, SourcePartition
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.truncation import held_upto, with_high_watermark
from tests.golden import Golden
from tests.pure.decide.test_guards import OTHER, SOUND, at_target, source
from tests.pure.decide.values import LANE, RECEIPT, RULES, facts_with, lying, part, place, target, topic
from tests.said import facts_in, of_code

RESTART = GuardPolicy(default=OnGuard.RESTART)
SKIP = GuardPolicy(default=OnGuard.SKIP)
RUN, GENERATION = "run-2", 9

RECREATED = source(topic("orders", part(log_start=2), topic_id="id-new"))
CUT = source(topic("orders", part(end=39)))
OVERWRITTEN = source(topic("orders", replace(part(), diverged=30)))
TARGET_GONE = facts_with(SOUND, target={"topics": {"a.users": SOUND.target.topics["a.users"]}})
TARGET_NEW = at_target(target("a.orders", 7, topic_id="id-new"))
TARGET_CUT = facts_with(at_target(target("a.orders", 33)), target={"kept": {RECEIPT.target: 33}})
TARGET_FILLED = facts_with(
    at_target(target("a.orders", 60)), target={"kept": {RECEIPT.target: 33}, "cut": {RECEIPT.target: 33}}
)
TARGET_HALF_FILLED = facts_with(TARGET_FILLED, target={"topics": at_target(target("a.orders", 36)).target.topics})


def led(**values: int) -> SourcePartition:
    """A partition whose leader is in its seventh epoch."""
    return replace(part(**values), leader_epoch=7)


def planned(facts: Facts, **guards: GuardPolicy) -> Plan:
    return decide_plan(replace(RULES, guards=Guards(**guards)), facts, RUN, GENERATION)


@pytest.mark.parametrize(
    ("facts", "guards", "start", "target_next", "since", "gap"),
    [
        (RECREATED, {"topic_recreated": RESTART}, 2, 40, 9, ("restart", 40, 2, 0)),
        (CUT, {"source_truncated": RESTART}, None, 40, 9, ("restart", 40, 39, 39)),
        (CUT, {"source_truncated": SKIP}, None, 40, -1, ("skip", 39, 40, 39)),
        (OVERWRITTEN, {"source_truncated": RESTART}, 30, 40, 9, ("restart", 40, 30, 30)),
        (OVERWRITTEN, {"source_truncated": SKIP}, 40, 40, -1, ("skip", 30, 40, 30)),
        (TARGET_GONE, {"target_changed": RESTART}, 0, None, 9, ("restart", 40, 0, 0)),
        (TARGET_GONE, {"target_changed": SKIP}, 40, None, -1, ("skip", 0, 40, 0)),
        (TARGET_NEW, {"target_changed": RESTART}, 0, None, 9, ("restart", 40, 0, 0)),
        (TARGET_NEW, {"target_changed": SKIP}, 40, None, -1, ("skip", 0, 40, 0)),
        (TARGET_CUT, {"target_changed": RESTART}, 33, 33, 9, ("restart", 40, 33, 33)),
        (TARGET_CUT, {"target_changed": SKIP}, 40, 33, -1, ("skip", 33, 40, 33)),
        (TARGET_FILLED, {"target_changed": RESTART}, 33, 33, 9, ("restart", 40, 33, 33)),
        (TARGET_FILLED, {"target_changed": SKIP}, 40, 33, -1, ("skip", 33, 40, 33)),
        (TARGET_HALF_FILLED, {"target_changed": RESTART}, 33, 33, 9, ("restart", 40, 33, 33)),
    ],
)
def test_a_policy_sends_the_partition_on_and_the_gap_says_what_is_lost_or_void(
    facts: Facts,
    guards: dict[str, GuardPolicy],
    start: int | None,
    target_next: int,
    since: int,
    gap: tuple[str, int, int, int],
) -> None:
    assert [refusal.topic for refusal in planned(facts).refusals] == ["orders"], "without the policy it is refused"
    plan = planned(facts, **guards)
    assert plan.refusals == ()
    found = {piece.source: piece for piece in plan.slices}
    assert found[place("users")].since == -1, "the other partition is as it was"
    if start is None:
        assert place("orders") not in found, "the log is shorter than what was copied: there is nothing to copy yet"
    else:
        piece = found[place("orders")]
        assert (piece.start, piece.target_next, piece.since) == (start, target_next, since)
    (decided,) = plan.gaps
    assert (decided.how.value, decided.start, decided.end, decided.void_from) == gap
    assert (decided.source, decided.run, decided.generation, decided.since) == (place("orders"), RUN, GENERATION, -1)
    (key,) = guards
    assert decided.who == f"ferry.guard.{key.replace('_', '.')}"
    (note,) = plan.notes
    said = facts_in(note)
    assert (said["what"], said["key"]) == (decided.reason, decided.who)


def test_a_topic_of_the_target_that_is_gone_is_created_again() -> None:
    (change,) = planned(TARGET_GONE, target_changed=RESTART).changes
    assert (change.kind, change.topic) == ("create", "a.orders")
    assert planned(TARGET_GONE).changes == ()


def test_a_policy_lifts_its_own_refusal_alone() -> None:
    both = facts_with(TARGET_NEW, source={"topics": RECREATED.source.topics})
    for guards in ({"topic_recreated": RESTART}, {"target_changed": RESTART}, {"retention_passed": SKIP}):
        plan = planned(both, **guards)
        assert [refusal.topic for refusal in plan.refusals] == ["orders"]
        assert plan.gaps == ()
    plan = planned(both, topic_recreated=RESTART, target_changed=RESTART)
    assert [(gap.why, gap.end) for gap in plan.gaps] == [
        (RefusalKind.TOPIC_RECREATED, 2),
        (RefusalKind.TARGET_CHANGED, 2),
    ]
    assert [(piece.start, piece.target_next) for piece in plan.slices if piece.source.topic == "orders"] == [(2, None)]


def test_going_back_to_where_retention_was_faster_takes_its_policy_as_well() -> None:
    facts = source(topic("orders", replace(part(log_start=35), diverged=30)))
    (refused,) = planned(facts, source_truncated=RESTART).refusals
    assert refused.kind is RefusalKind.RETENTION_PASSED
    plan = planned(facts, source_truncated=RESTART, retention_passed=SKIP)
    assert [(gap.how.value, gap.start, gap.end) for gap in plan.gaps] == [("restart", 40, 30), ("skip", 30, 35)]
    assert [piece.start for piece in plan.slices if piece.source.topic == "orders"] == [35]


def test_a_policy_may_be_for_some_topics() -> None:
    facts = facts_with(
        SOUND, source={"topics": {name: topic(name, part(log_start=51)) for name in ("orders", "users")}}
    )
    some = GuardPolicy(exceptions=((OnGuard.SKIP, PatternList(items=("use.*",))),))
    plan = planned(facts, retention_passed=some)
    assert [refusal.topic for refusal in plan.refusals] == ["orders"]
    assert [gap.source.topic for gap in plan.gaps] == ["users"]


def test_another_cluster_under_the_source_alias_is_copied_behind_the_old_one_where_the_guard_says_so(
    golden: Golden,
) -> None:
    facts = facts_with(SOUND, source={"cluster_id": "cluster-x"})
    with pytest.raises(Refused) as caught:
        planned(facts)
    golden(caught.value)
    plan = planned(facts, cluster_changed=RESTART)
    assert [(piece.source.topic, piece.start, piece.since) for piece in plan.slices] == [
        ("orders", 0, 9),
        ("users", 0, 9),
    ]


def test_another_cluster_under_the_target_alias_is_never_written_to(golden: Golden) -> None:
    facts = facts_with(
        SOUND, lane={"receipts": {last.target: replace(last, target_cluster_id="b") for last in (RECEIPT, OTHER)}}
    )
    with pytest.raises(Refused) as caught:
        planned(facts, cluster_changed=RESTART)
    golden(caught.value)


def test_the_run_that_went_back_is_carried_on_by_the_runs_after_it() -> None:
    again = replace(RECEIPT, since=9, end=60, target_next=90)
    facts = facts_with(
        at_target(target("a.orders", 91)), lane={"receipts": {**SOUND.lane.receipts, RECEIPT.target: again}}
    )
    assert [piece.since for piece in planned(facts).slices if piece.source.topic == "orders"] == [9]


def test_a_plan_that_goes_back_is_not_done_by_what_was_copied_before_and_an_old_one_misses_nothing_after() -> None:
    before, after = (lying(*receipt_records(last)) for last in (RECEIPT, replace(RECEIPT, since=9, start=0, end=10)))
    old = planned(source(topic("orders", part())))
    (back,) = (piece for piece in planned(RECREATED, topic_recreated=RESTART).slices if piece.source == place("orders"))
    going_back = replace(old, slices=(replace(back, end=30),))
    done = replace(old, slices=(replace(back, since=-1, start=0, end=40),))
    here = place("orders")
    assert lane_ends(fold(before, 9), LANE, done) == {here: 40}
    assert lane_ends(fold(before, 9), LANE, going_back) == {}, "what is there is of the old log"
    assert lane_ends(fold(after, 9), LANE, going_back) == {here: 10}
    assert lane_ends(fold(after, 9), LANE, done) == {here: 40}, "the lane went back after it was done"
    assert lane_ends(fold(after, 9), LANE) == {here: 10}


def test_what_was_copied_under_another_name_is_left_to_copy_under_the_one_of_now() -> None:
    view = fold(lying(*receipt_records(RECEIPT)), 9)
    plan = planned(source(topic("orders", part())))
    (piece,) = (one for one in plan.slices if one.source == place("orders"))
    done = replace(piece, start=0, end=RECEIPT.end)
    renamed = replace(plan, slices=(replace(done, target=place("eu.orders")),))
    assert lane_ends(view, LANE, renamed) == {}
    assert slices_left(view, renamed) == list(renamed.slices)
    assert slices_left(view, replace(plan, slices=(done,))) == []


STUCK = Gap(
    source=place("orders"), start=40, end=44, why=RefusalKind.STUCK, run="skip-1", at_ms=1, topic_id="id-orders"
)


@pytest.mark.parametrize(
    ("gaps", "start"),
    [
        ((STUCK,), 44),
        ((STUCK, replace(STUCK, start=44, end=50)), 50),  # two of them
        ((replace(STUCK, start=41),), 40),  # the lane stands elsewhere
        ((replace(STUCK, start=30),), 40),
        ((replace(STUCK, topic_id="id-old"),), 40),  # of the topic that had this name before
        ((replace(STUCK, since=3),), 40),  # of the log before a restart, or after
    ],
)
def test_what_was_passed_by_hand_moves_the_lane_only_where_it_stands(gaps: tuple[Gap, ...], start: int) -> None:
    plan = planned(facts_with(SOUND, lane={"skips": {place("orders"): gaps}}))
    assert [piece.start for piece in plan.slices if piece.source.topic == "orders"] == [start]
    assert (plan.refusals, plan.gaps) == ((), ()), "it was written down when it was decided"


def test_a_lane_that_was_never_at_work_may_be_moved_on_too() -> None:
    facts = facts_with(
        SOUND,
        lane={
            "receipts": {OTHER.target: OTHER},
            "positions": {},
            "skips": {place("orders"): (replace(STUCK, start=0, end=4),)},
        },
    )
    assert [piece.start for piece in planned(facts).slices if piece.source.topic == "orders"] == [4]


def test_retention_is_held_against_where_the_lane_stands() -> None:
    facts = facts_with(source(topic("orders", part(log_start=44))), lane={"skips": {place("orders"): (STUCK,)}})
    assert planned(facts).refusals == ()


# The offset map

GONE_BACK = Gap(
    source=place("orders"),
    start=40,
    end=30,
    why=RefusalKind.SOURCE_TRUNCATED,
    run=RUN,
    at_ms=1,
    how=Resolution.RESTART,
    generation=9,
    void_from=30,
)
AFTER = replace(
    RECEIPT,
    generation=9,
    since=9,
    start=30,
    end=50,
    segments=(Segment(source_start=30, target_start=41, count=20),),
)


def test_the_map_is_cut_where_a_run_went_back_and_goes_on_with_what_it_copied() -> None:
    assert current_segments([RECEIPT, AFTER], [GONE_BACK]) == [
        Segment(source_start=0, target_start=0, count=30),
        Segment(source_start=30, target_start=41, count=20),
    ]
    assert [(holder.target_offset, holder.void) for holder in holders([RECEIPT, AFTER], 35, [GONE_BACK])] == [
        (35, GONE_BACK),
        (46, None),
    ]
    assert voided(RECEIPT, 29, [GONE_BACK]) is None
    assert voided(RECEIPT, 30, [GONE_BACK]) is GONE_BACK
    assert voided(AFTER, 35, [GONE_BACK]) is None


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=8))
def test_no_source_offset_has_two_places_however_often_runs_go_back(steps: list[tuple[int, int]]) -> None:
    """Each step: back to an offset that was copied, as a restart would, and on from there."""
    receipts, gaps = [], []
    truth: dict[int, int] = {}
    stands = target_end = 0
    for generation, (back, count) in enumerate(steps):
        to = min(back, stands)
        if to < stands:
            gaps.append(replace(GONE_BACK, start=stands, end=to, void_from=to, generation=generation))
            truth = {offset: at for offset, at in truth.items() if offset < to}
        segment = Segment(source_start=to, target_start=target_end, count=count)
        receipts.append(replace(RECEIPT, generation=generation, start=to, end=to + count, segments=(segment,)))
        truth |= {to + index: target_end + index for index in range(count)}
        stands, target_end = to + count, target_end + count + 1  # a marker
    named = [
        (part.source_start + index, part.target_start + index)
        for part in current_segments(receipts, gaps)
        for index in range(part.count)
    ]
    assert len({offset for offset, _ in named}) == len(named)
    assert dict(named) == truth


@pytest.mark.parametrize(("end", "kept"), [(0, 0), (1, 1), (30, 30), (41, 30), (42, 31), (60, 49), (61, 50), (99, 50)])
def test_a_target_that_was_cut_has_what_lies_before_the_cut(end: int, kept: int) -> None:
    last = replace(AFTER, target_next=61)
    assert held_upto([RECEIPT, AFTER], [GONE_BACK], last, end) == kept


def test_an_epoch_that_ended_earlier_tells_of_a_cut() -> None:
    last = replace(RECEIPT, end=45)  # five offsets without records behind the last one
    assert [diverged(last, end) for end in (-1, 0, 39, 44, 45, 60)] == [None, 0, 39, 44, None, None]


@pytest.mark.parametrize(
    ("facts", "guards", "read"),
    [
        (SOUND, {}, (3, 40)),
        (TARGET_CUT, {"target_changed": RESTART}, (3, 40)),
        # What was read is not there any more: then it is the log of now that must reach where the copy goes on.
        (source(topic("orders", led(log_start=2), topic_id="id-new")), {"topic_recreated": RESTART}, (7, 2)),
        (source(topic("orders", replace(led(), diverged=30))), {"source_truncated": RESTART}, (7, 30)),
        (source(topic("orders", replace(led(), diverged=30))), {"source_truncated": SKIP}, (7, 40)),
        (facts_with(source(topic("orders", led())), source={"cluster_id": "x"}), {"cluster_changed": RESTART}, (7, 0)),
        (OVERWRITTEN, {"source_truncated": RESTART}, (None, None)),  # brokers without leader epochs
    ],
)
def test_a_slice_says_what_a_log_must_have_that_is_read_on(
    facts: Facts, guards: dict[str, GuardPolicy], read: tuple[int, int]
) -> None:
    last = replace(facts.lane.receipts[RECEIPT.target], source_epoch=3)
    plan = planned(facts_with(facts, lane={"receipts": {**facts.lane.receipts, RECEIPT.target: last}}), **guards)
    assert [(piece.read_epoch, piece.read_end) for piece in plan.slices if piece.source == RECEIPT.source] == [read]


def test_a_first_slice_has_nothing_before_it() -> None:
    plan = planned(facts_with(SOUND, lane={"receipts": {}, "positions": {}, "first_run": True}))
    assert {(piece.read_epoch, piece.read_end, piece.target_epoch) for piece in plan.slices} == {(None, None, None)}


@pytest.mark.parametrize(
    ("facts", "guards", "epoch"),
    [
        (SOUND, {}, 6),
        (OVERWRITTEN, {"source_truncated": RESTART}, 6),
        # It goes on behind something else than what was vouched for.
        (TARGET_FILLED, {"target_changed": RESTART}, None),
        (TARGET_NEW, {"target_changed": SKIP}, None),
    ],
)
def test_a_slice_says_in_which_leader_epoch_the_target_had_what_it_goes_on_behind(
    facts: Facts, guards: dict[str, GuardPolicy], epoch: int
) -> None:
    last = replace(facts.lane.receipts[RECEIPT.target], target_epoch=6)
    plan = planned(facts_with(facts, lane={"receipts": {**facts.lane.receipts, RECEIPT.target: last}}), **guards)
    assert [piece.target_epoch for piece in plan.slices if piece.source == RECEIPT.source] == [epoch]


def test_a_refusal_of_a_cut_target_says_how_it_is_known(golden: Golden) -> None:
    (plain,), (filled,) = planned(TARGET_CUT).refusals, planned(TARGET_FILLED).refusals
    golden(plain.message, "by its end")
    golden(filled.message, "by its cut")


def test_an_open_transaction_that_holds_the_last_stable_offset_back_is_no_cut(golden: Golden) -> None:
    held_back = source(topic("orders", replace(part(end=3), high_watermark=40)))
    plan = planned(held_back, source_truncated=RESTART)
    assert (plan.refusals, plan.gaps) == ((), ())
    assert [piece for piece in plan.slices if piece.source == RECEIPT.source] == []
    cut = source(topic("orders", replace(part(end=3), high_watermark=39)))
    (refusal,) = planned(cut).refusals
    assert refusal.kind is RefusalKind.SOURCE_TRUNCATED
    golden(refusal.message)
    (gap,) = planned(cut, source_truncated=RESTART).gaps
    assert (gap.start, gap.end, gap.void_from) == (40, 39, 39)


def test_a_log_whose_end_nobody_tells_is_left_out_with_the_reason() -> None:
    why = Unavailable(kind=RefusalKind.NO_LEADER, why="its leader does not answer")
    unknown = with_high_watermark(topic("orders", part(end=3)), 0, None, why)
    assert [(refusal.kind, refusal.partition) for refusal in planned(source(unknown)).refusals] == [
        (RefusalKind.NO_LEADER, 0)
    ]
    assert with_high_watermark(topic("orders", part(end=3)), 0, 39, None).partitions[0].high_watermark == 39


def test_the_counts_say_how_often_each_guard_refused_skipped_and_restarted() -> None:
    plan = planned(
        facts_with(RECREATED, target={"topics": {**TARGET_CUT.target.topics, "a.users": target("a.users", 3)}})
    )
    assert {kind: (count.refused, count.skipped) for kind, count in guard_counts(plan.refusals, plan.gaps).items()} == {
        "target-changed": (1, 0),
        "topic-recreated": (1, 0),
    }
    assert guard_counts((), (STUCK, GONE_BACK)) == {
        "stuck": GuardCount(skipped=1),
        "source-truncated": GuardCount(restarted=1),
    }


# A copy that is not empty before the first receipt


def test_a_copy_with_records_that_no_receipt_names_is_begun_only_where_the_guard_lets_it() -> None:
    facts = facts_with(
        SOUND, lane={"receipts": {}, "positions": {}, "first_run": True}, others={"foreign": {RECEIPT.target: 2}}
    )
    refused, let = planned(facts), planned(facts, foreign_writer=SKIP)
    assert [(refusal.topic, refusal.kind) for refusal in refused.refusals] == [("orders", RefusalKind.FOREIGN_WRITER)]
    causes = [
        refused.refusals[0].message.index(cause)
        for cause in ("ferry migrate", "ferry ledger rebuild", "another client")
    ]
    assert causes == sorted(causes), "the usual ones first"
    assert [piece.source.topic for piece in refused.slices] == ["users"]
    assert let.refusals == ()
    assert [piece.start for piece in let.slices] == [0, 0]
    assert [facts_in(note)["of"] for note in of_code("passed.copied-behind", let.notes)] == ["foreign.occupied"]
    (gap,) = let.gaps
    assert (gap.source, gap.start, gap.end, gap.why, gap.how) == (
        place("orders"),
        0,
        0,
        RefusalKind.FOREIGN_WRITER,
        Resolution.SKIP,
    )
    assert (gap.who, gap.void_from, gap.since) == ("ferry.guard.foreign.writer", None, -1)
    assert guard_counts(let.refusals, let.gaps, let.lifted) == {"foreign-writer": GuardCount(skipped=1)}


def test_who_has_a_copy_that_was_created_again_filled_anew_has_not_agreed_to_a_strangers_records_in_it(
    golden: Golden,
) -> None:
    facts = facts_with(TARGET_NEW, others={"foreign": {RECEIPT.target: 2}})
    (refusal,) = planned(facts, target_changed=RESTART).refusals
    assert (refusal.topic, refusal.kind) == ("orders", RefusalKind.FOREIGN_WRITER)
    golden(refusal.message)
    (refusal,) = planned(facts, foreign_writer=SKIP).refusals
    assert refusal.kind is RefusalKind.TARGET_CHANGED
    for guard, start in ((RESTART, 0), (SKIP, 40)):
        plan = planned(facts, target_changed=guard, foreign_writer=SKIP)
        assert plan.refusals == ()
        assert [(gap.why, gap.how.value) for gap in plan.gaps] == [
            (RefusalKind.TARGET_CHANGED, guard.default.value),
            (RefusalKind.FOREIGN_WRITER, "skip"),
        ]
        found = {piece.source: piece for piece in plan.slices}[place("orders")]
        assert (found.start, found.target_next, found.since) == (start, None, GENERATION if guard is RESTART else -1)


OPEN = OpenTransaction(producer_id=4711, start=41, last_ms=1_767_225_600_000, transactional_id="billing-1")


@pytest.mark.parametrize("copied", [True, False], ids=["behind our records", "before the first copy"])
def test_an_open_transaction_of_somebody_else_is_named_and_only_a_policy_copies_behind_it(
    copied: bool, golden: Golden
) -> None:
    facts = facts_with(SOUND, others={"open_transactions": {RECEIPT.target: OPEN}})
    facts = facts if copied else facts_with(facts, lane={"receipts": {}, "positions": {}, "first_run": True})
    refused, let = planned(facts), planned(facts, foreign_writer=SKIP)
    (refusal,) = refused.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == ("orders", 0, RefusalKind.FOREIGN_WRITER)
    golden(refusal.message, "refused")
    assert [piece.source.topic for piece in refused.slices] == ["users"]
    assert (let.refusals, [piece.source.topic for piece in let.slices]) == ((), ["orders", "users"])
    golden("\n".join(let.notes), "copied after it")
    unreported = replace(OPEN, producer_id=-1, last_ms=-1, transactional_id="")
    (refusal,) = planned(facts_with(facts, others={"open_transactions": {RECEIPT.target: unreported}})).refusals
    golden(refusal.message, "not known since when")
