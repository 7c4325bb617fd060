"""The demo's own file on two brokers: a switchover is ready, and a shadow drill ends well, as its page's buttons do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, guard, up_all
from ferry_airflow.demo import __main__ as demo
from ferry_airflow.demo.data import TOPICS, create_topics, let_group_stand
from tests.harness import numbered, producer, send
from tests.program import warm_ferry as ferry


@pytest.mark.timeout(300)
def test_a_switchover_is_ready_and_a_shadow_drill_ends_well_by_the_demos_file(
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
