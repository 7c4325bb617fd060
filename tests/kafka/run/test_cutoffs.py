"""Rows that end before their slice does: the slot refuses what lies behind, and takes nothing of it for left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.features.records.acts import row_slot
from ferry.features.records.acts.cutoffs import Cutoff
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from ferry.model import Refusal, RefusalKind, TopicPartition
from ferry.protocol.slot import SlotProgress
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.wire import encoding
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send
from tests.pure.run.unit_flows import SOURCES, Units, messages, record_batches

PARTITIONS, RECORDS = 3, 90


def lab_of(source: RunningCluster, target: RunningCluster, topic: str) -> Lab:
    create_topic(source, topic, PARTITIONS)
    send(producer(source), topic, numbered(PARTITIONS * RECORDS, partitions=PARTITIONS))
    settings = {
        "ferry.transforms": "masked",
        "ferry.transform.masked.topics": topic,
        "ferry.transform.masked.redact": "$.card",
        "tasks.max": "1",
    }
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=settings)


def test_what_is_behind_the_end_of_rows_is_refused_and_never_taken_for_left_out(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = lab_of(source_cluster, target_cluster, topic)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with lab.runs() as runs:
        plan = runs.open_run("r-1", local_origin())
        (slot,) = plan.row_slots

        def copied(ends: dict[int, int], known: bool) -> SlotProgress:
            return attempted(runs, lab, plan_slot=slot, ends=ends, known=known)

        first = copied({1: 40}, known=False)
        assert first.refusals.keys() == {places[1]}
        again = copied({1: 20, 2: 0}, known=True)  # behind what is committed, as retention may take it meanwhile
        assert not again.receipts
        last = copied({}, known=True)
        assert not last.refusals
    got = read_topic(target_cluster.bootstrap, lab.target_topic(topic))
    source = read_topic(source_cluster.bootstrap, topic)
    assert [[row[1:] for row in got[number]] for number in range(PARTITIONS)] == [
        [row[1:] for row in source[number]] for number in range(PARTITIONS)
    ]
    ends = [(one.start, one.end) for one in lab.receipts() if one.source == places[1]]
    assert ends == [(0, 40), (40, RECORDS)]


def test_a_chunk_ends_where_its_records_would_take_too_much_memory(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "BATCH_BYTES", 200)
    monkeypatch.setattr(row_slot, "KEPT_BYTES", 1_000)
    lab = lab_of(source_cluster, target_cluster, topic)
    with lab.runs() as runs:
        (slot,) = runs.open_run("r-1", local_origin()).row_slots
        result = attempted(runs, lab, plan_slot=slot, ends={}, known=False)
    assert len(result.receipts) > 2 * PARTITIONS
    got = read_topic(target_cluster.bootstrap, lab.target_topic(topic))
    assert [len(got[number]) for number in range(PARTITIONS)] == [RECORDS] * PARTITIONS


def test_units_lack_what_is_behind_the_end_of_rows_of_one_source_partition_and_have_it_later(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(900))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings={})
    units, short = Units(lab, topic), 40
    place = TopicPartition(topic, 1)
    refusal = Refusal(topic=topic, partition=1, kind=RefusalKind.TRANSFORM, message="it breaks off")
    cutoffs = {place: Cutoff(offset=short, refusal=refusal)}
    before = replace(units, kept=lambda partition, offset, _: partition != 1 or offset < short)
    with units.lab.runs() as runs:
        plan = before.plan(runs)
        attempt = runs.begin(plan, local_origin())
        told: dict[TopicPartition, Refusal] = {}
        for slot in plan.row_slots:
            spec, result = runs.slot_task(plan, slot, attempt), SlotProgress()
            rows = Rows(before.rows(plan, slot))
            run_slot(spec, lambda: False, lambda _: None, result, partial(RowSlot, rows=rows, cutoffs=cutoffs))
            told |= result.refusals
    assert told.keys() == {unit.source for unit in plan.dealt}
    assert {one.message for one in told.values()} == {"it breaks off"}
    assert before.assert_once() < 900
    following = units.run()
    assert [unit.starts[1] for unit in following.dealt] == [short] * units.partitions
    assert units.assert_once() == 900


def attempted(runs: MicroRuns, lab: Lab, *, plan_slot: int, ends: dict[int, int], known: bool) -> SlotProgress:
    """An attempt whose rows end at these offsets; the slot knows it from the start, or when they end."""
    (topic,) = lab.topics
    plan = runs.sealed_plan("r-1")
    found = {
        TopicPartition(topic, number): Cutoff(
            offset=end,
            refusal=Refusal(topic=topic, partition=number, kind=RefusalKind.TRANSFORM, message="it breaks off"),
        )
        for number, end in ends.items()
    }
    cutoffs = dict(found) if known else {}

    def rows() -> Iterator[pa.RecordBatch]:
        for number, records in sorted(read_topic(lab.source.bootstrap, topic).items()):
            target = lab.target_topic(topic)
            mine = [
                (target, number, number, offset, time, key, value, [{"key": n, "value": data} for n, data in headers])
                for offset, key, value, headers, time in records[: ends.get(number)]
            ]
            yield from record_batches(mine, 30)
            cutoffs.update(found)

    spec = runs.slot_task(plan, plan_slot, runs.begin(plan, local_origin()))
    result = SlotProgress()
    run_slot(spec, lambda: False, lambda _: None, result, port_of=partial(RowSlot, rows=Rows(rows()), cutoffs=cutoffs))
    return result
