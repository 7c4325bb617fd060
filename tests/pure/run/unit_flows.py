"""A transformed topic between two clusters: its plan, its rows, and the check of what was written."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from ferry.clock import wall_ms
from ferry.copy.task import run_slot
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import COLUMNS, Rows
from ferry.model import Plan
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, Message, read_topic
from tests.pure.decide.dealt_model import partition_of_record, wants

SOURCES, TARGETS = 5, 3
LATELY = wall_ms() - 3_600_000
"""Retention takes what is older than a week."""

Chosen = Callable[[int, int, bytes | None], bool]
"""Whether a transform keeps the record of a source partition, offset and key."""


def messages(count: int, start: int = 0) -> list[Message]:
    """Keys repeat; some have none; tombstones, empty values, repeated and null headers, times that fall."""
    found = []
    for number in range(start, start + count):
        headers = (("h", b"1"), ("h", None), ("ü", b"")) if number % 3 == 0 else ()
        found.append(
            Message(
                key=None if number % 11 == 0 else f"k{number % 23}".encode(),
                value=None if number % 7 == 0 else b"" if number % 13 == 0 else f"{number}:".encode().ljust(300, b"x"),
                partition=number % 23 % SOURCES,  # a key keeps its partition
                headers=headers,
                timestamp=LATELY + (number * 7919) % 100_000,
            )
        )
    return found


def lab_of(lab: Lab, topic: str, partitions: int = TARGETS, **settings: str) -> Lab:
    """The lab whose file has a transform that deals the topic to so many partitions."""
    lines = {
        "ferry.transforms": "small",
        "ferry.transform.small.topics": topic,
        "ferry.transform.small.partitions": str(partitions),
    }
    return replace(lab, settings={**lab.settings, **lines, **settings})


@dataclass
class Units:
    """A transformed topic between two clusters, and what stands for Spark: the rows of a slot, sorted."""

    lab: Lab
    topic: str
    kept: Chosen = field(default=lambda *_: True)
    partitions: int = TARGETS

    def __post_init__(self) -> None:
        if "ferry.transforms" not in self.lab.settings:
            self.lab = lab_of(self.lab, self.topic, self.partitions)

    @property
    def target(self) -> str:
        return self.lab.target_topic(self.topic)

    def plan(self, runs: MicroRuns) -> Plan:
        """Open a run, as the `plan` task does; nothing is refused."""
        plan = runs.open_run(f"r-{secrets.token_hex(3)}", local_origin())
        assert not plan.refusals
        return plan

    def with_rule(self, kept: Chosen, partitions: int, **settings: str) -> Units:
        """The same topic by another rule of the file."""
        return replace(self, lab=lab_of(self.lab, self.topic, partitions, **settings), kept=kept, partitions=partitions)

    def rows(self, plan: Plan, slot: int, batch_rows: int = 150) -> Iterator[pa.RecordBatch]:
        """What Spark hands to a slot: read, kept, dealt, sorted."""
        units = {unit.target.partition: unit for unit in plan.of_slot(slot)}
        found = []
        for partition, records in read_topic(self.lab.source.bootstrap, self.topic).items():
            for offset, key, value, headers, time in records:
                number = partition_of_record(key, partition, offset, plan.dealt[0].partitions)
                if number in units and wants(units[number], partition, offset) and self.kept(partition, offset, key):
                    pairs = [{"key": name, "value": data} for name, data in headers]
                    found.append((self.target, number, partition, offset, time, key, value, pairs))
        return record_batches(sorted(found, key=lambda row: row[:4]), batch_rows)

    def copy(self, runs: MicroRuns, plan: Plan) -> None:
        attempt = runs.begin(plan, local_origin())
        for slot in plan.row_slots:
            spec, rows = runs.slot_task(plan, slot, attempt), Rows(self.rows(plan, slot))
            run_slot(spec, lambda: False, lambda _: None, port_of=partial(RowSlot, rows=rows))

    def run(self) -> Plan:
        with self.lab.runs() as runs:
            plan = self.plan(runs)
            self.copy(runs, plan)
            return plan

    def assert_once(self, kept: Chosen | None = None) -> int:
        """All records that are wanted are there, once, where the partitioner says, in order, unchanged."""
        wanted: dict[int, list[tuple[object, ...]]] = defaultdict(list)
        for partition, records in sorted(read_topic(self.lab.source.bootstrap, self.topic).items()):
            for row in records:
                if (kept or self.kept)(partition, row[0], row[1]):
                    number = partition_of_record(row[1], partition, row[0], self.partitions)
                    wanted[number].append(row[1:])
        got = read_topic(self.lab.target.bootstrap, self.target)
        count = 0
        for number in range(self.partitions):
            found = [tuple(rest) for _, *rest in got[number]]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted[number])), number
            for key in {row[0] for row in found if row[0] is not None}:
                assert [row for row in found if row[0] == key] == [row for row in wanted[number] if row[0] == key]
            count += len(found)
        return count


def record_batches(rows: list[tuple[Any, ...]], batch_rows: int = 150) -> Iterator[pa.RecordBatch]:
    """Rows as Spark hands them over, some at a time; with refusal and letter, or without."""
    kinds: list[pa.DataType] = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary()]
    pair = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds += [pair, pa.string(), pa.string()]
    for at in range(0, len(rows), batch_rows):
        columns = zip(*((*row, None, None)[:10] for row in rows[at : at + batch_rows]), strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
