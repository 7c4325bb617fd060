"""Drills of flows with identical offsets, on real brokers: the report says whether the offsets are equal."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.identical.rules.evidence import NAME
from tests.harness import (
    Lab,
    Message,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    producer,
    read_topic,
    send,
    watermark,
)
from tests.kafka.identical.test_return import both_ways, same
from tests.kafka.run.switching import PARTITIONS
from tests.kafka.run.test_drills import drilled, has_each_way, left_on
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
    given = ("--approve-by", "ann", "--report", str(tmp_path / "reports"))
    answer = ferry("drills", "full", str(lab.flow.flow), *given, config=config)
    assert answer.code == 2, answer.err
    assert left_on(lab.target, lab) == before


REDIRECT = """
import os, sys
from confluent_kafka import Producer

verb = os.environ["FERRY_SWITCH_VERB"]
client = Producer({"bootstrap.servers": os.environ["FERRY_SWITCH_BOOTSTRAP"]})
for number in range(6):
    client.produce(sys.argv[1], f"{verb}-{number}".encode(), partition=number % 2)
assert client.flush(60) == 0
"""
"""What redirects clients: they write to the cluster that they were moved to."""


@pytest.mark.timeout(300)
def test_a_full_drill_moves_clients_there_and_back_at_one_numbering(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)
    config, script = tmp_path / "pair.properties", tmp_path / "redirect.py"
    config.write_text(pair.text)
    script.write_text(REDIRECT)
    hook = shlex.join([sys.executable, str(script), topic])
    reports = ("--report", str(tmp_path / "reports"))
    given = ("--approve-by", "anna", "--quiet-seconds", "0.5", "--redirect-command", hook, *reports)
    dry = ferry("drills", "full", pair.flow, *given, "--dry-run", config=config)
    assert dry.code == 0, dry.err
    answer = ferry("drills", "full", pair.flow, *given, "--json", config=config, seconds=200)
    assert answer.code == 0, answer.out + answer.err
    body = answer.json("drill")
    assert (body["outcome"], body["deviations"], body["refusals"]) == ("success", [], [])
    assert offsets_check(body)
    has_each_way(body, pair.flow, pair.back)
    assert [(group["reread"], group["skipped"]) for group in body["groups"]] == [(0, 0)] * 2
    checked = body["verification"]
    both = 2 * (30 + 6)  # each flow is compared with all that is there
    assert (checked["equal"], checked["complete"], checked["records"]) == (True, True, both)

    pair.run(pair.flow)
    assert same(pair)
    rows = [row for some in read_topic(target_cluster.bootstrap, topic).values() for row in some]
    assert len(rows) == 30 + 6 + 6
    at = committed_offsets(source_cluster, clients.group, topic, PARTITIONS)
    assert sum(at.values()) == 7
    assert committed_offsets(target_cluster, clients.group, topic, PARTITIONS) == at
    good = ferry("verify", pair.flow, "--json", config=config)
    assert (good.code, good.json("verify")["differences"]) == (0, []), good.err
