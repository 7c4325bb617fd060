"""Runs with identical offsets from transactional sources pass markers and aborted records, also after SIGKILL."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ferry.dev import RunningCluster
from ferry.plan.rules.permissions import required_acls
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send, wait_until, watermark
from tests.kafka.identical.test_run import PARTITIONS, end_of_copy, feed, lab
from tests.kafka.run.test_permissions import LOGIN, grant, guarded, logged_in
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

__all__ = ["guarded"]
"""A fixture."""


def transactional(cluster: RunningCluster, name: str) -> Producer:
    """A producer whose transactions are short."""
    settings: dict[str, str | int | bool] = {"transactional.id": name, "linger.ms": 0}
    client = producer(cluster, **settings)
    client.init_transactions(ANSWER_S)
    return client


def transactions(cluster: RunningCluster, client: Producer, topic: str, count: int, *, size: int = 100) -> None:
    """So many transactions, each of one record for each partition and a few more; every third one is aborted."""
    begins = [watermark(cluster, topic, number) for number in range(PARTITIONS)]
    for number in range(count):
        client.begin_transaction()
        for partition in range(PARTITIONS):
            some = [Message(value=b"%d-%d" % (number, at) + b"x" * size, partition=partition) for at in range(3)]
            send(client, topic, some[: 1 + number % 3])
        if number % 3 == 2:
            client.abort_transaction(ANSWER_S)
        else:
            client.commit_transaction(ANSWER_S)
    ends = [before + sum(2 + number % 3 for number in range(count)) for before in begins]
    wait_until(
        lambda: [watermark(cluster, topic, number) for number in range(PARTITIONS)] == ends,
        "the markers of the transactions",
        ANSWER_S,
    )


def assert_identical(it: Lab, topic: str) -> int:
    """Readers get the same records at the same offsets, and the logs end at the same one; how many records."""
    there = it.target_topic(topic)
    here = read_topic(it.source.bootstrap, topic)
    assert read_topic(it.target.bootstrap, there) == here
    assert read_topic(it.target.bootstrap, there, isolation="read_uncommitted") == here
    for number in range(PARTITIONS):
        assert watermark(it.target, there, number) == watermark(it.source, topic, number)
    return sum(map(len, here.values()))


@pytest.mark.parametrize("target", ["target_cluster", "old_cluster"])
def test_a_transactional_source_is_copied_offset_by_offset_run_after_run(
    source_cluster: RunningCluster, target: str, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """To 4.3.0, and to 3.9.1 with transactions of version 1."""
    target_cluster: RunningCluster = request.getfixturevalue(target)
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic)
    client = transactional(source_cluster, f"t-{it.alias}")
    config = it.write(tmp_path)
    for begin in (0, 10_000):
        transactions(source_cluster, client, topic, 20)
        feed(source_cluster, topic, 40, begin=begin)
        answer = ferry("run", "--json", config=config)
        assert (answer.code, answer.json("run")["refusals"]) == (0, []), answer.err
        assert assert_identical(it, topic) > 0
    lasts = [one for one in it.receipts() if one.source.topic == topic]
    assert sum(one.control_batches for one in lasts) == 2 * 20 * PARTITIONS
    assert {one.missing for one in lasts} == {0}
    good = ferry("verify", "--json", config=config)
    assert (good.code, good.json("verify")["differences"]) == (0, []), good.err


def test_a_run_after_sigkill_continues_after_holes(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """A marker may be late then. The next run writes nothing, or all if each marker had its answer."""
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic)
    client = transactional(source_cluster, f"t-{it.alias}")
    transactions(source_cluster, client, topic, 100, size=5_000)
    slow = replace(it, settings={**it.settings, "ferry.throttle.bytes.per.second": str(1 << 19)})
    killed = start("run", config=slow.write(tmp_path))
    wait_until(lambda: end_of_copy(it, topic) > 100, "records of the copy", 2 * ANSWER_S)
    os.killpg(killed.pid, signal.SIGKILL)  # the processes of the slots, too
    finished(killed)
    before = end_of_copy(it, topic)
    (tmp_path / "again").mkdir()
    answer = ferry("run", "--json", config=it.write(tmp_path / "again"))
    refusals = answer.json("run")["refusals"]
    if refusals:
        assert {one["code"] for one in refusals} == {"identical.not-quiet"}
        assert end_of_copy(it, topic) >= before
    else:
        assert assert_identical(it, topic) > 0
    there = read_topic(target_cluster.bootstrap, it.target_topic(topic))
    here = read_topic(source_cluster.bootstrap, topic)
    for number, rows in there.items():
        assert rows == here[number][: len(rows)]


def test_without_alter_on_the_cluster_the_first_hole_is_refused_and_with_it_the_rest_is_copied(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    alias = new_alias()
    login = logged_in(f"t{alias}", guarded, LOGIN.replace("ferry", "least").format("secret"))
    kept = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}
    it = Lab(source=source_cluster, target=guarded, alias=alias, topics=(topic,), settings={**kept, **login})
    needed = [acl for acl in required_acls(it.flow) if acl.side == "target"]
    optional = next(acl for acl in needed if acl.optional and acl.operation == "Alter")
    grant(guarded, [acl for acl in needed if not acl.optional])
    client = transactional(source_cluster, f"t-{it.alias}")
    transactions(source_cluster, client, topic, 3)
    config = it.write(tmp_path)
    answer = ferry("run", "--json", config=config)
    refusals = answer.json("run")["refusals"]
    assert {(one["code"], one["partition"], one["facts"]["at"]) for one in refusals} == {
        ("identical.hole", number, 1) for number in range(PARTITIONS)
    }
    grant(guarded, [optional])
    answer = ferry("run", "--json", config=config)
    assert (answer.code, answer.json("run")["refusals"]) == (0, []), answer.err
    assert assert_identical(it, topic) > 0
