"""Records with identical offsets, copied by a Spark job, also by the job after one that was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send, watermark
from tests.spark.jobs import all_gone, copying, plan, submit

PARTITIONS, RECORDS = 2, 24_000
SETTINGS = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}


def test_a_job_that_is_killed_and_the_one_after_it_keep_all_offsets(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, PARTITIONS)
    send(producer(source_cluster), topic, numbered(RECORDS, partitions=PARTITIONS, size=1_000))
    slow = {"ferry.throttle.bytes.per.second": str(1 << 20), "ferry.chunk.bytes": str(1 << 20)}
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={**SETTINGS, **slow},
    )
    plan(lab, "killed")
    (tmp_path / "first").mkdir()
    job = submit(lab, "killed", tmp_path / "first")
    copying(lab, job)
    processes = job.tree()
    for one in processes:
        one.kill()
    all_gone(processes)
    lab = replace(lab, settings=SETTINGS)
    plan(lab, "next")
    (tmp_path / "second").mkdir()
    job = submit(lab, "next", tmp_path / "second")
    assert job.wait() == 0, job.text()
    here, copy = read_topic(source_cluster.bootstrap, topic), lab.target_topic(topic)
    assert read_topic(target_cluster.bootstrap, copy) == here
    assert sum(map(len, here.values())) == RECORDS
    assert [watermark(target_cluster, copy, number) for number in here] == [len(rows) for rows in here.values()]
    assert all(receipt.identical for receipt in lab.receipts())
    assert sum(receipt.records for receipt in lab.receipts()) == RECORDS
