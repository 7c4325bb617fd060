"""Transformed topics beside verbatim ones, by the copy job: each record that is kept once, in its own partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.model import FilterCounts, Receipt
from ferry.plan.rules.portions import fits_one_portion
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, read_topics, send
from tests.program import ferry
from tests.pure.run.unit_flows import messages
from tests.quotas import quota
from tests.spark.jobs import copying, plan, submit
from tests.tiers import ANSWER_S

PARTITIONS = 5
SQL = (
    "SELECT * EXCEPT (value), CAST(sha2(value, 256) AS BINARY) AS value FROM records "
    "WHERE key IS NULL OR CAST(key AS STRING) NOT LIKE '%3'"
)
PLAIN_SQL = "SELECT * FROM records"


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
            "ferry.deployment": "here",  # the file changes its name, too
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


def readiness(lab: Lab, folder: Path) -> tuple[bool, str]:
    """What `ferry readiness` says of the flow's transforms."""
    checks = ferry("readiness", "--json", config=lab.write(folder)).json("readiness")["checks"]
    return next((check["ok"], check["message"]) for check in checks if check["name"] == "transforms")


def test_a_masked_topic_and_a_verbatim_one_in_one_run(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = lab_of(source_cluster, target_cluster, topic)
    masked, plain = lab.topics
    for name in lab.topics:
        send(producer(source_cluster), name, messages(800))
    run_job(lab, "r-1", tmp_path)
    assert_written(lab)

    ends = ends_of(lab)
    send(producer(source_cluster), masked, messages(300, start=800))
    send(producer(source_cluster), plain, messages(100, start=800))
    other = replace(lab, settings={**lab.settings, "ferry.transform.masked.sql": PLAIN_SQL})
    told = ferry("run", "--id", "r-2", "--spark", "--json", config=other.write(tmp_path))
    assert told.code == 0, told.err
    report = told.json("run")
    assert (report["state"], report["refusals"], report["missing"]) == ("success", [], 0)
    assert_written(other, changed_at=ends)
    assert not plan(other, "r-3").slices

    assert f"made by transforms ({lab.target_topic(masked)} by ferry.transform.masked)" in readiness(other, tmp_path)[1]
    lost = {key: value for key, value in other.settings.items() if key != "ferry.transform.masked.sql"}
    unknown = readiness(replace(other, settings={**lost, "ferry.transform.masked.function": "gone:mask"}), tmp_path)
    assert unknown[0] is False
    assert "ferry.transform.masked.function: gone:mask cannot be imported" in unknown[1]

    lag = ferry("lag", "--json", config=other.write(tmp_path)).json("lag")
    assert lag["total"]["records"] == 0
    partition, left = next(
        (number, row[0])
        for number, rows in read_topic(source_cluster.bootstrap, masked).items()
        for row in rows
        if row[1] is not None and row[1].endswith(b"3") and row[0] < ends[number]
    )
    where = ["--topic", masked, "--partition", str(partition), "--offset", str(left)]
    shown = ferry("ledger", *where, config=other.write(tmp_path))
    assert "by transform masked, a marker" in shown.out

    # A lane beside live changes what it copies, too, and calls it otherwise.
    window = ["--lane", "backfill-past", "--from-offset", f"{masked}:3:0", "--to-offset", f"{masked}:3:50"]
    filled = ferry("backfill", *window, "--json", config=lab.write(tmp_path))
    assert (filled.code, filled.json("backfill")["state"]) == (0, "success"), filled.err
    past = read_topic(target_cluster.bootstrap, f"{lab.target_topic(masked)}.backfill.backfill-past")[3]
    live = read_topic(target_cluster.bootstrap, lab.target_topic(masked))[3]
    assert 0 < len(past) < 50
    assert [row[1:] for row in past] == [row[1:] for row in live[: len(past)]]


def test_workers_that_are_killed_lose_nothing_and_write_nothing_twice(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    portions = {"ferry.portion.bytes": str(1 << 20)}
    lab = lab_of(source_cluster, target_cluster, topic, **{"ferry.chunk.bytes": "3000"}, **portions)
    masked, _ = lab.topics
    send(producer(source_cluster), masked, messages(8_000))
    made = plan(lab, "r-1")
    assert not fits_one_portion(made.slices, {piece.source: piece.start for piece in made.slices}, 2 << 20), "two cores"
    with quota(lab.target, f"ferry.{lab.flow.flow}", "producer_byte_rate", 20_000):
        job = submit(lab, "r-1", tmp_path)
        copying(lab, job, receipts=3)
        killed = job.workers()
        for worker in killed:
            worker.kill()
        assert killed
    assert job.wait(240) == 0, job.text()
    assert_written(lab)
    with lab.runs() as runs:
        report = runs.report("r-1")
    assert report.sifted == {masked: FilterCounts(8_000, report.records)}, (
        "of all portions, once, also what Spark repeats"
    )
    assert f"ferry: topic {masked}: 8000 records read, {8_000 - report.records} of them left out" in job.text()


def ends_of(lab: Lab) -> dict[int, int]:
    """How far the masked topic is copied."""
    found: dict[int, int] = {}
    for receipt in lab.receipts():
        if receipt.source.topic == lab.topics[0]:
            found[receipt.source.partition] = max(receipt.end, found.get(receipt.source.partition, 0))
    return found


def assert_written(lab: Lab, changed_at: Mapping[int, int] | None = None) -> None:
    """Each record is there once, in order, in its partition, where receipts say; with its timestamp and headers.

    `changed_at`: from which offsets on, by partition, the transform is PLAIN_SQL.
    """
    masked, plain = lab.topics
    source = read_topics(lab.source.bootstrap, lab.topics)
    target = read_topics(
        lab.target.bootstrap, [name for name in map(lab.target_topic, lab.topics) if name in there(lab)]
    )
    receipts = lab.receipts()
    for partition in range(PARTITIONS):
        wanted: list[tuple[Any, ...]] = []
        for offset, key, value, *rest in source[masked][partition]:
            if changed_at is not None and offset >= changed_at[partition]:
                wanted.append((offset, key, value, *rest))
            elif key is None or not key.endswith(b"3"):
                wanted.append((offset, key, masked_value(value), *rest))
        got = target[lab.target_topic(masked)][partition]
        assert [row[1:] for row in got] == [row[1:] for row in wanted]
        own = [one for one in receipts if one.source == (masked, partition)]
        where = dict(places(own))
        assert len(where) == len(wanted) == sum(one.records for one in own)
        assert [where[row[0]] for row in wanted] == [row[0] for row in got]
        assert all(one.end == other.start for one, other in pairwise(own))
        assert own[-1].end == source[masked][partition][-1][0] + 1
        copied = target.get(lab.target_topic(plain), {}).get(partition, [])
        assert [row[1:] for row in copied] == [row[1:] for row in source[plain][partition]]


def there(lab: Lab) -> set[str]:
    return set(AdminClient({"bootstrap.servers": lab.target.bootstrap}).list_topics(timeout=ANSWER_S).topics)


def masked_value(value: bytes | None) -> bytes | None:
    return None if value is None else hashlib.sha256(value).hexdigest().encode()


def places(receipts: list[Receipt]) -> Iterator[tuple[int, int]]:
    """The source and target offset of each record, as the receipts tell."""
    for receipt in receipts:
        for segment in receipt.segments:
            for number in range(segment.count):
                yield segment.source_start + number, segment.target_start + number
