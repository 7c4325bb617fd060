"""The comparison of transformed topics, by spark-submit in local mode: the transform is applied again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from jsonschema import Draft202012Validator

from ferry.copy.kafka_slot import KafkaSlot
from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.features.verify.acts.own_run import verify_run
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.spark.verifying import compare_transformed
from ferry.model import DifferenceKind, NotComparedKind, Plan, VerifyMode
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send
from tests.kafka.run.test_kept_slot import Kept, keeps
from tests.program import SCHEMAS, ferry
from tests.pure.run.unit_flows import LATELY, SOURCES, messages, record_batches
from tests.spark.test_verify import submitted

RECORDS = 600
MISSING, ALTERED, EXTRA = 30, 45, 61
"""Offsets of partition 0; by `offset % 3 != 1` the first two are kept, and the last is not."""
Kind = DifferenceKind


class Lying(Kept):
    """What stands for Spark leaves one record out, alters one, and lets one through."""

    def rows(self, plan: Plan, slot: int) -> Iterator[pa.RecordBatch]:
        truth = {
            (row["partition"], row["offset"]): row for batch in super().rows(plan, slot) for row in batch.to_pylist()
        }
        if (0, ALTERED) in truth:
            truth[0, EXTRA] = {**truth[0, EXTRA - 1], "offset": EXTRA, "key": b"x", "value": b"y", "timestamp": LATELY}
            truth[0, ALTERED] = {**truth[0, ALTERED], "value": b"altered"}
            del truth[0, MISSING]
        return record_batches([tuple(row.values()) for _, row in sorted(truth.items())])


def verified(lab: Lab, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    out = folder / "verified.json"
    out.unlink(missing_ok=True)
    job = submitted(lab, folder, "--out", str(out), *arguments)
    assert out.exists(), job.stdout + job.stderr
    body = json.loads(out.read_text())
    Draft202012Validator(json.loads((SCHEMAS / "verify.json").read_text())).validate(body)
    return job.returncode, body


def test_a_transformed_copy_is_held_against_what_its_transform_makes_of_the_source_now(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    plain = f"{topic}-plain"
    for name in (topic, plain):
        create_topic(source_cluster, name, SOURCES)
        send(producer(source_cluster), name, messages(RECORDS))
    settings = {
        "ferry.chunk.bytes": "30000",
        "ferry.transforms": "some",
        "ferry.transform.some.topics": topic,
        "ferry.transform.some.where": "offset % 3 != 1 AND offset < 290",
    }
    topics = topic, plain
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=topics, settings=settings)
    copied(Lying(lab, topic))
    send(producer(source_cluster), topic, messages(100, start=RECORDS))
    honest = copied(Kept(lab, topic))

    code, body = verified(lab, tmp_path)
    assert (code, body["equal"], body["complete"]) == (1, False, True)
    found = [(one["topic"], one["kind"], one["partition"], one["source_range"]) for one in body["differences"]]
    assert found == [
        (topic, Kind.MISSING, 0, [MISSING, MISSING + 1]),
        (topic, Kind.VALUE, 0, [ALTERED, ALTERED + 1]),
        (topic, Kind.EXTRA, 0, [EXTRA, EXTRA]),
    ]
    (shown,) = body["differences"][1]["target_records"]
    assert shown["value_bytes"] == len(b"altered")
    kept = sum(keeps(row[0]) for rows in read_topic(source_cluster.bootstrap, topic).values() for row in rows)
    assert body["records"] == kept + RECORDS, "the other topic is compared as it is"

    told = ferry("verify", "--spark", "--run", honest.run, "--json", config=lab.write(tmp_path))
    assert told.code == 0, told.err
    body = told.json("verify")
    assert (body["equal"], body["not_compared"]) == (True, [])
    assert 0 < body["records"] < 100

    # Another rule in the file is said before any Spark is started.
    other = replace(lab, settings={**settings, "ferry.transform.some.where": "offset % 3 != 1"})
    with Verifier(other.flow, Wanted(topics=[topic], run=honest.run)) as verifier:
        survey = verifier.survey()
        compared = compare_transformed(None, other.flow, verifier.spec, survey, asked=True)  # type: ignore[arg-type]
        result = verifier.sum_up(survey, compared)
    assert (result.is_complete, result.records) == (False, 0)
    assert {(one.why, one.asked) for one in result.not_compared} == {(NotComparedKind.TRANSFORM_CHANGED, True)}
    said = result.not_compared[0].message
    assert "ferry.transform.some" in said


def copied(kept: Kept) -> Plan:
    """A run of both topics; what stands for Spark has the slots that need it."""
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        attempt = runs.begin(plan, local_origin())
        for slot in plan.used_slots:
            port_of = kept.port_of(plan, slot) if slot in plan.row_slots else KafkaSlot
            run_slot(runs.slot_task(plan, slot, attempt), lambda: False, lambda _: None, port_of=port_of)
    return plan


def test_without_spark_it_is_said_what_to_do(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, messages(1))
    settings = {
        "ferry.transforms": "some",
        "ferry.transform.some.topics": topic,
        "ferry.transform.some.where": "true",
        "ferry.verify": "receipt",
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    plan = Kept(lab, topic).run()
    with Verifier(lab.flow, Wanted()) as verifier:
        found = verifier.survey()
        result = verifier.sum_up(found, verifier.compare(found))
    assert {one.why for one in result.not_compared} == {NotComparedKind.NEEDS_SPARK}
    assert not result.is_equal
    # What its receipts say needs no transform.
    by_receipt = verify_run(lab.flow, plan.run)
    assert by_receipt is not None
    assert (by_receipt.mode, by_receipt.equal, by_receipt.records) == (VerifyMode.RECEIPT, True, 1)
