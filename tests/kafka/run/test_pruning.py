"""What the ledger keeps of old runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.lane import ledger_cache, summaries
from ferry.ledger import block_index, summary
from ferry.ledger.history import Forgotten, PastRun
from ferry.protocol import driver
from ferry.reader.watch import FlowPoll, FlowWatch
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S


def test_old_runs_leave_the_ledger_and_their_receipts_stay(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "KEPT_RUNS", 2)
    create_topic(source_cluster, topic)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    names = []
    for number in range(5):
        send(producer(source_cluster), topic, numbered(10, start=number * 10))
        done = lab.micro_run()
        assert done.records == 10
        names.append(done.plan.run)
    with lab.runs() as runs:
        view = whole_ledger(runs)
    plans = {key[2] for key, _ in view.of_kind("plan")}
    assert plans == {key[2] for key, _ in view.of_kind("run")} == set(names[-3:]), "the newest, and two before it"
    assert lab.assert_equal() == 50


@pytest.mark.parametrize("short", [False, True])
def test_what_is_left_of_a_run_that_was_let_go_is_shown_and_idle_runs_push_out_none_that_copied(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    short: bool,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(driver, "KEPT_RUNS", 2)
    if short:  # receipts are in blocks, and are searched for a few records at a time
        monkeypatch.setattr(summary, "SUMMARISED_FROM", 0)
        monkeypatch.setattr(summaries, "FIRST_WINDOW", 4)
        monkeypatch.setattr(block_index, "BLOCK_ROWS", 2)
        monkeypatch.setattr(ledger_cache, "PORTION", 3)
    create_topic(source_cluster, topic, 2)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    copying, named = [], list[FlowPoll]()
    with FlowWatch(lab.flow, patience_s=ANSWER_S) as watch:
        for number in range(4):
            send(producer(source_cluster), topic, numbered(10, start=number * 10, partitions=2))
            copying.append(lab.micro_run())
            named.append(watch.look())  # a page that was open all the time has seen the run
        idle = [lab.micro_run() for _ in range(5)]
        assert {report.records for report in idle} == {0}
        seen = watch.look()
        assert seen.view is not None
        names = [report.plan.run for report in (*copying, *idle)]
        assert [run.record.run for run in seen.view.remembered(lab.flow.lane)] == [*names[2:4], *names[-3:]], (
            "the newest, and of those before it two that copied and two that did not"
        )
        old = copying[0].plan.run
        view = named[0].view
        assert view is not None
        for found in (watch.run(old), watch.past(view.runs[0])):
            assert isinstance(found, Forgotten)
            assert (found.run, found.records, len(found.receipts)) == (old, 10, 2)
        with FlowWatch(lab.flow, patience_s=ANSWER_S) as fresh:  # it reads from the newest summary on
            assert isinstance(fresh.past(view.runs[0]), Forgotten)
        assert isinstance(watch.run(copying[-1].plan.run), PastRun)
        assert watch.run(idle[0].plan.run) is None
    config = lab.write(tmp_path)
    told = ferry("ledger", str(lab.flow.flow), "--run", old, "--json", config=config).json("ledger")
    assert (told["run"]["state"], told["run"]["report"]) == ("forgotten", None)
    assert sum(receipt["records"] for receipt in told["receipts"]) == 10
    kept = ferry("ledger", str(lab.flow.flow), "--run", copying[-1].plan.run, "--json", config=config).json("ledger")
    assert (kept["run"]["state"], kept["run"]["report"]["records"]) == ("success", 10)
    said = ferry("ledger", str(lab.flow.flow), "--run", old, config=config).out
    assert "no longer keeps" in said
    assert "nothing was copied" not in said
    assert ferry("ledger", str(lab.flow.flow), "--run", idle[0].plan.run, config=config).code == 2
    assert lab.assert_equal() == 40
