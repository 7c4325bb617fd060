"""Transformed records that keep their partition, on real brokers: whatever dies at whichever step, each is once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest

from ferry.copy.kafka_slot import SlotWiring
from ferry.copy.row_scope import RowScope
from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.errors import Refused, Retryable, Superseded
from ferry.features.records.acts import row_slot
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from ferry.ledger.receipts import receipts
from ferry.model import Plan, Receipt, TopicPartition
from ferry.protocol.slot import SlotProgress
from ferry.run.local import copy_plan
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send, settled, wait_until
from tests.kafka.run.hooks import STEPS, Held, Hooks, copy_held
from tests.pure.run.unit_flows import LATELY, SOURCES, messages, record_batches


class Killed(BaseException):
    """The process is gone: nothing of it does anything any more."""


def killed() -> None:
    raise Killed


def keeps(offset: int) -> bool:
    """The transform of these tests, which Spark would carry out; nothing of the last offsets is kept."""
    return offset % 3 != 1 and offset < 290


@dataclass
class Kept:
    """A transformed topic between two clusters, and what stands for Spark: the rows of a slot, sorted."""

    lab: Lab
    topic: str

    @property
    def target(self) -> str:
        return self.lab.target_topic(self.topic)

    def plan(self, runs: MicroRuns) -> Plan:
        return runs.open_run(f"run-{new_alias()}", local_origin())

    def rows(self, plan: Plan, slot: int) -> Iterator[pa.RecordBatch]:
        found = []
        pieces = {piece.source.partition: piece for piece in plan.of_slot(slot)}
        for partition, records in read_topic(self.lab.source.bootstrap, self.topic).items():
            for offset, key, value, headers, time in records:
                piece = pieces.get(partition)
                if piece is not None and piece.start <= offset < piece.end and keeps(offset):
                    pairs = [{"key": name, "value": data} for name, data in headers]
                    found.append((self.target, partition, partition, offset, time, key, value, pairs))
        return record_batches(sorted(found, key=lambda row: row[:4]))

    def port_of(self, plan: Plan, slot: int) -> partial[RowSlot]:
        return partial(RowSlot, rows=Rows(self.rows(plan, slot)))

    def copy(self, runs: MicroRuns, plan: Plan) -> list[SlotProgress]:
        attempt = runs.begin(plan, local_origin())
        specs = [runs.slot_task(plan, slot, attempt) for slot in plan.used_slots]
        return [
            run_slot(spec, lambda: False, lambda _: None, port_of=self.port_of(plan, spec.ref.slot)) for spec in specs
        ]

    def run(self) -> Plan:
        with self.lab.runs() as runs:
            plan = self.plan(runs)
            self.copy(runs, plan)
            return plan

    def assert_once(self) -> list[Receipt]:
        """All records that are kept are there, once, in their partition and order, unchanged, where receipts say."""
        with self.lab.runs() as runs:
            found = list(receipts(settled(runs)))
        source, target = (
            read_topic(self.lab.source.bootstrap, self.topic),
            read_topic(self.lab.target.bootstrap, self.target),
        )
        for partition, records in source.items():
            own = [one for one in found if one.source.partition == partition]
            wanted = [row for row in records if keeps(row[0])]
            assert [row[1:] for row in target[partition]] == [row[1:] for row in wanted]
            at = {
                part.source_start + number: part.target_start + number
                for one in own
                for part in one.segments
                for number in range(part.count)
            }
            assert [(row[0], at.get(row[0])) for row in wanted] == [
                (row[0], there[0]) for row, there in zip(wanted, target[partition], strict=True)
            ]
            assert len(at) == len(wanted)
            assert all(one.end == other.start for one, other in pairwise(own))
            assert own[-1].end == records[-1][0] + 1
        return found


@pytest.fixture
def kept(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Kept:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(1_500))
    settings = {
        "ferry.chunk.bytes": "30000",
        "ferry.transforms": "some",
        "ferry.transform.some.topics": topic,
        "ferry.transform.some.where": "offset % 3 != 1 AND offset < 290",
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    return Kept(lab, topic)


class HeldRows(Held, RowSlot):
    """A real slot of rows with hooks around its steps."""

    def __init__(self, wiring: SlotWiring, *, rows: Rows) -> None:
        RowSlot.__init__(self, wiring, rows=rows)


def copy_rows(runs: MicroRuns, kept: Kept, plan: Plan, slot: int, hooks: Hooks) -> SlotProgress:
    return copy_held(runs, plan, slot, hooks, port_of=partial(HeldRows, rows=Rows(kept.rows(plan, slot))))


def test_whatever_step_kills_it_each_record_is_written_once(kept: Kept) -> None:
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        assert plan.row_slots == plan.used_slots == (0, 1)
        for step in STEPS:
            with pytest.raises(Killed):
                copy_rows(runs, kept, plan, 0, Hooks(before={step: killed}))
        for chunks in (1, 2):  # each attempt has one chunk more
            with pytest.raises(Killed):
                copy_rows(runs, kept, plan, 0, Hooks(after={"commit": killed}))
            assert len(list(receipts(settled(runs)))) >= chunks
        kept.copy(runs, plan)
        # A commit counts in the ledger when its marker is there, some milliseconds after its answer.
        wait_until(lambda: not runs.unfinished_slices(plan), "receipts of all slices")
        report = runs.report(plan.run)
    found = kept.assert_once()
    assert {one.transform for one in found} == {"some"}
    assert {one.transform_digest for one in found} == {piece.transform_digest for piece in plan.slices} != {""}
    assert sum(one.records for one in found) < 1_500 == sum(one.end - one.start for one in found)
    assert not report.refusals
    assert not report.unfinished


def test_a_slot_does_nothing_but_its_portion(kept: Kept) -> None:
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        attempt = runs.begin(plan, local_origin())
        untouched = plan.slices[0]

        def copy(slot: int, ranges: dict[TopicPartition, tuple[int, int]]) -> None:
            cut = replace(
                plan,
                slices=tuple(
                    replace(piece, start=ranges[piece.source][0], end=ranges[piece.source][1])
                    for piece in plan.of_slot(slot)
                    if piece.source in ranges
                ),
            )
            spec = replace(runs.slot_task(plan, slot, attempt), portion=RowScope(ranges=ranges, units=False))
            run_slot(spec, lambda: False, lambda _: None, port_of=kept.port_of(cut, slot))

        for slot in plan.used_slots:
            copy(slot, {piece.source: (0, 100) for piece in plan.of_slot(slot) if piece != untouched})
        found = {one.source: one.end for one in receipts(settled(runs))}
        assert found == {piece.source: 100 for piece in plan.slices[1:]}
        assert runs.reached(plan) == found
        with pytest.raises(Refused, match=rf"{untouched.source} .* 0, .* 100 "):
            copy(untouched.slot, {untouched.source: (100, 200)})
        kept.copy(runs, plan)
    kept.assert_once()


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_zombie_wakes_after_a_newer_run_has_finished(kept: Kept, step: str) -> None:
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        with pytest.raises((Superseded, Retryable)):
            copy_rows(runs, kept, plan, 0, Hooks(before={step: kept.run}))
    kept.assert_once()
    assert not kept.run().slices


def test_a_chunk_ends_before_its_receipt_has_too_many_segments(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_slot, "MOST_SEGMENTS", 50)
    monkeypatch.setattr(row_slot, "MOST_RECORDS", 20)
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        kept.copy(runs, plan)
    found = kept.assert_once()
    assert 1 < max(len(one.segments) for one in found) <= 50


def test_a_record_that_is_too_large_for_the_target_stops_its_partition_and_no_other(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 2)
    small = {"max.message.bytes": "2000"}
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={
            "ferry.transforms": "some",
            "ferry.transform.some.topics": topic,
            "ferry.transform.some.where": "true",
            "sync.topic.configs.enabled": "false",
        },
    )
    create_topic(target_cluster, lab.target_topic(topic), 2, config=small)
    given = [Message(value=b"x" * (5_000 if n == 11 else 100), partition=n % 2, timestamp=LATELY) for n in range(40)]
    send(producer(source_cluster), topic, given)
    other = Kept(lab, topic)
    with lab.runs() as runs:
        results = other.copy(runs, other.plan(runs))
    (refusal,) = [refusal for result in results for refusal in result.refusals.values()]
    assert (refusal.partition, refusal.kind.value) == (1, "too-large")
    assert "raise max.message.bytes" in refusal.message
    got = read_topic(target_cluster.bootstrap, other.target)
    assert [len(got[0]), len(got[1])] == [13, 3]  # of offsets 0 to 19 and 0 to 4


def test_a_slot_that_copies_bytes_does_not_touch_what_is_to_be_changed(kept: Kept) -> None:
    with kept.lab.runs() as runs:
        plan = kept.plan(runs)
        with pytest.raises(Refused, match=r"some\b.*bytes"):
            kept.lab.copy_slot(runs, plan, 0)
        with pytest.raises(Refused, match="--spark"):
            copy_plan(runs, plan)
        assert not list(receipts(settled(runs)))
