"""Runs with identical offsets between real brokers: each record gets its source offset, also after SIGKILL."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from tests.harness import (
    Lab,
    Message,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
    watermark,
)
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

PARTITIONS = 2


def lab(source: RunningCluster, target: RunningCluster, topic: str, **settings: str) -> Lab:
    """A flow with identical offsets; its clusters have one broker each, so the target may lose records."""
    kept = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true", **settings}
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=kept)


def feed(
    cluster: RunningCluster,
    topic: str,
    count: int,
    *,
    begin: int = 0,
    size: int = 100,
    codecs: Sequence[str] = ("none", "lz4", "zstd", "gzip"),
) -> None:
    """Records in small batches of several codecs, one after the other."""
    for number, codec in enumerate(codecs):
        share = numbered(count // len(codecs), partitions=PARTITIONS, size=size, start=begin + number * count)
        settings: dict[str, str | int | bool] = {"compression.type": codec, "batch.num.messages": 50}
        send(producer(cluster, **settings), topic, share)


def assert_identical(it: Lab, topic: str) -> int:
    """All that confluent-kafka reads is the same on both sides, offsets too; how many records."""
    there = it.target_topic(topic)
    here = read_topic(it.source.bootstrap, topic)
    assert read_topic(it.target.bootstrap, there) == here
    assert read_topic(it.target.bootstrap, there, isolation="read_uncommitted") == here
    for number, rows in here.items():
        assert [row[0] for row in rows] == list(range(len(rows)))
        assert watermark(it.target, there, number) == len(rows)
    return sum(map(len, here.values()))


def end_of_copy(it: Lab, topic: str) -> int:
    """How many offsets the copy has."""
    try:
        return sum(watermark(it.target, it.target_topic(topic), number) for number in range(PARTITIONS))
    except Exception:
        return 0


def test_groups_have_the_same_numbers_also_where_another_producer_wrote_after_the_copy(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic, **{"sync.group.offsets.enabled": "true"})
    copy, group, flow = it.target_topic(topic), f"group-{it.alias}", str(it.flow.flow)
    feed(source_cluster, topic, 400)
    ends = [watermark(source_cluster, topic, number) for number in range(PARTITIONS)]
    commit_offsets(source_cluster, group, {(topic, 0): 37, (topic, 1): ends[1]})
    config = it.write(tmp_path)
    assert ferry("run", config=config).code == 0
    assert committed_offsets(target_cluster, group, copy, PARTITIONS) == {0: 37, 1: ends[1]}

    send(producer(target_cluster), copy, [Message(value=b"foreign", partition=1)])
    commit_offsets(source_cluster, group, {(topic, 0): 40})
    assert ferry("groups", "sync", config=config).code == 0
    assert committed_offsets(target_cluster, group, copy, PARTITIONS) == {0: 40, 1: ends[1]}
    for offset in (0, 123, ends[1]):
        for words, place in (([], topic), (["--reverse"], copy)):
            answer = ferry("translate", flow, place, "1", str(offset), "--json", *words, config=config)
            found = answer.json("translate")
            assert (answer.code, found["source_offset"], found["target_offset"]) == (0, offset, offset), found

    feed(source_cluster, topic, 40, begin=10_000)
    answer = ferry("run", "--json", config=config)
    assert answer.code != 0
    assert {(one["kind"], one["partition"]) for one in answer.json("run")["refusals"]} == {("foreign-writer", 1)}
    assert watermark(target_cluster, copy, 1) == ends[1] + 1, "nothing is written after a foreign record"
    assert watermark(target_cluster, copy, 0) == watermark(source_cluster, topic, 0)


def test_verify_compares_offset_by_offset_and_finds_a_foreign_record(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic)
    feed(source_cluster, topic, 400)
    config = it.write(tmp_path)
    assert ferry("run", config=config).code == 0
    good = ferry("verify", "--json", config=config)
    assert (good.code, good.json("verify")["differences"]) == (0, [])
    send(producer(target_cluster), it.target_topic(topic), [Message(value=b"foreign", partition=0)])
    bad = ferry("verify", "--json", config=config)
    assert bad.code != 0
    assert len(bad.json("verify")["differences"]) == 1


def test_verify_compares_what_a_killed_run_wrote_without_receipts(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic)
    feed(source_cluster, topic, 400)
    config = it.write(tmp_path)
    assert ferry("run", config=config).code == 0
    feed(source_cluster, topic, 24_000, begin=10_000, size=1_000)
    slow = lab(source_cluster, target_cluster, topic, **{"ferry.throttle.bytes.per.second": str(1 << 19)})
    (tmp_path / "slow").mkdir()
    killed = start("run", config=replace(slow, alias=it.alias).write(tmp_path / "slow"))
    wait_until(lambda: end_of_copy(it, topic) > 400, "records of the copy", 2 * ANSWER_S)
    during = ferry("verify", "--json", config=config)
    wait_until(
        lambda: end_of_copy(it, topic) > sum(receipt.records for receipt in it.receipts()),
        "records of the copy without a receipt",
        2 * ANSWER_S,
    )
    os.killpg(killed.pid, signal.SIGKILL)  # the processes of the slots, too, which would end their chunks
    finished(killed)
    received, written = sum(receipt.records for receipt in it.receipts()), end_of_copy(it, topic)
    assert received < written < 24_000
    after = ferry("verify", "--json", config=config)
    for answer in (during, after):
        assert (answer.code, answer.json("verify")["differences"]) == (0, []), answer.err
    assert (after.json("verify")["records"], len(after.json("verify")["notes"])) == (written, 1)
    send(producer(target_cluster), it.target_topic(topic), [Message(value=b"foreign", partition=0)])
    bad = ferry("verify", "--json", config=config)
    (difference,) = bad.json("verify")["differences"]
    assert (bad.code, difference["target_partition"]) == (1, 0)


def test_heartbeats_and_one_task_leave_the_runs_green(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """As a file with MirrorMaker 2's defaults has it."""
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    if "heartbeats" not in AdminClient({"bootstrap.servers": source_cluster.bootstrap}).list_topics().topics:
        create_topic(source_cluster, "heartbeats", config={"cleanup.policy": "compact"})
    it = lab(source_cluster, target_cluster, topic, **{"heartbeats.replication.enabled": "true", "tasks.max": "1"})
    config = it.write(tmp_path)
    for begin in (0, 10_000):
        feed(source_cluster, topic, 200, begin=begin)
        send(producer(source_cluster), "heartbeats", [Message(key=b"a->b", value=b"%d" % begin, partition=0)])
        shown = ferry("plan", "--json", config=config).json("plan")
        assert ({one["topic"] for one in shown["slices"]}, shown["refusals"]) == ({topic, "heartbeats"}, [])
        assert ferry("run", config=config).code == 0
    assert assert_identical(it, topic) == 400
    assert {receipt.source.topic: receipt.identical for receipt in it.receipts()} == {topic: True, "heartbeats": False}


