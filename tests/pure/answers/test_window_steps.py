"""Windows of history as Airflow's tasks copy them, when other runs use the lane in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ferry.config.settings import load
from ferry.errors import Superseded
from ferry.ledger.run_codec import run_record
from ferry.ledger.switch_codec import begun_record, done_records, switch_record
from ferry.model import Flow, Record, RunRecord
from ferry.model.run import LOCAL
from ferry.model.switch import STEPS, Evidence, Step, StepBegun, StepDone, Switch, Verb
from ferry.protocol.names import ledger_topic
from ferry.run.local import copy_plan
from ferry.wire.records import ProducerIdentity, build_batch
from ferry_airflow.window_steps import Backfill, backfill_of, copy_window, open_first, reports_of
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, World

FLOW, LANE = Flow(source="a", target="b"), "backfill-june"
FIRST, SECOND = 0, 1
"""The partition of a window."""
OPENED = RunRecord(flow=FLOW, lane=LANE, run="", slots=1, config_digest="", started_ms=1, origin=LOCAL)


def window(made: World, run: str, partition: int = FIRST, **form: Any) -> Backfill:
    """The window of a run of the DAG."""
    made.now_ms += 60_000
    ends = {"from_offsets": [f"users:{partition}:2"], "to_offsets": [f"users:{partition}:5"]}
    flow = load(made.folder / FILE).flow(str(FLOW))
    return backfill_of(flow, run, {"lane": LANE, **ends, **form}, None)


def copied(backfill: Backfill) -> list[str]:
    """The task `copy`; the micro-runs that it copied."""
    runs: list[str] = []

    def copy(run: str) -> None:
        runs.append(run)
        with backfill.session() as session:
            assert copy_plan(session, session.sealed_plan(run)) is None

    copy_window(backfill, LOCAL, copy, lambda _: None)
    return runs


def shown(backfill: Backfill) -> tuple[list[str], int]:
    """The task `report`: the micro-runs that it shows, and how many offsets are left."""
    reports, look = reports_of(backfill)
    return [report.plan.run for report in reports], look.left


def other(made: World, *records: Record) -> None:
    """Another process writes to the ledger."""
    made.b.append(ledger_topic("a"), build_batch(list(records), made.now_ms, ProducerIdentity()), 0)


def draining(made: World) -> list[Record]:
    """A switchover along the flow whose drain has begun."""
    at = made.now_ms
    switch = Switch(
        id="s-1", verb=Verb.SWITCHOVER, named=FLOW, via=FLOW, who="ann", approved_by="bob", approved_ms=at, at_ms=at
    )
    steps = STEPS[Verb.SWITCHOVER]
    before = steps[: steps.index(Step.DRAIN)]
    evidence = Evidence(sentence="done")
    done = (StepDone(step=step, who="ann", begun_ms=at, done_ms=at, evidence=evidence) for step in before)
    begins = StepBegun(step=Step.DRAIN, who="ann", begun_ms=at, token="t")
    return [
        switch_record(switch),
        *(record for one in done for record in done_records("s-1", one)),
        begun_record("s-1", begins),
    ]


@pytest.mark.slow
def test_a_window_that_is_cleared_takes_the_lane_back(made: World) -> None:
    begun(made, topics={"users": 2})
    first, second = window(made, "w1"), window(made, "w2", SECOND)
    assert open_first(first, LOCAL)[0].run == "w1"
    assert open_first(second, LOCAL)[0].run == "w2"
    assert (copied(second), shown(second)) == (["w2"], (["w2"], 0))
    assert open_first(first, LOCAL)[0].run == "w1~2", "the run was cleared"
    assert (copied(first), shown(first)) == (["w1~2"], (["w1", "w1~2"], 0))
    assert open_first(second, LOCAL)[0].run == "w2", "nothing of it is left"
    assert (copied(second), shown(second)) == ([], (["w2"], 0))


@pytest.mark.slow
def test_a_window_without_an_end_of_its_first_run_is_continued_by_copy(made: World) -> None:
    begun(made, topics={"users": 2})
    first, second = window(made, "w1"), window(made, "w2", SECOND)
    open_first(first, LOCAL)
    open_first(second, LOCAL)
    assert [copied(first), copied(second)] == [["w1~2"], ["w2~2"]]
    assert [shown(first), shown(second)] == [(["w1", "w1~2"], 0), (["w2", "w2~2"], 0)]


def test_a_run_that_was_killed_before_its_plan_hides_no_later_one(made: World) -> None:
    begun(made, topics={"users": 2})
    first = window(made, "w1")
    open_first(first, LOCAL)
    other(made, run_record(replace(OPENED, run="w1~2")), run_record(replace(OPENED, run="w11")))
    assert copied(first) == ["w1~3"]
    assert shown(first) == (["w1", "w1~3"], 0)


@pytest.mark.parametrize("run", ["w1", "w2"], ids=["its first run", "another run was first"])
def test_a_window_into_the_live_topics_ends_while_a_switch_drains_the_flow(made: World, run: str) -> None:
    begun(made, topics={"users": 2})
    live = window(made, "w1", into_live=True)
    open_first(window(made, run, into_live=True), LOCAL)
    if run == "w1":
        other(made, run_record(replace(OPENED, lane="live", run="w2")))
    other(made, *draining(made))
    with pytest.raises(Superseded, match="s-1"):
        copied(live)
    with pytest.raises(Superseded, match="s-1"):
        open_first(live, LOCAL)
