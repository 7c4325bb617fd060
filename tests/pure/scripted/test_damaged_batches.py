"""Batches that are damaged in the log: each is reported, and all else is read, once, whatever they were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.switch.acts import stranded
from ferry.kafka.fetch.committed import ReadRecord, UnopenedBatch, read_committed
from ferry.model import TopicPartition
from ferry.wire.batch import HEADER_BYTES, Batch, batches
from tests.pure.protocol.broker import Entry
from tests.pure.protocol.broker import Log as Entries
from tests.pure.scripted import partitions
from tests.pure.scripted.batches import Part
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.wire import scripted
from tests.pure.wire.hostile import raw_batch, record
from tests.pure.wire.logs import PLAIN, Log, Step, histories, log_of

PLACE = TopicPartition(topic="orders", partition=0)
MAGIC_AT, SUM_AT, COUNTED_FROM = 16, 17, 21
"""Of the batch's header: what is before the magic byte is not damaged here, as a broker could not read the log."""

WROTE, OTHER = Step(producer=1, records=2), Step(producer=2, records=1)
ABORTS, COMMITS = Step(producer=1, records=0, commits=False), Step(producer=1, records=0)


def changed(log: Log, damage: Mapping[int, tuple[int, int]]) -> list[Batch]:
    """The batches of a log as they are on the disk."""
    sent = list(log.batches)
    for index, (at, bits) in damage.items():
        body = bytearray(sent[index].data)
        body[MAGIC_AT + at % (len(body) - MAGIC_AT)] ^= bits
        (sent[index],) = batches(bytes(body))
    return sent


@contextmanager
def lying(log: Log, damage: Mapping[int, tuple[int, int]], most: int = 1 << 20) -> Iterator[Brokers]:
    """A broker that has this log; `damage` by batch is the byte (modulo its length) and the bits that are changed.

    As a broker does, it finds an offset by its index, which has every second batch, and from there by the headers in
    the log, damaged or not (`LogSegment.translateOffset`). Its index of aborted transactions is right. An answer has
    `most` bytes, and three batches at least.
    """
    sent = changed(log, damage)

    def found(_: object, start: int, end: int, __: int) -> bytes:
        index = next((at for at, one in enumerate(log.batches) if one.next_offset > start), len(sent)) // 2 * 2
        first = next((at for at, one in enumerate(sent) if at >= index and one.next_offset > start), len(sent))
        answer: list[bytes] = []
        for batch, true in zip(sent[first:], log.batches[first:], strict=True):
            if true.base_offset >= end or (len(answer) > 2 and sum(map(len, answer)) >= most):
                break
            answer.append(bytes(batch.data))
        return b"".join(answer)

    brokers = Brokers(alias="primary")
    brokers.topic(PLACE.topic)
    entries: Entries = brokers.log(PLACE.topic)
    for batch, step in zip(log.batches, log.steps, strict=True):
        if step.is_marker:
            entries.entries.append(Entry(producer=step.producer, committed=step.commits))
        else:
            parts = [Part(bytes(batch.data), at) for at in range(step.records)]
            entries.entries += [Entry(payload=part, producer=step.producer) for part in parts]
    with patch.object(partitions, "records", found):
        yield brokers


def read(brokers: Brokers, start: int, end: int) -> tuple[list[int], list[UnopenedBatch]]:
    """The offsets of the records, and the batches that cannot be opened."""
    rows: list[ReadRecord] = []
    unopened: list[UnopenedBatch] = []
    with scripted(brokers) as (_, (cluster,)):

        async def work() -> None:
            await cluster.refresh([PLACE.topic])
            await read_committed(cluster, PLACE, start, end, rows.append, unopened.append)

        cluster.loop.run(work)
    return [row.offset for row in rows], unopened


def stable_end(log: Log) -> int:
    """The end of what a read_committed reader may read."""
    return log.batches[log.last_stable].base_offset if log.last_stable < len(log.batches) else log.next_offset


def due(log: Log, damage: Mapping[int, object], start: int) -> list[int]:
    """The offsets of committed records whose batches are not damaged."""
    return [
        offset
        for index, (batch, step) in enumerate(zip(log.batches[: log.last_stable], log.steps, strict=False))
        if not step.is_marker and index not in damage and log.is_committed(index)
        for offset in range(max(start, batch.base_offset), batch.next_offset)
    ]


