"""Transforms that break off in a task, and sources that cannot be read: each is told, and stops nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.model import FilterCounts, RefusalKind
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send
from tests.spark.jobs import ROOT, plan, submit
from tests.tiers import ANSWER_S

NUMBER = "CAST(CAST(value AS STRING) AS INT)"
SQL = f"SELECT * EXCEPT (value), CAST(CAST({NUMBER} AS STRING) AS BINARY) AS value FROM records"
TRANSFORMS = {
    "cast": f"sql = {SQL}",
    "dealt": f"sql = {SQL}",
    "breaks": "function = tests.spark.functions_of_flows:breaks",
    "dies": "function = tests.spark.functions_of_flows:dies",
    "fine": "where = TRUE",
    "alone": "redact = $.card",
}
BROKEN = ("cast", "breaks", "dies")
BAD = {0: [], 1: [3]}
"""Offsets of values that break some of them off, by partition."""
RECORDS, GONE = 6, 2


def values(name: str, partition: int) -> list[bytes]:
    bad = BAD[partition] if name not in ("fine", "alone") else []
    return [b"bad" if at in bad else f"{at}".encode() for at in range(RECORDS)]


def test_what_breaks_off_or_is_gone_is_refused_from_there_on_and_all_else_is_written(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {"ferry.transforms": ", ".join(TRANSFORMS), "ferry.transform.dealt.partitions": "2"}
    for name, line in TRANSFORMS.items():
        create_topic(source_cluster, f"{topic}-{name}", len(BAD))
        send(
            producer(source_cluster),
            f"{topic}-{name}",
            [Message(value=value, partition=partition) for partition in BAD for value in values(name, partition)],
        )
        part, _, text = line.partition(" = ")
        settings |= {f"ferry.transform.{name}.topics": f"{topic}-{name}", f"ferry.transform.{name}.{part}": text}
    topics = tuple(f"{topic}-{name}" for name in TRANSFORMS)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=topics, settings=settings)

    plan(lab, "r-1")
    admin = AdminClient({"bootstrap.servers": source_cluster.bootstrap})
    gone = [Place(f"{topic}-{name}", 0, GONE) for name in ("fine", "alone")]
    for result in admin.delete_records(gone).values():
        result.result(ANSWER_S)
    where = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    job = submit(lab, "r-1", tmp_path, master="local[2]", environment={"PYTHONPATH": where})
    assert job.wait(500) == 0, job.text()

    with lab.runs() as runs:
        report = runs.report("r-1")
    found = {(refusal.topic, refusal.partition): refusal for refusal in report.refusals}
    assert found.keys() == {
        *((f"{topic}-{name}", 1) for name in BROKEN),
        *((f"{topic}-{name}", 0) for name in ("fine", "alone")),
        *((f"{topic}-dealt", number) for number in (0, 1)),
    }
    causes = {
        "cast": f"CAST_INVALID_INPUT in {NUMBER}, line 1, column {SQL.index(NUMBER) + 1}",
        "dealt": f"CAST_INVALID_INPUT in {NUMBER}, line 1, column {SQL.index(NUMBER) + 1}",
        "breaks": "KeyError in _known (",
        "dies": "a Python worker died: ",
    }
    for name, cause in causes.items():
        refusal = found[f"{topic}-{name}", 1]
        assert refusal.kind is RefusalKind.TRANSFORM
        assert refusal.message.startswith(f"ferry.transform.{name} ")
        assert f" at offset 3 of {topic}-{name}-1: {cause}" in refusal.message
        assert "leave such records out" in refusal.message
        assert "bad" not in refusal.message, "a record's value"
        assert "\n" not in refusal.message
        assert f"ferry: refused: {refusal.message}" in job.text()
    for name in ("fine", "alone"):
        refusal = found[f"{topic}-{name}", 0]
        assert refusal.kind is RefusalKind.RETENTION_PASSED
        assert refusal.message.startswith(f"{topic}-{name}-0 ")

    reached = {tuple(one.source): one.end for one in lab.receipts()}
    for name in TRANSFORMS:
        copied = read_topic(target_cluster.bootstrap, lab.target_topic(f"{topic}-{name}"))
        ends = [RECORDS, 3] if name in (*BROKEN, "dealt") else [0, RECORDS]
        if name == "dealt":
            given = [value for partition, end in enumerate(ends) for value in values(name, partition)[:end]]
            assert sorted((row[2] for rows in copied.values() for row in rows), key=repr) == sorted(given, key=repr)
            continue
        for partition, end in enumerate(ends):
            assert [row[2] for row in copied[partition]] == values(name, partition)[:end]
            assert reached.get((f"{topic}-{name}", partition), 0) == end
    assert report.sifted == {
        **{f"{topic}-{name}": FilterCounts(RECORDS + 3, RECORDS + 3) for name in (*BROKEN, "dealt")},
        **{f"{topic}-{name}": FilterCounts(RECORDS, RECORDS) for name in ("fine", "alone")},
    }


UNCHECKED = {
    "unknown": "where = nosuch(1)",
    "dealt": "where = nosuch(1)",
    "gone": "function = nowhere.at_all:mask",
    "elsewhere": "function = tests.spark.functions_of_flows:small",  # found where runs are planned, and not in the job
    "first": f"sql = {SQL}",
    "changed": "where = TRUE",  # and another one when it is copied
    "alone": "redact = $.card",
}


def test_a_transform_that_does_not_check_refuses_its_topics_alone(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {"ferry.transforms": ", ".join(UNCHECKED), "ferry.transform.dealt.partitions": "2", "tasks.max": "2"}
    for name in (*UNCHECKED, "bytes"):
        create_topic(source_cluster, f"{topic}-{name}")
        given = [b"bad", b"1"] if name == "first" else [b"0", b"1"]
        send(producer(source_cluster), f"{topic}-{name}", [Message(value=value, partition=0) for value in given])
        part, _, text = UNCHECKED.get(name, "").partition(" = ")
        if part:
            settings |= {f"ferry.transform.{name}.topics": f"{topic}-{name}", f"ferry.transform.{name}.{part}": text}
    topics = tuple(f"{topic}-{name}" for name in (*UNCHECKED, "bytes"))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=topics, settings=settings)

    made = plan(lab, "r-1")
    assert len(made.row_slots) == 1, "what is lost, what is plain and what breaks off share a slot"
    by_then = replace(lab, settings={**settings, "ferry.transform.changed.where": "FALSE"})
    job = submit(by_then, "r-1", tmp_path, master="local[2]", environment={"PYTHONPATH": ""})
    assert job.wait(240) == 0, job.text()
    with lab.runs() as runs:
        report = runs.report("r-1")
    found = {refusal.topic: refusal for refusal in report.refusals}
    assert found.keys() == {f"{topic}-{name}" for name in UNCHECKED if name != "alone"}
    assert {one.kind for one in found.values()} == {RefusalKind.TRANSFORM}
    for name, key, fact in (
        ("unknown", ".where: ", " not understood, line 1, column 1: "),
        ("dealt", ".where: ", " not understood, line 1, column 1: "),
        ("gone", ".function: nowhere.at_all:mask ", " no module nowhere; "),
        ("elsewhere", ".function: tests.spark.functions_of_flows:small ", " no module tests"),
        ("changed", " is another one by", " since run r-1 was planned: "),
        ("first", " breaks off at ", f" at offset 0 of {topic}-first-0: CAST_INVALID_INPUT"),
    ):
        assert found[f"{topic}-{name}"].message.startswith(f"ferry.transform.{name}{key}")
        assert fact in found[f"{topic}-{name}"].message
    assert report.state is RunState.PARTIAL
    for name in {*UNCHECKED, "bytes"} - {"gone"}:  # which no topic was created for
        copied = read_topic(target_cluster.bootstrap, lab.target_topic(f"{topic}-{name}"))
        wanted = [b"0", b"1"] if name in ("alone", "bytes") else []
        assert [row[2] for rows in copied.values() for row in rows] == wanted
    again = plan(lab, "r-2")
    assert sorted(piece.source.topic for piece in again.kept) == sorted(
        f"{topic}-{name}" for name in ("unknown", "elsewhere", "first", "changed")
    )
    assert {unit.source.topic for unit in again.dealt} == {f"{topic}-dealt"}


def test_a_slow_transform_holds_no_transaction_and_one_that_hangs_is_refused_alone(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    given = {"slow": b"6", "hangs": b"3600", "bytes": b"0"}
    settings = {"ferry.transforms": "slow, hangs", "ferry.transform.hangs.timeout.ms": "9000"}
    # Shorter than the slow one takes.
    settings |= {"ferry.transaction.timeout.ms": "4000", "ferry.chunk.seconds": "2"}
    for name, value in given.items():
        create_topic(source_cluster, f"{topic}-{name}")
        send(producer(source_cluster), f"{topic}-{name}", [Message(value=value, partition=0)])
        if name != "bytes":
            settings |= {f"ferry.transform.{name}.topics": f"{topic}-{name}"}
            settings |= {f"ferry.transform.{name}.function": "tests.spark.functions_of_flows:sleeps"}
    topics = tuple(f"{topic}-{name}" for name in given)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=topics, settings=settings)
    plan(lab, "r-1")
    where = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    job = submit(lab, "r-1", tmp_path, master="local[2]", environment={"PYTHONPATH": where})
    assert job.wait(200) == 0, job.text()
    with lab.runs() as runs:
        report = runs.report("r-1")
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.kind) == (f"{topic}-hangs", RefusalKind.TRANSFORM)
    assert refusal.message.startswith("ferry.transform.hangs takes too long: ")
    assert refusal.message.endswith("or raise ferry.transform.hangs.timeout.ms")
    assert f"ferry: refused: {refusal.message}" in job.text()
    for name, value in given.items():
        copied = read_topic(target_cluster.bootstrap, lab.target_topic(f"{topic}-{name}"))
        assert [row[2] for rows in copied.values() for row in rows] == ([] if name == "hangs" else [value])
