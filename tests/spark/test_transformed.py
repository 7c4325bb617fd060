"""Transformed topics beside verbatim ones, by the copy job: each record that is kept once, in its own partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.model import Receipt
from tests.harness import Lab, create_topic, new_alias, producer, read_topics, send
from tests.run.unit_flows import messages
from tests.spark.jobs import plan, submit

PARTITIONS = 5
SQL = (
    "SELECT * EXCEPT (value), CAST(sha2(value, 256) AS BINARY) AS value FROM records "
    "WHERE key IS NULL OR CAST(key AS STRING) NOT LIKE '%3'"
)


def lab_of(source: RunningCluster, target: RunningCluster, topic: str, **settings: str) -> Lab:
    masked, plain = f"{topic}-masked", f"{topic}-plain"
    for name in (masked, plain):
        create_topic(source, name, PARTITIONS)
    return Lab(
        source=source,
        target=target,
        alias=new_alias(),
        topics=(masked, plain),
        settings={
            "ferry.transforms": "masked",
            "ferry.transform.masked.topics": masked,
            "ferry.transform.masked.sql": SQL,
            **settings,
        },
    )


def run_job(lab: Lab, run: str, folder: Path) -> str:
    plan(lab, run)
    job = submit(lab, run, folder)
    assert job.wait(240) == 0, job.text()
    return job.text()


def test_a_masked_topic_and_a_verbatim_one_in_one_run(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = lab_of(source_cluster, target_cluster, topic)
    masked, plain = lab.topics
    for name in lab.topics:
        send(producer(source_cluster), name, messages(800))
    run_job(lab, "r-1", tmp_path)
    assert_written(lab)
    send(producer(source_cluster), masked, messages(300, start=800))
    send(producer(source_cluster), plain, messages(100, start=800))
    run_job(lab, "r-2", tmp_path)
    assert_written(lab)


def assert_written(lab: Lab) -> None:
    masked, plain = lab.topics
    source = read_topics(lab.source.bootstrap, lab.topics)
    target = read_topics(lab.target.bootstrap, [lab.target_topic(name) for name in lab.topics])
    receipts = lab.receipts()
    for partition in range(PARTITIONS):
        wanted = [(offset, key, masked_value(value), *rest) for offset, key, value, *rest in source[masked][partition]]
        wanted = [row for row in wanted if row[1] is None or not row[1].endswith(b"3")]
        got = target[lab.target_topic(masked)][partition]
        assert [row[1:] for row in got] == [row[1:] for row in wanted]
        where = dict(places([one for one in receipts if one.source == (masked, partition)]))
        assert {row[0]: row[0] for row in wanted}.keys() == where.keys()
        assert [where[row[0]] for row in wanted] == [row[0] for row in got]
        end = source[masked][partition][-1][0] + 1
        assert max(one.end for one in receipts if one.source == (masked, partition)) >= end
        assert [row[1:] for row in target[lab.target_topic(plain)][partition]] == [
            row[1:] for row in source[plain][partition]
        ]


def masked_value(value: bytes | None) -> bytes | None:
    return None if value is None else hashlib.sha256(value).hexdigest().encode()


def places(receipts: list[Receipt]) -> Iterator[tuple[int, int]]:
    """The source and target offset of each record, as the receipts tell."""
    for receipt in receipts:
        for segment in receipt.segments:
            for number in range(segment.count):
                yield segment.source_start + number, segment.target_start + number
