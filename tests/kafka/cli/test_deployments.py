"""Two deployments on one lane of one flow, on real brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.ledger.report import RunState
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.program import warm_ferry as ferry
from tests.said import codes


def test_two_files_on_one_lane_are_refused_until_one_takes_it_over(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    orders, audit = f"{topic}-orders", f"{topic}-audit"
    for name in (orders, audit):
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, numbered(50))
    blue = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(orders,),
        settings={"ferry.deployment": "blue"},
    )
    green = replace(blue, settings={"ferry.deployment": "green", "tasks.max": "1", "ferry.pool": "elsewhere"})

    assert blue.micro_run().records == 50
    send(producer(source_cluster), orders, numbered(50, start=50))
    assert green.micro_run().records == 50, "another place, but the same copy"
    green = replace(green, topics=(orders, audit))
    assert green.micro_run().records == 50, "a changed file is in force at the next run"

    def refused(lab: Lab, last: str, own: str) -> None:
        with lab.runs() as runs:
            before = len(whole_ledger(runs).runs)
            said = f"is used by deployment {last} .* last run .*; deployment {own} .* make both files equal"
            with pytest.raises(Refused, match=said):
                lab.micro_run()
            assert len(whole_ledger(runs).runs) == before, "nothing is started"

    refused(blue, "green", "blue")
    with blue.runs() as runs:
        assert codes(runs.preview().notes)[0] == "run.would-be-refused"
    config = blue.write(tmp_path)
    answer = ferry("run", config=config)
    assert (answer.code, answer.out) == (2, "")
    assert "deployment green" in answer.err.splitlines()[-1]

    send(producer(source_cluster), orders, numbered(50, start=100))
    answer = ferry("run", "--id", "r9", "--take-over", config=config)
    assert answer.code == 0, answer.err
    assert " over from deployment green" in answer.out
    newest = ferry("ledger", "--runs", "--json", config=config).json("ledger-runs")["runs"][-1]
    assert (newest["run"], newest["deployment"], newest["took_over"]) == ("r9", "blue", "green")
    assert newest["config_digest"] == blue.flow.digest()
    refused(green, "blue", "green")
    assert blue.micro_run().state is RunState.SUCCESS, "who took the lane over keeps it"
    assert blue.assert_equal() == 200
