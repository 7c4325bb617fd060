"""Transformed records on real brokers: whatever dies at whichever step, each is written once, unchanged but as told."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa
import pytest

from ferry.clock import wall_ms
from ferry.decide.ledger.ledger import LedgerView
from ferry.decide.ledger.unit_codec import era_record, eras, last_units, unit_receipts
from ferry.decide.records.partitioner import partition_of_record
from ferry.decide.records.units import Log, replanned, slots_of, wants
from ferry.dev import RunningCluster
from ferry.errors import Retryable, Superseded
from ferry.model import Attempt, Era, OpenedRun, Plan, TopicPartition, Unit
from ferry.run.copy.port import AnyReceipt, ChunkPart
from ferry.run.copy.slot import SlotResult, copy_slot
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.run.plan.opening import open_run
from ferry.run.records.rows import COLUMNS, Rows
from ferry.run.records.unit_slot import UnitSlot
from ferry.run.records.unit_task import run_unit_slot
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send
from tests.run.hooks import STEPS, Hooks

SOURCES, TARGETS = 5, 3
LATELY = wall_ms() - 3_600_000
"""Retention takes what is older than a week."""

Chosen = Callable[[int, int, bytes | None], bool]
"""Whether a transform keeps the record of a source partition, offset and key."""


class Killed(BaseException):
    """The process is gone: nothing of it does anything any more."""


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


@dataclass
class Units:
    """A transformed topic between two clusters, and what stands for Spark: the rows of a slot, sorted."""

    lab: Lab
    topic: str
    kept: Chosen = field(default=lambda *_: True)
    digest: str = "all"
    partitions: int = TARGETS

    @property
    def target(self) -> str:
        return self.lab.target_topic(self.topic)

    def plan(self, runs: MicroRuns) -> Plan:
        """Open a run whose plan has units, as a planner would."""
        planner = runs._planner
        source = read_topic(self.lab.source.bootstrap, self.topic)
        logs = [Log(0, rows[-1][0] + 1 if rows else 0) for _, rows in sorted(source.items())]

        async def decide(view: LedgerView, opened: OpenedRun) -> Plan:
            lasts, known = last_units(view, runs.lane), eras(view, runs.lane).get(self.target)
            wish = Era(
                source_topic=self.topic,
                target_topic=self.target,
                since=opened.generation,
                begins=(0,) * len(logs),
                digest=self.digest,
                partitions=self.partitions,
            )
            found = replanned(known, lasts.values(), wish, logs)
            if found.era != known:
                await planner.ledger.append([era_record(runs.lane, found.era)])
            slots = slots_of([1] * len(found.ranges), 0, 2)
            units = tuple(
                Unit(
                    source_topic=self.topic,
                    target=TopicPartition(self.target, number),
                    starts=starts,
                    ends=ends,
                    slot=slots[number],
                    era=found.era.since,
                    partitions=found.era.partitions,
                    digest=found.era.digest,
                    target_next=getattr(lasts.get(TopicPartition(self.target, number)), "target_next", -1),
                )
                for number, (starts, ends) in enumerate(found.ranges)
            )
            return Plan(
                flow=planner.flow.flow,
                lane=runs.lane,
                run=opened.record.run,
                generation=opened.generation,
                slots=2,
                slices=(),
                units=units,
            )

        async def opened() -> Plan:
            await planner.ledger.open(1)
            record = planner.record(f"r-{secrets.token_hex(3)}", local_origin())
            return await open_run(planner.fencing_lane(), record, decide, await planner.known.view())

        return runs._run(opened)

    def rows(self, plan: Plan, slot: int, batch_rows: int = 150) -> Iterator[pa.RecordBatch]:
        """What Spark hands to a slot: read, kept, dealt, sorted."""
        units = {unit.target.partition: unit for unit in plan.units_of(slot)}
        found = []
        for partition, records in read_topic(self.lab.source.bootstrap, self.topic).items():
            for offset, key, value, headers, time in records:
                number = partition_of_record(key, partition, offset, plan.units[0].partitions)
                if number in units and wants(units[number], partition, offset) and self.kept(partition, offset, key):
                    pairs = [{"key": name, "value": data} for name, data in headers]
                    found.append((self.target, number, partition, offset, time, key, value, pairs))
        found.sort(key=lambda row: row[:4])
        kinds = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary()]
        pair = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        for at in range(0, len(found), batch_rows):
            columns = list(zip(*found[at : at + batch_rows], strict=True))
            arrays = [pa.array(column, kind) for column, kind in zip(columns, [*kinds, pair], strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))

    def copy(self, runs: MicroRuns, plan: Plan) -> None:
        attempt = runs.begin(plan, local_origin())
        for slot in plan.unit_slots:
            run_unit_slot(runs.task_spec(plan, slot, attempt), Rows(self.rows(plan, slot)), lambda: False)

    def run(self) -> Plan:
        with self.lab.runs() as runs:
            plan = self.plan(runs)
            self.copy(runs, plan)
            return plan

    def assert_once(self, kept: Chosen | None = None) -> int:
        """All records that are wanted are there, once, where the partitioner says, in order, unchanged."""
        wanted: dict[int, list[tuple[object, ...]]] = defaultdict(list)
        for partition, records in sorted(read_topic(self.lab.source.bootstrap, self.topic).items()):
            for offset, *rest in records:
                if (kept or self.kept)(partition, offset, rest[0]):
                    number = partition_of_record(rest[0], partition, offset, self.partitions)
                    wanted[number].append(tuple(rest))
        got = read_topic(self.lab.target.bootstrap, self.target)
        count = 0
        for number in range(self.partitions):
            found = [tuple(rest) for _, *rest in got[number]]
            assert sorted(map(repr, found)) == sorted(map(repr, wanted[number])), number
            for key in {row[0] for row in found if row[0] is not None}:
                assert [row for row in found if row[0] == key] == [row for row in wanted[number] if row[0] == key]
            count += len(found)
        return count


@pytest.fixture
def units(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Units:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(1_500))
    settings = {"ferry.chunk.bytes": "60000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(target_cluster, lab.target_topic(topic), TARGETS)
    return Units(lab, topic)


class HeldUnits(UnitSlot):
    """A real slot of units with hooks around its steps."""

    hooks: Hooks

    async def initialise(self) -> None:
        self.hooks.fire(self.hooks.before, "initialise")
        await super().initialise()

    async def copy_chunk(self) -> Sequence[ChunkPart]:  # type: ignore[override]
        self.hooks.fire(self.hooks.before, "copy_chunk")
        return await super().copy_chunk()

    async def send_positions(self, positions: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self.hooks.fire(self.hooks.before, "send_positions")

    async def append_receipts(self, receipts: Sequence[AnyReceipt]) -> frozenset[int]:
        self.hooks.fire(self.hooks.before, "append_receipts")
        return await super().append_receipts(receipts)

    async def commit(self) -> None:
        self.hooks.fire(self.hooks.before, "commit")
        await super().commit()
        self.hooks.fire(self.hooks.after, "commit")


def copy_held(runs: MicroRuns, units: Units, plan: Plan, slot: int, hooks: Hooks) -> SlotResult:
    attempt: Attempt = runs.begin(plan, local_origin())
    spec = runs.task_spec(plan, slot, attempt)
    with spec.connections() as connections:
        held = HeldUnits(
            Rows(units.rows(plan, slot)),
            source=connections.source,
            target=connections.target,
            ledger=connections.ledger,
            ref=spec.ref,
            limits=spec.limits,
            origin=spec.origin,
            began_ms=spec.began_ms,
            stop=lambda: False,
        )
        held.hooks = hooks
        return connections.run(lambda: copy_slot(held, spec.ref, lambda: False, lambda _: None))


def test_whatever_step_kills_it_each_record_is_written_once(units: Units) -> None:
    def killed() -> None:
        raise Killed

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        for step in STEPS:
            with pytest.raises(Killed):
                copy_held(runs, units, plan, 0, Hooks(before={step: killed}))
        # Killed behind a commit, again and again: each attempt has one chunk more.
        for chunks in (1, 2):
            with pytest.raises(Killed):
                copy_held(runs, units, plan, 0, Hooks(after={"commit": killed}))
            view = runs.ledger()
            assert len(unit_receipts(view, runs.lane, plan.run, plan.generation)) >= chunks
        units.copy(runs, plan)
        receipts = unit_receipts(runs.ledger(), runs.lane, plan.run, plan.generation)
    assert units.assert_once() == 1_500
    assert sum(one.records for one in receipts) == 1_500
    assert len(receipts) > TARGETS
    for unit in plan.units:
        own = [one for one in receipts if one.target == unit.target]
        assert own[0].begins == unit.starts
        assert own[-1].reached == unit.ends
        assert all(one.reached == other.begins for one, other in pairwise(own))


def test_a_lost_commit_is_read_and_not_guessed(units: Units) -> None:
    def lost() -> None:
        raise Retryable("the answer is lost")

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        done = copy_held(runs, units, plan, 0, Hooks(after={"commit": lost}))
        assert done.retries == 1
        units.copy(runs, plan)
    assert units.assert_once() == 1_500


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_zombie_wakes_after_a_newer_run_has_finished(units: Units, step: str) -> None:
    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises((Superseded, Retryable)):
            copy_held(runs, units, plan, 0, Hooks(before={step: lambda: units.run() and None}))
    assert units.assert_once() == 1_500


def test_a_run_that_ended_early_is_gone_on_with_by_the_next_plan_and_a_changed_transform_waits(units: Units) -> None:
    def killed() -> None:
        raise Killed

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises(Killed):
            copy_held(runs, units, plan, 0, Hooks(after={"commit": killed}))
    send(producer(units.lab.source), units.topic, messages(500, start=1_500))

    old, new = units, replace(units, digest="few", kept=lambda _p, _o, key: key is not None and key[-1] % 2 == 0)
    with units.lab.runs() as runs:
        finishing = new.plan(runs)
        assert {unit.digest for unit in finishing.units} == {"all"}  # what the old rule has begun is finished by it
        old.copy(runs, finishing)
        begun = new.plan(runs)
        assert {unit.digest for unit in begun.units} == {"few"}
        new.copy(runs, begun)
        era = eras(runs.ledger(), runs.lane)[units.target]
    assert era.since == begun.generation

    def rule(partition: int, offset: int, key: bytes | None) -> bool:
        return offset < era.begins[partition] or new.kept(partition, offset, key)

    assert 0 < units.assert_once(rule) < 2_000
