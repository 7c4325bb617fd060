"""Slots whose steps are plain, written by Python alone: once and in order, also when workers are killed meanwhile."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from ferry.config.record_source import TASK_RECORDS
from ferry.dev import RunningCluster
from ferry.features.records.acts.latest import latest_specs
from ferry.features.records.acts.reading import read_batches
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.transform import is_plain
from ferry.model import TopicPartition
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send
from tests.pure.run.unit_flows import messages
from tests.quotas import quota
from tests.spark.jobs import copying, plan, submit

PARTITIONS = 5
SALT = "0123456789abcdef"


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    create_topic(source_cluster, topic, PARTITIONS)
    given = []
    for number, one in enumerate(messages(8_000)):
        value = None if one.value is None else json.dumps({"n": number, "card": f"{number:016}"}).encode()
        given.append(replace(one, value=value))
    send(producer(source_cluster), topic, given)
    return Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={
            "ferry.chunk.bytes": "3000",
            "ferry.transforms": "masked",
            "ferry.transform.masked.topics": topic,
            "ferry.transform.masked.sample": "70%",
            "ferry.transform.masked.redact": "$.card",
            "ferry.transform.masked.hash.key": "true",
            "ferry.transform.masked.salt": SALT,
            "ferry.transform.masked.provenance": "true",
        },
    )


def test_all_that_is_kept_is_there_once_whatever_is_killed(lab: Lab, tmp_path: Path) -> None:
    (topic,) = lab.topics
    assert is_plain(lab.flow.records.transforms[0])
    plan(lab, "r-1")
    with quota(lab.target, f"ferry.{lab.flow.flow}", "producer_byte_rate", 20_000):
        job = submit(lab, "r-1", tmp_path)
        copying(lab, job, receipts=3)
        killed = job.workers()
        for worker in killed:
            worker.kill()
        assert killed
    assert job.wait(240) == 0, job.text()

    receipts = lab.receipts()
    source, target = (read_topic(one.bootstrap, name) for one, name in ends(lab, topic))
    kept = 0
    for partition in range(PARTITIONS):
        wanted = {row[0]: changed(lab, topic, partition, *row) for row in source[partition]}
        got = [row[1:] for row in target[partition]]
        offsets = [int(dict(row[2])["ferry.source.offset"] or b"") for row in got]
        assert all(one < other for one, other in pairwise(offsets))
        assert got == [wanted[offset] for offset in offsets]
        # A key has all of its records or none; those without go one by one.
        keys = {source_row[1] for source_row in source[partition] if source_row[0] in set(offsets)} - {None}
        assert all(row[0] in set(offsets) for row in source[partition] if row[1] in keys)
        own = [one for one in receipts if one.source == (topic, partition)]
        assert own[-1].end == source[partition][-1][0] + 1
        assert sum(one.records for one in own) == len(got)
        kept += len(got)
    assert 0 < kept < 8_000


def ends(lab: Lab, topic: str) -> Iterator[tuple[RunningCluster, str]]:
    yield lab.source, topic
    yield lab.target, lab.target_topic(topic)


def changed(
    lab: Lab,
    topic: str,
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    time: int,
) -> tuple[object, ...]:
    told = {"cluster": lab.alias, "topic": topic, "partition": str(partition), "offset": str(offset)}
    more = [(f"ferry.source.{name}", text.encode()) for name, text in told.items()]
    new_key = None if key is None else hmac.digest(SALT.encode(), key, "sha256").hex().encode()
    new_value = None if value is None else json.dumps({**json.loads(value), "card": ""}).encode()
    return new_key, new_value, (*headers, *more), time


def test_pieces_are_read_one_after_the_other(lab: Lab) -> None:
    (spec,) = latest_specs(lab.flow, lab.flow.records.transforms[0].topics, lambda _: True, TASK_RECORDS)[lab.topics[0]]
    pieces = [ReadRange(TopicPartition(*piece.place), piece.start, piece.end) for piece in reversed(spec.pieces)]
    found = [piece for piece, _ in read_batches(replace(spec, pieces=tuple(pieces), in_order=True))]
    assert list(dict.fromkeys(found)) == pieces
    assert [one for one, other in pairwise([*found, None]) if one != other] == pieces
