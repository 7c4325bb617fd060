"""Runs with identical offsets between real brokers: each record gets its source offset, also after SIGKILL."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send, wait_until, watermark
from tests.program import ferry, finished, start
from tests.tiers import ANSWER_S

PARTITIONS = 2


def lab(source: RunningCluster, target: RunningCluster, topic: str, **settings: str) -> Lab:
    """A flow with identical offsets; its clusters have one broker each, so the target may lose records."""
    kept = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true", **settings}
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=kept)


def feed(cluster: RunningCluster, topic: str, count: int, *, begin: int = 0, size: int = 100) -> None:
    """Records in small batches of several codecs, one after the other."""
    codecs = ["none", "lz4", "zstd", "gzip"]
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
    feed(source_cluster, topic, 24_000, size=1_000)
    it = lab(source_cluster, target_cluster, topic, **{"ferry.throttle.bytes.per.second": str(2 << 20)})
    config = it.write(tmp_path)
    killed = start("run", config=config)
    wait_until(lambda: end_of_copy(it, topic) >= share * 24_000, 2 * ANSWER_S)
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
