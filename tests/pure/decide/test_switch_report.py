"""The report of a switch: a figure only where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from ferry.features.evidence.rules.figures import LOST_SECONDS, REREAD, RTO
from ferry.features.evidence.rules.lines import first_record, report_lines_of
from ferry.features.switch.rules.passed_over import passed_rows
from ferry.features.switch.rules.report import switch_report
from ferry.model import Flow, TopicPartition
from ferry.model.evidence import DEAD_LETTERS, EvidenceOutcome, EvidenceReport, Goal, PassedOver
from ferry.model.switch import (
    Evidence,
    Step,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
)
from ferry.words import count_of
from tests.golden import Golden

AT = 1_790_000_000_000
FLOW = Flow(source="primary", target="backup")
HERE = TopicPartition("orders", 0)


def reported(
    verb: Verb = Verb.FAILOVER,
    *,
    facts: dict[str, dict[str, Any]] | None = None,
    options: SwitchOptions | None = None,
    rto_seconds: float | None = None,
    finished: bool = True,
    first: Mapping[str, int] = MappingProxyType({}),
    **rows: list[dict[str, Any]],
) -> EvidenceReport:
    """Of a switch whose steps have these rows and facts; each takes a second, 10 s after its begin.

    `first` is when steps were begun for the first time. Without other facts, nothing was passed over.
    """
    of_step = {"stop": {"passed_over": 0, "left_out": 0}, **(facts or {})}
    switch = Switch(
        id="f1",
        verb=verb,
        named=FLOW,
        via=FLOW,
        who="anna",
        approved_by="anna",
        approved_ms=AT,
        at_ms=AT,
        options=options or SwitchOptions(),
    )
    done = {
        Step(name): StepDone(
            step=Step(name),
            who="anna",
            begun_ms=AT + 10_000 + 1_000 * at,
            done_ms=AT + 11_000 + 1_000 * at,
            evidence=Evidence(sentence="done", rows=tuple(some), facts=of_step.get(name, {})),
            first_ms=first.get(name),
        )
        for at, (name, some) in enumerate(rows.items())
    }
    end = SwitchEnd(outcome=SwitchOutcome.FINISHED, who="anna", why="", at_ms=AT + 100_000)
    return switch_report(
        SwitchState(switch=switch, offset=0, done=done, end=end if finished else None),
        lane="main",
        policy="DefaultReplicationPolicy",
        clusters=(),
        version="1",
        rpo_seconds=60,
        rto_seconds=rto_seconds,
    )


ANSWERS = {"groups": {"source_answers": True, "outside_known": True}}
SILENT = {"groups": {"source_answers": False, "outside_known": True}}


def stood(partition: int, *, known: str, end: int = 100, seen_ms: int = AT) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": partition,
        "target_topic": "primary.orders",
        "target_partition": partition,
        "copied_end": 100,
        "source_end": end,
        "source_known": known,
        "copied_ms": -1,
        "observed_ms": seen_ms,
        "target_end": 100,
    }


def lost(partition: int, records: int, seconds: float | None, *, certain: bool) -> dict[str, Any]:
    place = {"topic": "orders", "partition": partition, "start": 100, "end": 100 + records}
    return {**place, "records": records, "seconds": seconds, "certain": certain}


def test_what_is_lost_of_a_source_that_does_not_answer_is_not_known(golden: Golden) -> None:
    report = reported(
        stop=[stood(0, known="freeze"), stood(1, known="plan", end=103), stood(2, known="source", end=105)],
        loss=[lost(0, 0, 41.0, certain=False), lost(1, 3, 9.0, certain=False), lost(2, 5, 2.0, certain=True)],
    )
    assert (report.lost_records, report.lost_seconds) == (None, None)
    assert [(one.records, one.seconds, one.source_end) for one in report.losses] == [
        (None, None, None),
        (None, None, None),
        (5, 2.0, 105),
    ]
    golden(report.summary, "summary")
    (note,) = report.notes
    golden(note, "note")
    assert report.outcome is EvidenceOutcome.DEVIATIONS, "what is not known misses its goal"


def test_what_a_failover_lost_of_a_flow_without_a_known_partition_is_not_known(golden: Golden) -> None:
    """A flow that no run has planned, and whose source does not answer: no row is no zero."""
    report = reported(stop=[], loss=[])
    assert (report.losses, report.lost_records, report.lost_seconds) == ((), None, None)
    assert (goal(report, LOST_SECONDS).measured, goal(report, LOST_SECONDS).is_met) == (None, False)
    assert report.outcome is EvidenceOutcome.DEVIATIONS
    golden(report.summary, "summary")
    (note,) = report.notes
    golden(note, "note")
    (rpo,) = [line for line in report_lines_of(report) if line.startswith("RPO")]
    golden(rpo, "line")


@pytest.mark.parametrize(
    "records",
    [0, 1, 7],
)
def test_what_every_partition_told_is_a_number(records: int, golden: Golden) -> None:
    report = reported(stop=[stood(0, known="source", end=100 + records)], loss=[lost(0, records, 0.5, certain=True)])
    assert (report.lost_records, report.notes) == (records, ())
    golden(report.summary)
    assert report.outcome is EvidenceOutcome.SUCCESS


@pytest.mark.parametrize("recorded", [{}, {"passed_over": 0}], ids=["nothing", "no dead letters"])
def test_what_an_earlier_version_did_not_record_as_passed_over_is_not_known(
    recorded: dict[str, int], golden: Golden
) -> None:
    read = group(**{"from": [["orders", 0, 5]]})
    report = reported(facts={**ANSWERS, "stop": recorded}, stop=[stood(0, known="source")], groups=[read])
    assert report.passed_over is None
    assert [(one.reread, one.skipped) for one in report.groups] == [(0, None)]
    (note,) = report.notes
    golden(note)
    golden(report.summary, "summary")


def test_what_was_passed_over_is_read_from_rows_that_are_no_partitions() -> None:
    ranges = [PassedOver(source=TopicPartition("orders", 0), start=at, end=at + 1, why="stuck") for at in (3, 8)]
    stop = [stood(0, known="source"), *passed_rows(ranges)]
    read = group(**{"from": [["orders", 0, 5]]})
    report = reported(facts={**ANSWERS, "stop": {"passed_over": 2, "left_out": 0}}, stop=stop, groups=[read])
    assert report.passed_over == tuple(ranges)
    assert [one.source.partition for one in report.losses] == [0]
    assert [(one.exact, one.reread, one.skipped) for one in report.groups] == [(1, 0, 1)]


@pytest.mark.parametrize(
    ("records", "at", "how", "exact", "skipped"),
    [(3, 5, "exact", 1, None), (None, 5, "exact", 1, None), (3, 15, "gap", None, None), (3, 20, "gap", 1, 0)],
)
def test_dead_letters_are_next_to_the_loss_and_which_of_them_a_group_had_read_is_not_known(
    records: int | None, at: int, how: str, exact: int | None, skipped: int | None, golden: Golden
) -> None:
    letters = PassedOver(source=HERE, start=10, end=20, why=DEAD_LETTERS, records=records)
    read = group(how={"orders-0": how}, **{"from": [["orders", 0, at]]})
    report = reported(
        facts={**ANSWERS, "stop": {"passed_over": 0, "left_out": 1}},
        stop=[stood(0, known="source"), *passed_rows([letters])],
        groups=[read],
    )
    assert report.passed_over == (letters,)
    assert (report.lost_records, report.dead_letters, report.before_adoption) == (0, records, 0)
    assert [(one.exact, one.reread, one.skipped) for one in report.groups] == [(exact, 0, skipped)]
    assert report.outcome is EvidenceOutcome.SUCCESS, "the file decided that they are among the dead letters"
    golden(report.summary, "summary")
    (note,) = report.notes
    golden(note)
    (rpo,) = [line for line in report_lines_of(report) if line.startswith("RPO")]
    assert str(records if records is not None else "not known") in rpo.partition(";")[2]


@pytest.mark.slow
def test_notes_of_many_decisions_are_bounded_and_the_numbers_are_exact() -> None:
    """Each of 100,000 skips may have a reason of its own."""
    count = 100_000
    ranges = [
        PassedOver(source=HERE, start=2 * at, end=2 * at + 1, why="stuck", who="bob", reason=f"reason {at}")
        for at in range(count)
    ]
    stop = [stood(0, known="source"), *passed_rows(ranges)]
    report = reported(facts={**ANSWERS, "stop": {"passed_over": count, "left_out": 0}}, stop=stop)
    assert report.passed_over == tuple(ranges)
    assert sum(len(note) for note in report.notes) < 10_000
    assert "reason 0" in report.notes[0]
    (rest,) = [note for note in report.notes if "rpo.passed_over" in note]
    named = sum("reason" in note for note in report.notes)
    assert count_of(count - named, "more decision") in rest
    assert count_of(count - named, "offset") in rest
    assert count_of(count, "offset") in report.summary


def test_a_switch_that_counted_no_loss_knows_it_only_from_a_source_that_answered() -> None:
    assert reported(stop=[stood(0, known="source", end=104)]).lost_records == 4
    assert reported(stop=[stood(0, known="receipt")]).lost_records is None


def group(**fields: object) -> dict[str, Any]:
    row = {"group": "g", "outcome": "moved", "why": None, "offsets": [["orders", 0, 7]], "notes": []}
    return {**row, "how": {"orders-0": "exact"}, "kept": [], **fields}


def test_what_a_group_read_twice_is_known_only_where_every_offset_leads_to_the_record_that_is_next(
    golden: Golden,
) -> None:
    rows = [
        group(),
        group(kept=[["orders", 1, 90, 40]], offsets=[["orders", 0, 7], ["orders", 1, 90]]),
        group(how={}, kept=[["orders", 0, 90, 40]]),
        group(how={"orders-0": "ahead"}),
        group(how={}, offsets=[]),
        group(outcome="left", why="it has members", how={}, offsets=[]),
    ]
    report = reported(facts=ANSWERS, stop=[], groups=rows)
    assert [one.reread for one in report.groups] == [one.skipped for one in report.groups]
    assert [one.reread for one in report.groups] == [0, None, None, None, None, None]
    assert [(one.partitions, one.committed, one.exact) for one in report.groups[:3]] == [
        (1, 1, 1),
        (2, 2, 1),
        (1, 1, 0),
    ]
    golden(report.groups[1].note)
    assert report.reread is None


def test_what_groups_had_not_read_before_is_told() -> None:
    def group(name: str) -> dict[str, Any]:
        moved = {"offsets": [["primary.orders", 0, 7]], "how": {"primary.orders-0": "exact"}, "kept": [], "notes": []}
        return {"group": name, "outcome": "moved", "why": None, **moved}

    def frozen(name: str, *lags: int | None) -> dict[str, Any]:
        offsets = [["orders", number, 7, lag] for number, lag in enumerate(lags)]
        return {"group": name, "known": "source", "offsets": offsets, "translated": [], "why": None}

    report = reported(
        facts=ANSWERS,
        freeze=[stood(0, known="source"), frozen("billing", 3, 4), frozen("audit", 3, None)],
        groups=[group("billing"), group("audit"), group("late")],
    )
    assert {one.group: one.lag for one in report.groups} == {"billing": 7, "audit": None, "late": None}


def goal(report: EvidenceReport, name: str) -> Goal:
    (found,) = [one for one in report.goals if one.name == name]
    return found


def test_what_groups_of_a_source_that_does_not_answer_read_twice_is_not_known() -> None:
    none, one = (reported(facts=SILENT, stop=[stood(0, known="source")], groups=rows) for rows in ([], [group()]))
    for report in (none, one):
        assert (goal(report, REREAD).measured, goal(report, REREAD).is_met) == (None, False)
        assert report.reread is None
        assert report.outcome is EvidenceOutcome.DEVIATIONS
        assert any("not known" in note for note in report.notes)
    assert [(one.exact, one.reread, one.beyond) for one in one.groups] == [(None, None, None)]
    told = reported(facts=ANSWERS, stop=[stood(0, known="source")], groups=[])
    assert (goal(told, REREAD).measured, goal(told, REREAD).is_met) == (0, True)


def test_what_a_group_had_read_beyond_the_copy_is_counted_or_not_known() -> None:
    def frozen(known: str) -> dict[str, Any]:
        offsets = [["orders", 0, 130, 0], ["orders", 1, 90, 0]]
        return {"group": "g", "known": known, "offsets": offsets, "translated": [], "why": None}

    stop = [stood(0, known="source"), stood(1, known="source")]
    for known, beyond in (("source", 30), ("checkpoint", None)):
        report = reported(facts=ANSWERS, freeze=[frozen(known)], stop=stop, groups=[group()])
        assert report.groups[0].beyond == beyond


def test_a_loss_that_was_not_counted_is_not_known() -> None:
    report = reported(readiness=[], finished=False)
    assert (report.lost_records, report.lost_seconds) == (None, None)
    assert (goal(report, LOST_SECONDS).measured, goal(report, LOST_SECONDS).is_met) == (None, False)


def test_the_rto_of_a_failover_begins_with_the_loss() -> None:
    """It was lost 40 s before the command began; the steps freeze, stop, loss, smoke end 14 s after that."""
    steps: dict[str, Any] = {
        "freeze": [stood(0, known="plan", seen_ms=AT - 40_000)],
        "stop": [stood(0, known="receipt", seen_ms=AT - 50_000)],
        "loss": [lost(0, 0, 40.0, certain=False)],
        "smoke": [],
    }
    seen = reported(rto_seconds=30, **steps)
    assert (seen.rto_s, seen.from_start_s, goal(seen, RTO).is_met) == (54.0, 14.0, False)
    given = reported(rto_seconds=30, options=SwitchOptions(lost_at_ms=AT - 10_000), **steps)
    assert (given.rto_s, given.from_start_s, goal(given, RTO).is_met) == (24.0, 14.0, True)
    answers = reported(rto_seconds=30, **{**steps, "stop": [stood(0, known="source")]})
    assert (answers.rto_s, answers.from_start_s, goal(answers, RTO).is_met) == (None, 14.0, False)
    assert len({seen.rto_means, given.rto_means, answers.rto_means}) == 3
    late = reported(rto_seconds=30, finished=False, freeze=steps["freeze"])
    assert (late.rto_s, late.from_start_s, goal(late, RTO).is_met) == (None, None, False)


def test_without_a_smoke_test_the_rto_ends_when_clients_were_sent_and_claims_no_more() -> None:
    steps: dict[str, Any] = {"readiness": [], "quiet": [], "stop": [], "redirect": [], "smoke": []}
    tried, untried = (reported(Verb.SWITCHOVER, facts={"smoke": {"smoke": made}}, **steps) for made in (True, False))
    assert (tried.rto_s, tried.from_start_s) == (4.0, 15.0)
    assert (untried.rto_s, untried.from_start_s) == (3.0, 14.0)
    assert tried.rto_means != untried.rto_means
    steps = {
        "freeze": [stood(0, known="plan", seen_ms=AT - 40_000)],
        "stop": [stood(0, known="receipt", seen_ms=AT - 50_000)],
        "loss": [lost(0, 0, 40.0, certain=False)],
        "redirect": [],
        "smoke": [],
    }
    tried, untried = (reported(facts={"smoke": {"smoke": made}}, **steps) for made in (True, False))
    assert (tried.rto_s, untried.rto_s) == (55.0, 54.0)
    assert tried.rto_means != untried.rto_means


def test_the_first_record_of_a_consumer_is_a_figure_or_not_known(golden: Golden) -> None:
    """Clients are to stop 11 s after the command began; the smoke test is over after 15 s."""
    stop = [stood(0, known="source")]
    steps: dict[str, Any] = {"readiness": [], "quiet": [], "stop": stop, "redirect": [], "smoke": []}

    def of(verb: Verb = Verb.SWITCHOVER, options: SwitchOptions | None = None, **facts: object) -> EvidenceReport:
        return reported(verb, facts={**ANSWERS, "smoke": {"smoke": True, **facts}}, options=options, **steps)

    seen = of(tried_ms=AT + 14_500, first_record_ms=AT + 17_250, first_record_why="")
    assert (seen.rto_s, seen.from_start_s, seen.first_record_s) == (3.5, 14.5, 6.25)
    golden("\n".join(report_lines_of(seen)), "seen")
    denied = of(tried_ms=AT + 14_500, first_record_ms=None, first_record_why="the group may not be read")
    assert (denied.rto_s, denied.first_record_s) == (3.5, None)
    earlier = of()
    assert (earlier.rto_s, earlier.first_record_s) == (4.0, None)
    left_out = of(smoke=False)
    assert left_out.first_record_s is None
    steps = {"freeze": [], "stop": stop, "redirect": [], "smoke": []}
    lost = of(Verb.FAILOVER, tried_ms=AT + 14_500, first_record_ms=AT + 17_250)
    assert (lost.rto_s, lost.first_record_s) == (None, 17.25), "when the loss was is not known"
    since = of(Verb.FAILOVER, SwitchOptions(lost_at_ms=AT - 10_000), tried_ms=AT, first_record_ms=AT + 1_000)
    assert (since.rto_s, since.first_record_s) == (10.0, 11.0)
    unfinished = reported(readiness=[], finished=False)
    assert (unfinished.first_record_s, unfinished.first_record_means) == (None, "")
    for title, one in {"denied": denied, "earlier": earlier, "left out": left_out, "lost": lost}.items():
        golden(first_record(one), title)
    assert "first record" not in "\n".join(report_lines_of(unfinished))


def test_the_rto_of_a_planned_switch_begins_when_clients_are_to_stop() -> None:
    report = reported(Verb.SWITCHOVER, rto_seconds=30, readiness=[], quiet=[], stop=[], smoke=[])
    assert (report.rto_s, report.from_start_s) == (3.0, 14.0)
    again = reported(Verb.SWITCHOVER, readiness=[], quiet=[], stop=[], smoke=[], first={"quiet": AT})
    assert again.rto_s == 14.0, "clients were stopped by the first try of the step"


def test_what_came_to_the_old_cluster_after_it_was_drained_is_a_loss(golden: Golden) -> None:
    """Its age is not known, and of a topic that was not there before nothing is copied."""
    report = reported(
        Verb.SWITCHOVER,
        facts={**ANSWERS, "reverse": {"started": True, "stayed": [["orders", 0, 100, 200], ["late", 0, 0, 1]]}},
        stop=[stood(0, known="source"), stood(1, known="source")],
        groups=[],
        reverse=[],
    )
    losses = {str(one.source): (one.position, one.source_end, one.records, one.seconds) for one in report.losses}
    assert losses == {"orders-0": (100, 200, 100, None), "orders-1": (100, 100, 0, 0.0), "late-0": (None, 1, 1, None)}
    assert (report.lost_records, report.lost_seconds) == (101, None)
    assert (goal(report, LOST_SECONDS).measured, goal(report, LOST_SECONDS).is_met) == (None, False)
    golden(report.summary, "summary")
    age, stayed = report.deviations
    assert LOST_SECONDS in age
    golden(stayed, "deviation")
    assert report.outcome is EvidenceOutcome.DEVIATIONS


def test_where_the_old_cluster_is_not_seen_again_what_came_to_it_is_not_known(golden: Golden) -> None:
    report = reported(
        Verb.SWITCHOVER,
        facts={"reverse": {"started": False, "stayed": [], "unseen": [["orders", 1]]}},
        stop=[stood(0, known="source"), stood(1, known="source")],
        reverse=[],
    )
    assert [one.records for one in report.losses] == [0, None]
    assert goal(report, LOST_SECONDS).is_met is False
    (note,) = report.notes
    golden(note, "note")
    assert report.outcome is EvidenceOutcome.DEVIATIONS


def test_a_switch_after_which_nothing_came_has_lost_nothing() -> None:
    facts = {"reverse": {"started": True, "stayed": []}}
    report = reported(Verb.SWITCHOVER, facts=facts, stop=[stood(0, known="source")], reverse=[])
    assert (report.lost_records, report.deviations, report.notes) == (0, (), ())
    assert report.outcome is EvidenceOutcome.SUCCESS


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILOVER])
def test_an_earlier_version_did_not_look_at_the_old_cluster_last(verb: Verb) -> None:
    facts = {"reverse": {"started": True}}
    report = reported(verb, facts=facts, stop=[stood(0, known="source")], reverse=[])
    assert (report.lost_records, len(report.notes)) == (None, 1)
