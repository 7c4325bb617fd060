"""Drills of flows with identical offsets, on real brokers: the report says whether the offsets are equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.identical.rules.evidence import NAME
from tests.harness import Lab, Message, commit_offsets, create_topic, new_alias, producer, send, watermark
from tests.kafka.run.test_drills import drilled, left_on
from tests.program import warm_ferry as ferry

HOUR = 3_600_000
OLD, NEW = 400, 300


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster) -> Lab:
    """A flow that has copied a topic, most of it older than an hour; a group is among the newer records."""
    alias = new_alias()
    topic, group = f"drilled-{alias}", f"billing-{alias}"
    settings = {
        "ferry.offsets": "identical",
        "ferry.offsets.may.lose": "true",
        "groups": f"{group}.*",
        "ferry.deployment": alias,
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)
    create_topic(source_cluster, topic)
    for count, age in ((OLD, 3 * HOUR), (NEW, 0)):
        at = wall_ms() - age
        rows = [Message(value=b"%d" % number, partition=0, timestamp=at + number) for number in range(count)]
        send(producer(source_cluster), topic, rows)
    lab.micro_run()
    commit_offsets(source_cluster, group, {(topic, 0): OLD + 17})
    return lab


def offsets_check(body: dict[str, Any]) -> bool:
    """Whether the drill found the offsets equal."""
    (found,) = [one["held"] for one in body["checks"] if one["name"] == NAME]
    return bool(found)


def test_a_shadow_drill_copies_the_last_hour_to_the_same_offsets(lab: Lab, tmp_path: Path) -> None:
    before = left_on(lab.target, lab)
    body = drilled(lab, tmp_path, "shadow", str(lab.flow.flow))
    assert (body["outcome"], body["deviations"], offsets_check(body)) == ("success", [], True)
    assert body["verification"]["records"] == NEW, "what the last hour brought"
    (group,) = body["groups"]
    assert (group["committed"], group["exact"], group["skipped"], group["reread"]) == (1, 1, 0, 0)
    assert left_on(lab.target, lab) == before


def test_a_partial_drill_compares_offset_by_offset(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    send(producer(lab.source), topic, [Message(value=b"later", partition=0)] * 5)
    words = ("partial", str(lab.flow.flow), "--topic", topic, "--approve-by", "ann")
    body = drilled(lab, tmp_path, *words)
    assert (body["outcome"], offsets_check(body)) == ("success", True)
    assert body["verification"]["records"] == OLD + NEW + 5
    assert watermark(lab.target, lab.target_topic(topic), 0) == OLD + NEW + 5

    send(producer(lab.target), lab.target_topic(topic), [Message(value=b"foreign", partition=0)])
    body = drilled(lab, tmp_path, *words, code=1)
    assert (body["outcome"], offsets_check(body)) == ("deviations", False)


def test_a_full_drill_is_refused_before_anything_is_written(lab: Lab, tmp_path: Path) -> None:
    config, before = lab.write(tmp_path), left_on(lab.target, lab)
    answer = ferry("drills", "full", str(lab.flow.flow), "--approve-by", "ann", config=config)
    assert answer.code == 2, answer.err
    assert left_on(lab.target, lab) == before
