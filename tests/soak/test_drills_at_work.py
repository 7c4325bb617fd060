"""Every kind of drill while clients work: none notices the first three, and the fourth moves them there and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster
from tests.harness import create_topic, wait_until
from tests.kafka.run.movers import Directory, Home, Movers
from tests.kafka.run.switching import IDENTITY, PARTITIONS, Pair, begin_group, rest
from tests.program import warm_ferry as ferry


def drilled(config: Path, reports: Path, *arguments: str) -> dict[str, Any]:
    """A drill's report; it has to be a success, and its copy on disk has to be the same."""
    answer = ferry("drill", *arguments, "--report", reports, "--json", config=config, seconds=400)
    body: dict[str, Any] = answer.json("drill")
    assert (answer.code, body["outcome"]) == (0, "success"), (body["deviations"], body["refusals"], answer.err)
    assert json.loads(Path(body["report"]["json"]).read_text())["id"] == body["id"]
    return body


@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_no_drill_costs_clients_at_work_a_record(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, policy: str
) -> None:
    keeps, group = policy == "Identity", f"g-{topic}"
    pair = Pair(here=source_cluster, there=target_cluster, topic=topic, group=group)
    here, there = pair.aliases
    directory = Directory(
        homes={
            here: Home(cluster=source_cluster, topics=(topic,) if keeps else (topic, f"{there}.{topic}")),
            there: Home(cluster=target_cluster, topics=(topic,) if keeps else (topic, f"{here}.{topic}")),
        }
    )
    movers = Movers(directory=directory, topic=topic, group=group, partitions=PARTITIONS)
    create_topic(source_cluster, topic, PARTITIONS)
    begin_group(source_cluster, group, topic)
    reports = tmp_path / "reports"
    with directory.served() as url:
        more = {"replication.policy.class": IDENTITY} if keeps else {}
        hooks = {"ferry.switch.redirect.url": url, "ferry.switch.stop.url": url, "ferry.deployment": topic}
        pair = replace(pair, more={**more, **hooks})
        if keeps:
            rest(pair)
        config = tmp_path / "pair.properties"
        config.write_text(pair.text)
        pair.run(pair.flow)
        directory.move(here)
        with movers.at_work():
            movers.go_on(200)
            pair.run(pair.flow)
            drilled(config, reports, "tabletop", pair.flow)
            movers.go_on(50)
            shadow = drilled(config, reports, "shadow", pair.flow, "--from", "earliest", "--approve-by", "anna")
            assert shadow["verification"]["equal"] is True
            movers.go_on(50)
            given = ("partial", pair.flow, "--topic", topic, "--group", group, "--approve-by", "anna")
            partial = drilled(config, reports, *given)
            assert partial["verification"]["equal"] is True
            movers.go_on(50)
            assert directory.calls == [], "so far nobody moved them"
            for number in range(2):
                given = ("full", pair.flow, "--id", f"full-{number}", "--approve-by", "anna", "--quiet-seconds", "0.6")
                full = drilled(config, reports, *given, "--stay", "5")
                calls = [(one["hook"], one["to"]) for one in directory.calls[-4:]]
                assert calls == [("stop", there), ("redirect", there), ("stop", here), ("redirect", here)]
                assert [(one["reread"], one["skipped"]) for one in full["groups"]] == [(0, 0)] * 2, full["groups"]
                assert (full["rpo"]["records"], full["verification"]["differences"]) == (0, 0)
                movers.go_on(50)
                pair.run(pair.flow)
            movers.over.set()
            wait_until(lambda: bool(movers.failures) or not movers.unread, "each record, read", 60)
    assert not movers.failures, movers.failures[:3]
    assert movers.doubled == [], "each is read once"
    assert not movers.unread
    clusters = {one.cluster for one in movers.read}
    assert clusters == {source_cluster.name, target_cluster.name}, "they worked on both"
