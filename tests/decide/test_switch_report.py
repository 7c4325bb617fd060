"""The report of a switch: a figure only where somebody knew it."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.decide.drill.switched import switch_report
from ferry.model import Flow
from ferry.model.evidence import EvidenceOutcome, EvidenceReport
from ferry.model.switch import (
    Evidence,
    Step,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOutcome,
    SwitchState,
    Verb,
)

AT = 1_790_000_000_000
FLOW = Flow(source="primary", target="backup")


def reported(**rows: list[dict[str, Any]]) -> EvidenceReport:
    """Of a finished failover whose steps have these rows."""
    switch = Switch(
        id="f1", verb=Verb.FAILOVER, named=FLOW, via=FLOW, who="anna", approved_by="anna", approved_ms=AT, at_ms=AT
    )
    done = {
        Step(name): StepDone(
            step=Step(name),
            who="anna",
            begun_ms=AT + at,
            done_ms=AT + at + 1,
            evidence=Evidence(sentence="done", rows=tuple(some)),
        )
        for at, (name, some) in enumerate(rows.items())
    }
    end = SwitchEnd(outcome=SwitchOutcome.FINISHED, who="anna", why="", at_ms=AT + 100)
    return switch_report(
        SwitchState(switch=switch, offset=0, done=done, end=end),
        lane="main",
        policy="DefaultReplicationPolicy",
        clusters=(),
        version="1",
        rpo_seconds=60,
        rto_seconds=None,
    )


def stood(partition: int, *, known: str, end: int = 100) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": partition,
        "target_topic": "primary.orders",
        "target_partition": partition,
        "copied_end": 100,
        "source_end": end,
        "source_known": known,
    }


def lost(partition: int, records: int, seconds: float, *, certain: bool) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "records": records, "seconds": seconds, "certain": certain}


def test_what_is_lost_of_a_source_that_does_not_answer_is_not_known() -> None:
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
    assert report.summary == (
        "clients were moved to backup; how many records were lost is not known: 2 of 3 partitions did not answer"
    )
    (note,) = report.notes
    assert note == (
        "2 partitions did not answer when the loss was counted: 3 records of them are known to be lost, and what came "
        "in the 41.0 s since somebody last saw them is not known"
    )
    assert report.outcome is EvidenceOutcome.DEVIATIONS, "what is not known misses its goal"


@pytest.mark.parametrize(
    ("records", "words"),
    [(0, "0 records were lost"), (1, "1 record was lost, at most"), (7, "7 records were lost, at most")],
)
def test_what_every_partition_told_is_a_number(records: int, words: str) -> None:
    report = reported(stop=[stood(0, known="source", end=100 + records)], loss=[lost(0, records, 0.5, certain=True)])
    assert (report.lost_records, report.notes) == (records, ())
    assert report.summary == f"clients were moved to backup; {words}"
    assert report.outcome is EvidenceOutcome.SUCCESS


def test_a_switch_that_counted_no_loss_knows_it_only_from_a_source_that_answered() -> None:
    assert reported(stop=[stood(0, known="source", end=104)]).lost_records == 4
    assert reported(stop=[stood(0, known="receipt")]).lost_records is None


def group(**fields: object) -> dict[str, Any]:
    row = {"group": "g", "outcome": "moved", "why": None, "offsets": [["orders", 0, 7]], "notes": []}
    return {**row, "how": {"orders-0": "exact"}, "kept": [], **fields}


def test_what_a_group_read_twice_is_known_only_where_every_offset_leads_to_the_record_that_is_next() -> None:
    rows = [
        group(),
        group(kept=[["orders", 1, 90, 40]], offsets=[["orders", 0, 7], ["orders", 1, 90]]),
        group(how={}, kept=[["orders", 0, 90, 40]]),
        group(how={"orders-0": "ahead"}),
        group(how={}, offsets=[]),
        group(outcome="left", why="it has members", how={}, offsets=[]),
    ]
    report = reported(groups=rows)
    assert [one.reread for one in report.groups] == [one.skipped for one in report.groups]
    assert [one.reread for one in report.groups] == [0, None, None, None, None, None]
    assert [(one.partitions, one.committed, one.exact) for one in report.groups[:3]] == [
        (1, 1, 1),
        (2, 2, 1),
        (1, 1, 0),
    ]
    assert report.groups[1].note == "1 partition left further on, where it stood"
    assert report.reread is None


def test_what_groups_had_not_read_before_is_told() -> None:
    def group(name: str) -> dict[str, Any]:
        moved = {"offsets": [["primary.orders", 0, 7]], "how": {"primary.orders-0": "exact"}, "kept": [], "notes": []}
        return {"group": name, "outcome": "moved", "why": None, **moved}

    def frozen(name: str, *lags: int | None) -> dict[str, Any]:
        offsets = [["orders", number, 7, lag] for number, lag in enumerate(lags)]
        return {"group": name, "known": "source", "offsets": offsets, "translated": [], "why": None}

    report = reported(
        freeze=[stood(0, known="source"), frozen("billing", 3, None, 4), frozen("audit", None)],
        groups=[group("billing"), group("audit"), group("late")],
    )
    assert {one.group: one.lag for one in report.groups} == {"billing": 7, "audit": None, "late": None}
