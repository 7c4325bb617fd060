"""Transformed topics in a comparison: bounded portions, and what fails of them is told alone."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import RunningCluster
from ferry.model import NotComparedKind
from ferry.wire.batch import HEADER_BYTES, batches
from tests.harness import Lab, Message, create_topic, new_alias, producer, send
from tests.program import ferry
from tests.spark.jobs import ROOT
from tests.spark.test_verify import submitted

TRANSFORMS = {
    "kept": "where = TRUE",
    "dealt": "where = TRUE",
    "waits": "function = tests.spark.functions_of_flows:waits",
}
RECORDS = {"kept": 3_000, "dealt": 300, "waits": 1}
"""Of each of two partitions."""
SIZES = {"kept": 1_000, "dealt": 500, "waits": 20}
"""Of a value, in bytes."""
PORTION = 1 << 20
CORES = 2


@pytest.fixture
def lab(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Lab:
    """A flow with transforms that has run."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    settings = {
        "ferry.transforms": ", ".join(TRANSFORMS),
        "ferry.transform.dealt.partitions": "3",
        "ferry.transform.waits.timeout.ms": "15000",
        "ferry.portion.bytes": str(PORTION),
        "ferry.chunk.bytes": "30000",
    }
    for name, line in TRANSFORMS.items():
        part, _, text = line.partition(" = ")
        settings |= {f"ferry.transform.{name}.topics": f"{topic}-{name}", f"ferry.transform.{name}.{part}": text}
        create_topic(source_cluster, f"{topic}-{name}", 2)
        client = producer(source_cluster, batch_num_messages=20)
        send(
            client,
            f"{topic}-{name}",
            [
                Message(value=os.urandom(SIZES[name]), key=b"%d" % at, partition=partition)
                for at in range(RECORDS[name])
                for partition in (0, 1)
            ],
        )
    topics = tuple(f"{topic}-{name}" for name in TRANSFORMS)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=topics, settings=settings)
    run = ferry("run", "--spark", "--json", config=lab.write(tmp_path))
    assert run.code == 0, run.err
    return lab


def rot(cluster: RunningCluster, topic: str) -> int:
    """Change a record in the middle of partition 0 on the disk of a broker that runs; the offset of its batch."""
    log = cluster.brokers[0].data / f"{topic}-0" / f"{0:020}.log"
    at, found = 0, []
    for batch in batches(log.read_bytes()):
        found.append((at, batch.base_offset))
        at += len(batch.data)
    where, offset = found[len(found) // 2]
    assert offset > 0
    with log.open("r+b") as file:
        file.seek(where + HEADER_BYTES + 20)
        file.write(b"\xff\xff")
    return offset


def shuffled(folder: Path) -> list[int]:
    """Bytes that each stage of Spark's jobs has shuffled, as its own record of events says."""
    found: dict[int, int] = defaultdict(int)
    for file in folder.rglob("*"):
        for line in file.read_text().splitlines() if file.is_file() and file.suffix != ".crc" else ():
            event = json.loads(line)
            metrics = event.get("Task Metrics") if event["Event"] == "SparkListenerTaskEnd" else None
            if metrics and metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]:
                found[event["Stage ID"]] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return list(found.values())


@pytest.mark.timeout(900)  # three times Spark
def test_what_is_compared_goes_in_portions_and_what_fails_is_told_while_the_rest_is_compared(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, dealt, waits = lab.topics
    every = 2 * sum(RECORDS.values())
    events, out = tmp_path / "events", tmp_path / "verified.json"
    events.mkdir()
    more = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    job = submitted(lab, tmp_path, "--out", str(out), more=more)
    assert job.returncode == 0, job.stdout + job.stderr
    body = json.loads(out.read_text())
    assert (body["equal"], body["complete"], body["records"]) == (True, True, every)
    portions = [size for size in shuffled(events) if size > PORTION // 4]
    assert max(portions) < 1.2 * CORES * PORTION, "a portion is larger than it may be"
    assert len(portions) >= 2 * RECORDS["kept"] * SIZES["kept"] // (CORES * PORTION)

    at, at_dealt = rot(lab.source, kept), rot(lab.source, dealt)
    stranger = [Message(key=b"s", value=b"s", partition=1)]
    send(producer(lab.target), lab.target_topic(kept), stranger)
    monkeypatch.setenv("TEST_FUNCTION_SECONDS", "3600")
    told = ferry("verify", "--spark", "--json", config=lab.write(tmp_path), seconds=400)
    assert told.code == 1, told.err
    body = told.json("verify")
    (difference,) = body["differences"]
    assert (difference["topic"], difference["partition"], difference["kind"]) == (kept, 1, "extra")

    left: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in body["not_compared"]:
        assert (one["kind"], one["asked"]) == (NotComparedKind.UNREADABLE, True)
        left[one["topic"]].append(one)
    (one,) = left[kept]
    assert (one["partition"], one["source_range"]) == (0, [at, RECORDS["kept"]])
    said = f"offsets {at} to {RECORDS['kept'] - 1} of {kept}-0 were not compared: "
    assert one["message"].startswith(said)
    assert f" at offset {at}" in one["message"], one
    assert "copy is damaged; " in one["message"]
    for one in left[waits]:
        assert "ferry.transform.waits takes too long: " in one["message"]
        assert one["message"].endswith(" ferry.transform.waits.timeout.ms")
    assert {one["partition"] for one in left[waits]} == {0, 1}
    lost = 0
    for one in left[dealt]:
        assert (one["partition"], one["source_range"][0]) == (0, at_dealt)
        records = re.match(
            rf"(\d+) records? of {lab.target_topic(dealt)}-\d, .* {dealt}, ",
            one["message"],
        )
        assert records is not None, one
        assert f" at offset {at_dealt}" in one["message"], one
        assert "copy is damaged; " in one["message"]
        lost += int(records[1])
    assert RECORDS["dealt"] - at_dealt <= lost < 2 * RECORDS["dealt"]
    assert body["records"] == every - (RECORDS["kept"] - at) - lost - 2 * RECORDS["waits"]
