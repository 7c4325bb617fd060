"""The demo's own file on two brokers: a shadow drill and a switchover end well, as its page's buttons do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, guard, up_all
from ferry.model.switch import STEPS, SwitchOutcome, Verb
from ferry_airflow.demo import __main__ as demo
from ferry_airflow.demo.data import TOPICS, create_topics, let_group_stand
from tests.harness import numbered, producer, send
from tests.program import warm_ferry as ferry


@pytest.mark.timeout(300)
def test_a_shadow_drill_and_a_switchover_end_well_by_the_demos_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = tmp_path / "reports"
    monkeypatch.setattr(demo, "HOME", tmp_path)
    monkeypatch.setattr(demo, "REPORTS", reports)
    home = tmp_path / "clusters"
    with guard(home):
        source, target = up_all([ClusterSpec(name="primary"), ClusterSpec(name="backup")], home=home)
        create_topics(source.bootstrap)
        for topic in TOPICS:
            send(producer(source), topic.name, numbered(40, partitions=topic.partitions))
        let_group_stand(source.bootstrap)
        config = demo.write_config(source, target)
        assert ferry("run", demo.FLOW, "--quiet", config=config).code == 0

        ready = ferry("switchover", demo.FLOW, "--dry-run", "--json", config=config)
        assert ready.code == 0, ready.out + ready.err
        checks = ready.json("switch-preview")["readiness"]["checks"]
        assert [one for one in checks if not one["ok"]] == []

        drilled = ferry("drills", "shadow", demo.FLOW, "--from", "earliest", "--json", config=config)
        assert drilled.code == 0, drilled.out + drilled.err
        report = json.loads(drilled.out)
        assert (report["kind"], report["outcome"], report["deviations"]) == ("shadow", "success", [])
        assert report["verification"]["records"] == 40 * len(TOPICS)
        assert any(reports.iterdir()), "the report is in the folder that the file names"

        words = "--approve-by", "bob", "--quiet-seconds", "1", "--json"
        switched = ferry("switchover", demo.FLOW, "--id", "s-1", *words, config=config)
        assert switched.code == 0, switched.out + switched.err
        shown = ferry("switches", "show", demo.FLOW, "s-1", "--json", config=config)
        assert shown.code == 0, shown.out + shown.err
        state = shown.json("switch")
        assert [one["step"] for one in state["steps"]] == list(STEPS[Verb.SWITCHOVER])
        assert (state["next_step"], state["end"]["outcome"]) == (None, SwitchOutcome.FINISHED)
        again = ferry("run", demo.FLOW, "--json", config=config)
        assert again.json("run")["flow_paused"], "the flow is paused: clients are on the other cluster"
