"""The figures of a drill: never better than what was seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.drill.rules.group_positions import GroupPosition, Record, is_same, moved
from ferry.features.drill.rules.verdict import loss_sentence, outcome_of, partial_sentence, shadow_sentence
from ferry.features.evidence.rules.figures import SAMPLES, Committed, deviations_of, goals_of, samples_of, untried
from ferry.features.evidence.rules.lines import report_lines_of
from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, Translated
from ferry.features.identical.rules.evidence import offsets_checks
from ferry.model import TopicPartition
from ferry.model.evidence import Compared, EvidenceOutcome, GroupMoved, StepOutcome, TimelineStep
from tests.golden import Golden
from tests.pure.decide.values import RECEIPT
from tests.pure.reports.values import EVIDENCE, loss
from tests.said import facts_in

HERE: Record = (1, b"k", b"v", b"\x00")
OTHER: Record = (1, b"k", b"w", b"\x00")


@given(st.lists(st.tuples(st.integers(0, 600_000), st.integers(1, 5_000)), min_size=1, max_size=80))
def test_samples_hold_every_record_once_and_end_at_what_is_left(chunks: list[tuple[int, int]]) -> None:
    began, total, at = 1_000_000, sum(count for _, count in chunks) + 7, 0
    heard = []
    for late, count in chunks:
        one = replace(RECEIPT, start=at, end=at + count, records=count, bytes=10 * count)
        heard.append(Committed(at_ms=began + late, receipts=[one]))
        at += count
    samples = samples_of(began, total, heard)
    assert len(samples) <= SAMPLES + 1
    assert (samples[0].at_ms, samples[-1].lag_records) == (began, 7)
    assert [one.lag_records for one in samples] == sorted((one.lag_records for one in samples), reverse=True)
    steps = [b.at_ms - a.at_ms for a, b in pairwise(samples)]
    assert len(set(steps)) == 1
    records = sum(one.records_per_second * steps[0] / 1000 for one in samples)
    assert records == pytest.approx(at, rel=1e-3, abs=1)


@pytest.mark.parametrize(
    ("here", "offset", "there", "end", "same"),
    [
        (HERE, 5, HERE, 10, True),
        (HERE, 5, OTHER, 10, False),
        (HERE, 5, None, 10, False),
        (HERE, 10, None, 10, True),  # what comes next was not copied yet
        (None, 5, None, 10, True),
        (None, 5, HERE, 10, False),
    ],
)
def test_a_group_goes_on_at_the_same_record_or_behind_all_that_was_copied(
    here: Record | None, offset: int, there: Record | None, end: int, same: bool
) -> None:
    assert is_same(here, offset, there, end) is same


def standing(partition: int, became: Translated | None, offset: int = 5, copied_end: int = 10) -> GroupPosition:
    place = TopicPartition("orders", partition)
    return GroupPosition(group="g", source=place, offset=offset, target=place, became=became, copied_end=copied_end)


def test_a_group_reads_nothing_twice_only_where_every_partition_was_seen_to_be_right() -> None:
    ones = [standing(0, Exact(offset=3)), standing(1, Exact(offset=4))]
    places = [one.source for one in ones]
    assert moved("g", "g2", ones, same=dict.fromkeys(places, True)).reread == 0
    for same in ({places[0]: True, places[1]: False}, {places[0]: True}, None):
        found = moved("g", "g2", ones, same=same)
        assert (found.reread, found.skipped) == (None, None)
    dealt = moved(
        "g", "g2", [*ones, replace(standing(2, Exact(offset=5)), dealt=True)], same=dict.fromkeys(places, True)
    )
    assert (dealt.committed, dealt.exact, dealt.reread) == (3, None, None), "no single record is next there"
    refused = moved("g", "g2", ones, refused="it has members", same={})
    assert (refused.committed, refused.reread, refused.note) == (0, None, "it has members")
    rest = [standing(2, Before(offset=0)), standing(3, Ahead(offset=9), offset=14), standing(4, None)]
    found = moved("g", "g2", [*ones, *rest], same=dict.fromkeys([*places, rest[1].source], True))
    assert (found.partitions, found.committed, found.exact, found.beyond) == (5, 3, 3, 4)
    assert found.note.count(";") == 1


def test_a_group_of_which_nothing_was_copied_was_not_tried_out(golden: Golden) -> None:
    for became in (None, Before(offset=0)):
        found = moved("g", "g2", [standing(0, became)], same={})
        assert (found.committed, found.exact, found.reread, found.skipped) == (0, 0, None, None)
        golden(shadow_sentence(9, True, [found], 1.0, "backup", knows_groups=True), "summary")
        (said,) = untried([found, group(0)], ())
        golden(said, "not tried out")


@pytest.mark.parametrize("knows_groups", [True, False])
@pytest.mark.parametrize("count", [0, 1])
def test_a_summary_says_of_groups_what_is_known(knows_groups: bool, count: int, golden: Golden) -> None:
    groups = [group(0)] * count
    shadow = shadow_sentence(9, True, groups, 1.0, "backup", knows_groups=knows_groups)
    golden(f"{shadow}\n{partial_sentence(['orders'], True, groups, 'backup', knows_groups=knows_groups)}")


def test_a_group_that_had_read_beyond_the_copy_is_named_with_where_it_would_continue(golden: Golden) -> None:
    groups = [group(0), replace(group(0, 4), group="billing"), replace(group(0, 1), group="audit")]
    for ones in (groups[:2], groups):
        golden(shadow_sentence(9, True, ones, 1.0, "backup", knows_groups=True), f"shadow, {len(ones)} groups")
        golden(partial_sentence(["orders"], True, ones, "backup", knows_groups=True), f"partial, {len(ones)} groups")
    evidence = replace(EVIDENCE, groups=tuple(groups))
    golden("\n".join(line for line in report_lines_of(evidence) if line.startswith("group ")), "lines")


def test_a_drill_that_tried_out_nothing_says_so(golden: Golden) -> None:
    assert untried([group(0)], (), copied=1) == ()
    assert untried([group(0)], ()) == ()
    (said,) = untried([], (), copied=0)
    golden(said, "nothing copied")
    paused = untried([], ("b", "a"), copied=0)
    assert len(paused) == 2
    golden("\n".join(paused), "all paused")
    nothing = Compared(equal=True, complete=True, partitions=1, records=0, bytes=0, seconds=1, differences=0)
    (found,) = deviations_of([], [], nothing, [])
    golden(found, "nothing compared")


def test_what_is_not_known_misses_its_goal() -> None:
    losses = (loss(0, 5, 2.0), loss(1, None, None))
    goals = goals_of(losses=losses, rpo_seconds=60, rto_s=9.0, rto_seconds=8, groups=[group(None)])
    assert [goal.is_met for goal in goals] == [False, False, False]
    assert len(deviations_of(goals, [], None, [])) == 3
    fine = goals_of(losses=losses[:1], rpo_seconds=60, rto_s=9.0, rto_seconds=None, groups=[group(0)])
    assert [goal.is_met for goal in fine] == [True, None, True]
    assert deviations_of(fine, [group(0)], EVIDENCE.verification, EVIDENCE.checks) == ()


def test_a_figure_that_was_not_measured_misses_its_goal() -> None:
    found = goals_of(losses=None, rpo_seconds=60, rto_s=None, rto_seconds=8, groups=[], all_groups=False)
    assert [(goal.measured, goal.is_met) for goal in found] == [(None, False)] * 3
    (alone,) = goals_of(losses=(), rpo_seconds=60, rto_s=None, rto_seconds=8, groups=None, moves=False)
    assert (alone.measured, alone.is_met) == (None, False), "without a partition nothing was counted"


def group(reread: int | None, beyond: int = 0) -> GroupMoved:
    return GroupMoved(
        group="g", target_group="g2", partitions=1, committed=1, exact=1, reread=reread, skipped=reread, beyond=beyond
    )


def test_each_deviation_is_a_sentence(golden: Golden) -> None:
    different = Compared(equal=False, complete=True, partitions=1, records=9, bytes=9, seconds=1, differences=2)
    unfinished = replace(different, differences=0, complete=False)
    check = replace(EVIDENCE.checks[0], ok=False, message="primary.orders grew")
    found = deviations_of([], [replace(group(0), exact=0)], different, [check])
    assert len(found) == 3
    golden("\n".join(found), "a group, the content, a check")
    (left,) = deviations_of([], [], unfinished, [])
    golden(left, "not compared to the end")


def test_the_word_is_that_of_the_worst_step() -> None:
    def steps(*outcomes: StepOutcome) -> list[TimelineStep]:
        return [replace(EVIDENCE.steps[0], outcome=outcome) for outcome in outcomes]

    done = steps(StepOutcome.DONE)
    assert outcome_of(done, (), ()) is EvidenceOutcome.SUCCESS
    assert outcome_of(done, (), ("late",)) is EvidenceOutcome.DEVIATIONS
    assert outcome_of(done, ("one topic",), ()) is EvidenceOutcome.DEVIATIONS
    assert outcome_of(steps(StepOutcome.DONE, StepOutcome.REFUSED), ("no",), ()) is EvidenceOutcome.REFUSED
    assert outcome_of(steps(StepOutcome.REFUSED, StepOutcome.FAILED), ("no",), ()) is EvidenceOutcome.FAILED


def test_a_loss_is_told_with_what_is_not_known(golden: Golden) -> None:
    golden(loss_sentence([loss(0, 0, 0.0)], "primary"), "nothing lost")
    golden(loss_sentence([loss(0, 3, 1.5), loss(1, None, None)], "primary"), "one of two not known")
    golden(loss_sentence([loss(0, 0, 0.0), loss(1, None, None)], "primary"), "one not known, of the other nothing")


def test_identical_offsets_are_equal_if_those_of_each_flow_are() -> None:
    assert offsets_checks([]) == []
    for kept, equal in (([(3, True), (4, True)], True), ([(3, True), (4, False)], False)):
        (check,) = offsets_checks(kept)
        assert (check.ok, facts_in(check.message)["records"]) == (equal, 7)
        assert bool(deviations_of((), (), None, [check])) is not equal
