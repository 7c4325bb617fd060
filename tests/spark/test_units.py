"""The record path in Spark: a topic with other partitions, filtered and masked, while its workers are killed."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from ferry.decide.ledger.unit_codec import unit_receipts
from ferry.decide.records.partitioner import partition_of_record
from ferry.dev import RunningCluster
from ferry.run.micro_run import local_origin
from ferry.spark.submit import submit_conf
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send, settled, wait_until
from tests.run.unit_flows import Units, messages
from tests.spark.jobs import LOCAL, ROOT

SQL = """
SELECT * EXCEPT (value), CAST(sha2(value, 256) AS BINARY) AS value FROM records
WHERE key IS NULL OR CAST(key AS STRING) NOT LIKE '%3'
"""
SOURCES, TARGETS, RECORDS = 200, 12, 12_000


def test_200_partitions_to_12_in_order_per_key_and_once_whatever_is_killed(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    given = [replace(one, partition=number % 23 * 7 % SOURCES) for number, one in enumerate(messages(RECORDS))]
    send(producer(source_cluster), topic, given)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "5000"},
    )
    create_topic(target_cluster, lab.target_topic(topic), TARGETS)
    units = Units(lab, topic, partitions=TARGETS)

    with lab.runs() as runs:
        plan = units.plan(runs)
        attempt = runs.begin(plan, local_origin())
        specs = {slot: runs.task_spec(plan, slot, attempt) for slot in plan.unit_slots}
        (tmp_path / "in").write_bytes(pickle.dumps((plan, specs, SQL)))
        program = start(tmp_path)
        try:
            wait_until(lambda: bool(unit_receipts(runs.ledger(), runs.lane, plan.run, plan.generation)), 120)
            killed = workers(program)
            for worker in killed:
                worker.kill()
            assert killed
            assert program.wait(180) == 0, (tmp_path / "log").read_text(errors="replace")[-3_000:]
        finally:
            program.kill()
        receipts = unit_receipts(settled(runs), runs.lane, plan.run, plan.generation)

    ends = pickle.loads((tmp_path / "out").read_bytes())
    assert [(slot, failure) for slot, _, failure in ends] == [(0, "None"), (1, "None")]
    assert sum(count for _, count, _ in ends) < len(receipts), "nobody was killed amid the work"
    for unit in plan.units:
        assert [one for one in receipts if one.target == unit.target][-1].reached == unit.ends
    assert_written(lab, topic)


def start(folder: Path) -> subprocess.Popen[bytes]:
    conf = " ".join(f'--conf "{key}={value}"' for key, value in submit_conf().items())
    environment = {**os.environ, **LOCAL, "PYSPARK_SUBMIT_ARGS": f"--master local[2,4] {conf} pyspark-shell"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.unit_program", str(folder / "in"), str(folder / "out")],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
        )


def workers(program: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Spark's Python workers: the children of its daemon."""
    found: list[psutil.Process] = []
    for one in psutil.Process(program.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # or a zombie: it has ended by itself
            parent = one.parent()
            if parent is not None and "pyspark.daemon" in " ".join(parent.cmdline()):
                found.append(one)
    return found


def assert_written(lab: Lab, topic: str) -> None:
    """By the order of source partitions, then offsets, and so in order per key."""
    wanted: dict[int, list[tuple[object, ...]]] = {number: [] for number in range(TARGETS)}
    for partition, rows in sorted(read_topic(lab.source.bootstrap, topic).items()):
        for offset, key, value, headers, time in rows:
            if key is None or not key.endswith(b"3"):
                masked = None if value is None else hashlib.sha256(value).hexdigest().encode()
                number = partition_of_record(key, partition, offset, TARGETS)
                wanted[number].append((key, masked, headers, time))
    found = read_topic(lab.target.bootstrap, lab.target_topic(topic))
    assert 0 < sum(map(len, wanted.values())) < RECORDS
    for number, rows in found.items():
        assert [row[1:] for row in rows] == wanted[number], number