@pytest.mark.parametrize("at", [10, 50], ids=["header", "content"])
@pytest.mark.parametrize("most", [1, 1 << 20], ids=["a few", "at once"])
def test_a_damaged_abort_marker_hides_nothing_that_its_producer_commits_later(at: int, most: int) -> None:
    log = log_of([WROTE, ABORTS, WROTE, COMMITS, WROTE, ABORTS, OTHER, WROTE, COMMITS, Step(producer=2, records=0)])
    with lying(log, {1: (at, 1)}, most) as brokers:
        records, unopened = read(brokers, 0, log.next_offset)
    assert records == due(log, {1: None}, 0)
    assert [(one.offset, one.end) for one in unopened] == [(2, 3)]
    assert unopened[0].data[:MAGIC_AT] == bytes(log.batches[1].data[:MAGIC_AT])


def test_a_marker_that_is_none_although_its_checksum_is_right_is_reported() -> None:
    log = log_of([WROTE, ABORTS, WROTE, COMMITS])
    body = bytearray(log.batches[1].data[: HEADER_BYTES + 2])
    body[8:12] = (len(body) - 12).to_bytes(4, "big")
    body[SUM_AT:COUNTED_FROM] = crc32c(bytes(body[COUNTED_FROM:])).to_bytes(4, "big")
    (cut,) = batches(bytes(body))
    with lying(Log(batches=(log.batches[0], cut, *log.batches[2:]), steps=log.steps), {}) as brokers:
        records, unopened = read(brokers, 0, log.next_offset)
    assert (records, [one.offset for one in unopened]) == ([3, 4], [2])


@pytest.mark.slow
@given(
    histories.map(log_of),
    st.dictionaries(st.integers(0, 29), st.tuples(st.integers(0, 120), st.integers(1, 255)), max_size=4),
    st.integers(0, 20),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_all_that_is_not_damaged_is_read_once_and_all_that_is_is_reported_once(
    log: Log, damage: dict[int, tuple[int, int]], start: int, most: int
) -> None:
    damage = {index: how for index, how in damage.items() if index < log.last_stable}
    end = stable_end(log)
    with lying(log, damage, most) as brokers:
        records, unopened = read(brokers, min(start, end), end)
    assert records == due(log, damage, start)
    places = [one.offset for one in unopened]
    assert len(set(places)) == len(places)
    begins = {index: log.batches[index].base_offset for index in damage}
    assert set(places) <= set(begins.values())
    # A broker does not send a batch that says that it ends before the offset that is fetched.
    shown = {index for index in damage if changed(log, damage)[index].next_offset > begins[index] >= start}
    assert {begins[index] for index in shown} <= set(places)


def test_what_is_damaged_is_a_line_each_in_the_file_and_in_the_evidence_and_nothing_is_twice(tmp_path: Path) -> None:
    """A payload whose second record is none: what is before it is in the batch's line alone."""
    halved: Batch = next(batches(raw_batch(record(0, b"k", b"v") + b"\x09", count=2, base=3)))
    plain = Step(producer=PLAIN, records=2)
    log = log_of([WROTE, ABORTS, plain, WROTE, COMMITS])
    made = Log(batches=(*log.batches[:2], halved, *log.batches[3:]), steps=log.steps)
    path = tmp_path / "stranded.jsonl"
    with lying(made, {1: (50, 1)}) as brokers, scripted(brokers) as (_, (cluster,)):
        connections: Any = type("Connections", (), {"target": cluster})

        async def work() -> Any:
            await cluster.refresh([PLACE.topic])
            parts = {PLACE: [(0, 4), (4, 8)]}
            return await stranded.write_stranded(connections, parts, path, {PLACE: 8})

        rows, _ = cluster.loop.run(work)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    whole = [(line["offset"], "batch_base64" in line) for line in lines]
    assert whole == [(2, True), (3, True), (5, False), (6, False)]
    (row,) = rows
    assert (row["start"], row["end"], row["records"], row["unopened"]) == (2, 7, 2, 2)
    named = [(one["offset"], one["end"], one["why"]) for one in row["batches"]]
    assert named == [(line["offset"], line["end"], line["why"]) for line in lines[:2]]