@pytest.mark.parametrize("old", ["source", "target"])
def test_kafka_3_9_on_one_side(
    source_cluster: RunningCluster, old_cluster: RunningCluster, topic: str, tmp_path: Path, old: str
) -> None:
    here, there = (old_cluster, source_cluster) if old == "source" else (source_cluster, old_cluster)
    create_topic(here, topic, partitions=PARTITIONS)
    it = lab(here, there, topic)
    config = it.write(tmp_path)
    for begin in (0, 10_000):
        feed(here, topic, 200, begin=begin)
        assert ferry("run", config=config).code == 0
    assert assert_identical(it, topic) == 400


def test_a_leader_that_is_killed_while_a_run_writes_costs_no_record_and_no_offset(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """The target's topics have min.insync.replicas 2, so nothing needs ferry.offsets.may.lose."""
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    feed(source_cluster, topic, 8_000, size=1_000)
    settings = {"ferry.offsets": "identical", "replication.factor": "3"}
    it = Lab(source=source_cluster, target=three_brokers, alias=new_alias(), topics=(topic,), settings={
        **settings, "ferry.throttle.bytes.per.second": str(1 << 20)
    })  # fmt: skip
    running = start("run", config=it.write(tmp_path))
    wait_until(lambda: 0 < end_of_copy(it, topic) < 8_000, "a part of the copy", 2 * ANSWER_S)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    copy = it.target_topic(topic)
    leader = admin.list_topics(copy).topics[copy].partitions[0].leader
    next(one for one in three_brokers.brokers if one.node_id == leader).kill(signal.SIGKILL)
    finished(running, 10 * ANSWER_S)
    three_brokers.start()
    again = Lab(source=source_cluster, target=three_brokers, alias=it.alias, topics=(topic,), settings=settings)
    (tmp_path / "again").mkdir()
    config = again.write(tmp_path / "again")
    wait_until(lambda: ferry("run", config=config).code == 0, "a run that succeeds", 10 * ANSWER_S)
    assert assert_identical(again, topic) == 8_000
    assert sum(receipt.records for receipt in again.receipts()) == 8_000


def test_runs_continue_at_the_same_offsets_and_a_translated_flow_copies_the_topic_beside_them(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    it = lab(source_cluster, target_cluster, topic)
    beside = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    feed(source_cluster, topic, 400)
    config, other = it.write(tmp_path), beside.write(tmp_path)
    assert ferry("run", config=config).code == 0
    assert assert_identical(it, topic) == 400
    assert ferry("run", config=other).code == 0
    feed(source_cluster, topic, 200, begin=10_000)
    assert ferry("run", config=config).code == 0
    assert assert_identical(it, topic) == 600
    assert ferry("run", config=other).code == 0
    assert beside.assert_equal() == 600
    assert all(receipt.identical for receipt in it.receipts())
    assert not any(receipt.identical for receipt in beside.receipts())
    assert ferry("run", config=config).code == 0
    assert assert_identical(it, topic) == 600


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_run_after_sigkill_continues_exactly(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, share: float
) -> None:
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    feed(source_cluster, topic, 24_000, size=1_000, codecs=["none"])  # compressed ones would be there at once
    it = lab(source_cluster, target_cluster, topic, **{"ferry.throttle.bytes.per.second": str(2 << 20)})
    config = it.write(tmp_path)
    killed = start("run", config=config)
    wait_until(lambda: end_of_copy(it, topic) >= share * 24_000, "a share of the copy", 2 * ANSWER_S)
    killed.kill()
    finished(killed)
    before = end_of_copy(it, topic)
    assert 0 < before < 24_000
    again = Lab(source=source_cluster, target=target_cluster, alias=it.alias, topics=(topic,), settings={
        key: value for key, value in it.settings.items() if "throttle" not in key
    })  # fmt: skip
    assert ferry("run", config=again.write(tmp_path)).code == 0
    assert assert_identical(again, topic) == 24_000
    assert sum(receipt.records for receipt in again.receipts()) == 24_000


def test_of_two_topics_one_keeps_its_offsets_and_a_compacted_one_is_translated(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """Also their groups, `verify`, and a topic that is taken off the list after it was copied."""
    users, group = f"{topic}-users", f"{topic}-app"
    create_topic(source_cluster, topic, partitions=PARTITIONS)
    create_topic(source_cluster, users, config={"cleanup.policy": "compact"})
    it = replace(lab(source_cluster, target_cluster, topic), topics=(topic, users))
    it = replace(it, settings={**it.settings, "ferry.offsets.topics": topic, "sync.group.offsets.enabled": "true"})
    config = it.write(tmp_path)
    for begin in (0, 10_000):
        feed(source_cluster, topic, 200, begin=begin)
        send(producer(source_cluster), users, [Message(key=b"k%d" % one, value=b"v", partition=0) for one in range(9)])
        commit_offsets(source_cluster, group, {(topic, 0): 70, (users, 0): 5})
        done = ferry("run", "--json", config=config)
        assert done.code == 0, done.out + done.err
    assert {receipt.source.topic: receipt.identical for receipt in it.receipts()} == {topic: True, users: False}
    assert assert_identical(it, topic) == 400
    for name, offset in ((topic, 70), (users, 5)):
        assert committed_offsets(target_cluster, group, it.target_topic(name), 1) == {0: offset}
    equal = ferry("verify", "--json", config=config)
    assert (equal.code, equal.json("verify")["identical"]) == (0, 400)
    ready = ferry("readiness", "--json", config=config).json("readiness")
    assert [one["name"] for one in ready["checks"] if not one["ok"]] == ["reverse"], "the file has no flow back"
    feed(source_cluster, topic, 40, begin=20_000)
    send(producer(source_cluster), users, [Message(key=b"k", value=b"v", partition=0)] * 3)
    skips = {name: ferry("skip", name, "0", "--to", "19", "--reason", "no", "--dry-run", "--json", config=config)
             for name in (users, topic)}  # fmt: skip
    assert [skips[name].code for name in (users, topic)] == [0, 2], [one.out + one.err for one in skips.values()]

    taken = replace(it, settings={**it.settings, "ferry.offsets.topics": "none"}).write(tmp_path)
    shown = ferry("plan", "--json", config=taken).json("plan")
    assert {(one["topic"], one["code"]) for one in shown["refusals"]} == {(topic, "identical.stays")}
