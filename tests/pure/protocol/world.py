"""A source, a modelled target, and everybody who works on them; the invariants as named functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

from ferry.clock import wall_ms
from ferry.errors import FerryError, Retryable
from ferry.ledger.codec import decode_value
from ferry.ledger.ledger import LedgerView, fold, skips
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.receipts import lane_ends, last_receipts
from ferry.ledger.run_codec import ended_record
from ferry.ledger.runs import opened_run, sealed_plan
from ferry.ledger.unit_codec import era_record, eras
from ferry.model import (
    Attempt,
    Era,
    Fate,
    Flow,
    LedgerRecord,
    Origin,
    Plan,
    Position,
    Receipt,
    Record,
    RunRecord,
    TopicPartition,
)
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.progress import next_offset
from ferry.plan.rules.skipping import SkipRequest, skip_gap
from ferry.plan.rules.starts import recorded_starts, start_record
from ferry.plan.skipping import keep_skip
from ferry.policy import IdentityReplicationPolicy
from ferry.protocol.driver import Decide, Driver, begin_attempt, fence_and_seal
from ferry.protocol.slot import SlotProgress, SlotRef, copy_slot
from ferry.wire.batch import Batch, batches
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.decide import values
from tests.pure.protocol.broker import LEDGER, POSITIONS, BrokerError, Target
from tests.pure.protocol.calls import Act, Call, Task
from tests.pure.protocol.ports import ModelLane, ModelSlot

FLOW = Flow(source="primary", target="backup")
LANE = "live"
TOPIC = "orders"
_CONTROL = 0x20
_NOBODY = ProducerIdentity(producer_id=-1, producer_epoch=-1, sequence=-1, transactional=False)


@cache
def source_log(number: int, sizes: tuple[int, ...]) -> tuple[Batch, ...]:
    """The batches of a source partition: sizes in records; 0 is a control batch, which takes one offset."""
    found, base = [], 0
    for size in sizes:
        records = [Record(key=b"%d" % number, value=b"%d" % (base + at)) for at in range(max(size, 1))]
        batch = next(batches(build_batch(records, 0, _NOBODY)))
        moved = batch._replace(base_offset=base, next_offset=base + max(size, 1))
        found.append(moved._replace(attributes=moved.attributes | _CONTROL) if size == 0 else moved)
        base = moved.next_offset
    return tuple(found)


async def _opened(port: ModelLane, record: RunRecord, decide: Decide, known: LedgerView) -> Plan:
    """The plan of a run once it is sealed."""
    return (await fence_and_seal(port, record, decide, known)).plan


class World:
    """One lane of one flow, its past and its present. `late` are requests still in the network."""

    def __init__(self, partitions: Sequence[Sequence[int]], *, version: int = 2, chunk_batches: int = 1) -> None:
        """`partitions`: batch sizes per source partition; `version`: of transactions."""
        self.source = {
            TopicPartition(topic=TOPIC, partition=number): source_log(number, tuple(sizes))
            for number, sizes in enumerate(partitions)
        }
        self.target = Target([str(place) for place in self.source], version)
        self.chunk_batches = chunk_batches
        self.tasks: list[Task] = []
        self.late: list[tuple[str, Act]] = []
        self.trace: list[str] = []
        self.checked = -1
        self.broken = False
        self._receipts: dict[int, Receipt] = {}
        self._committed: list[Receipt] = []
        self._read_to = -1
        self._planned: tuple[int, list[tuple[str, int]]] = (-1, [])

    def open_run(self, run: str, slots: int, max_records: int | None = None) -> Task:
        """A driver begins to open a run; what it has read of the ledger is as old as its beginning."""
        lane = ModelLane(self.target)
        record = RunRecord(
            flow=FLOW, lane=LANE, run=run, slots=slots, config_digest="", started_ms=self._runs_seen(), origin=Origin()
        )

        async def decide(driver: Driver) -> Plan:
            facts = await self._facts(driver.view)
            driver.keep(_decided(driver))
            return decide_plan(rules(slots, max_records), facts, run, driver.opened.generation)

        return self._started(Task(f"driver {run}", _opened(lane, record, decide, self._shown())), f"{slots} slots")

    def skip(self, run: str, partition: int) -> Task:
        """Somebody passes the batch by hand at which a partition stands."""
        lane, place = ModelLane(self.target), TopicPartition(topic=TOPIC, partition=partition)
        record = RunRecord(
            flow=FLOW, lane=LANE, run=run, slots=1, config_digest="", started_ms=self._runs_seen(), origin=Origin()
        )

        async def decide(driver: Driver) -> Plan:
            facts = await self._facts(driver.view)
            at = next_offset(
                facts, place, facts.source.topics[TOPIC].partitions[partition], facts.lane.receipts.get(place)
            )
            to = next((batch.next_offset for batch in self.source[place] if batch.next_offset > at), at)
            wish = SkipRequest(source=place, to=to, who="ann", reason="corrupt")
            gap = skip_gap(rules(1), facts, wish, run, driver.opened.generation)
            return keep_skip(driver, gap)

        return self._started(Task(f"skip {run}", _opened(lane, record, decide, self._shown())), f"of {place}")

    def _runs_seen(self) -> int:
        """How many runs were opened: what a driver that counts would count."""
        return len(self.view().runs)

    def begin(self, run: str) -> Task:
        """A copy step begins: what `attempt` starts for this run belongs to it from the moment that it has a number."""
        # Nothing of the plan but its name goes into the record; a run opened again may not have sealed one yet.
        named = Plan(flow=FLOW, lane=LANE, run=run, generation=self._generation(run), slots=0, slices=())
        return self._started(Task(f"copy {run}", begin_attempt(ModelLane(self.target), named, Origin(), wall_ms())), "")

    def end(self, run: str) -> Task:
        """The copy step of a run is called off, as after a signal to its driver."""
        attempt, lane = self._attempt_at(run), ModelLane(self.target)

        async def work() -> None:
            await lane.append([ended_record(LANE, attempt)])
            await lane.fence(len(self.target.txns))

        return self._started(Task(f"end of {run}", work()), "")

    def _attempt_at(self, run: str) -> Attempt:
        """The newest attempt that its driver knows of."""
        begun = [
            task.result
            for task in self.tasks
            if task.name == f"copy {run}" and isinstance(task.result, Attempt)
            if task.result.generation == self._generation(run)
        ]
        if not begun:
            task = self.begin(run)
            self.step(task)
            begun = [task.result]
        return max(begun, key=lambda attempt: attempt.number)

    def _generation(self, run: str) -> int:
        opened = opened_run(self.view(), LANE, run)
        assert opened is not None
        return opened.generation

    def attempt(self, run: str, slot: int, result: SlotProgress | None = None) -> Task:
        """One slot of a run whose plan is sealed, in the run's newest attempt; Spark may start it more than once."""
        attempt = self._attempt_at(run)
        ref = SlotRef(flow=FLOW, lane=LANE, run=run, generation=attempt.generation, attempt=attempt.number, slot=slot)
        port = ModelSlot(self.target, self.source, ref, self.chunk_batches)
        number = sum(1 for task in self.tasks if task.name.startswith(f"task {run}/{slot}"))
        work = copy_slot(port, ref, lambda: False, lambda _: None, result)
        return self._started(Task(f"task {run}/{slot} try {number}", work, attempt=number), "")

    def _started(self, task: Task, note: str) -> Task:
        self.tasks.append(task)
        self.note(f"{task.name} starts {note}")
        return task

    def view(self) -> LedgerView:
        """The ledger as it is, compacted records included."""
        return self._folded(compacted=True)

    def _shown(self) -> LedgerView:
        """The ledger as its readers see it."""
        return self._folded(compacted=False)

    def _folded(self, *, compacted: bool) -> LedgerView:
        log = self.target.logs[LEDGER]
        fates = log.fates(0, log.end)
        records = [
            LedgerRecord(offset=at, key=record.key, value=record.value, fate=fate, producer_id=-1)
            for at, fate in fates.items()
            if isinstance(record := log.entries[at].payload, Record)
            if compacted or not log.entries[at].compacted
        ]
        return fold(records, log.end)

    def planned(self) -> list[tuple[str, int]]:
        """Run and slot of every sealed plan's used slots."""
        end = self.target.logs[LEDGER].end
        if self._planned[0] != end:
            view = self.view()
            sealed = [sealed_plan(view, LANE, opened.record.run, opened.generation) for opened in view.runs]
            plans = [found[0] for found in sealed if found is not None]
            self._planned = end, [(plan.run, slot) for plan in plans for slot in plan.used_slots]
        return self._planned[1]

    def decided(self) -> dict[str, list[int]]:
        """Generations of the drivers whose starts and rules count, in ledger order; compacted ones included."""
        log = self.target.logs[LEDGER]
        found: dict[str, list[int]] = {"start": [], "era": []}
        for offset, fate in log.fates(0, log.end).items():
            payload = log.entries[offset].payload
            if fate is not Fate.COMMITTED or not isinstance(payload, Record) or not self._is_decision(payload):
                continue
            for kind, generations in _generations(payload).items():
                found[kind] += generations
        return found

    @staticmethod
    def _is_decision(payload: object) -> bool:
        return isinstance(payload, Record) and payload.key.startswith((b'["start",', b'["era",'))

    async def _facts(self, view: LedgerView) -> Facts:
        receipts = last_receipts(view, LANE)
        positions = await Call("fetch positions", self.positions)
        places = sorted(self.source)
        parts = [values.part(size_bytes=None, end=self.source[place][-1].next_offset) for place in places]
        target_ends = [self.target.logs[str(place)].end for place in places]
        return values.facts_with(
            values.FACTS,
            now_ms=0,
            source={"topics": {TOPIC: values.topic(TOPIC, *parts, topic_id="")}},
            target={"topics": {TOPIC: values.target(TOPIC, *target_ends, topic_id="")}},
            lane={
                "receipts": receipts,
                "positions": {place: positions.get(place) for place in receipts},
                "first_run": True,
                "skips": skips(view, LANE),
            },
        )

    def positions(self) -> Mapping[TopicPartition, Position]:
        """The position group, read with require_stable: pending positions make the broker say "try again"."""
        log = self.target.logs[POSITIONS]
        if log.writers_of_open_records():
            raise Retryable("positions are pending")
        found: dict[TopicPartition, Position] = {}
        for _, payload in log.committed():
            match payload:
                case None:
                    found.clear()
                case (TopicPartition() as place, (int(offset), str(metadata))):
                    body = json.loads(metadata)
                    found[place] = Position(
                        target_next=offset, source_next=body["source_next"], generation=body["generation"]
                    )
        return found

    def step(self, task: Task, behind: int = 0) -> None:
        """The task's request arrives and is answered."""
        self.note(f"{task.name}: {task.label}" + (f", {behind} behind" if behind else ""))
        task.answer(behind)
        if task.done:
            self.note(f"{task.name} {task.label}")
        check(self)

    def run_until(self, task: Task, word: str) -> None:
        """Step a task until it waits for a request whose label begins with `word`, or ends; markers do not tarry."""
        for _ in range(200):
            self.deliver_markers()
            if task.done or task.label.startswith(word):
                return
            self.step(task)
        raise AssertionError(_story(self, f"{task.name} does not come to {word!r}"))

    def finish(self, task: Task) -> None:
        """Step a task to its end; markers do not tarry."""
        for _ in range(2_000):
            self.deliver_markers()
            if task.done:
                return
            self.step(task)
        raise AssertionError(_story(self, f"{task.name} does not end"))

    def lose(self, task: Task, fate: str, error: Exception | None = None) -> None:
        """No answer, or the `error`. `fate` of the request: applied, late or dropped."""
        self.note(f"{task.name}: {task.label} unanswered, {fate}" + (f": {error!r}" if error else ""))
        self._dispose(task, fate)
        task.lose(error)
        if task.done:
            self.note(f"{task.name} {task.label}")
        check(self)

    def crash(self, task: Task, fate: str) -> None:
        """The process dies with its request under way."""
        self.note(f"{task.name} dies at {task.label}, {fate}")
        self._dispose(task, fate)
        task.crash()
        check(self)

    def _dispose(self, task: Task, fate: str) -> None:
        call = task.pending
        assert call is not None
        if call.writes and fate == "applied":
            _apply(call.act)
        if call.writes and fate == "late":
            self.late.append((f"{call.label} of {task.name}", call.act))

    def deliver_late(self, index: int = 0) -> None:
        """A request of the past arrives."""
        label, act = self.late.pop(index)
        self.note(f"late: {label}")
        _apply(act)
        check(self)

    def deliver_marker(self, index: int = 0) -> None:
        """One marker arrives."""
        name, member = self.target.markers()[index]
        self.note(f"marker of {name} on {member}")
        self.target.deliver_marker(name, member)
        check(self)

    def deliver_markers(self) -> None:
        """All markers arrive."""
        while self.target.markers():
            self.deliver_marker()

    def expire(self, index: int = 0) -> None:
        """A transaction times out."""
        name = self.target.open_transactions()[index]
        self.note(f"{name} times out")
        self.target.expire(name)

    def delete_positions(self) -> None:
        """Somebody deletes the position group, or it expires."""
        self.note("positions deleted")
        self.target.logs[POSITIONS].append([None])

    def overwrite_position(self, partition: int, source_next: int) -> None:
        """Somebody joins the position group and commits over it."""
        self.note(f"position of {partition} overwritten with {source_next}")
        metadata = json.dumps({"source_next": source_next, "generation": 0})
        place = TopicPartition(topic=TOPIC, partition=partition)
        self.target.logs[POSITIONS].append([(place, (source_next, metadata))])

    def compact(self) -> None:
        """The log cleaner: of each key in the stable part of the ledger the last committed record stays."""
        self.note("ledger compacted")
        log = self.target.logs[LEDGER]
        last: dict[bytes, int] = {}
        for offset, payload in log.committed():
            assert isinstance(payload, Record)
            if payload.key in last:
                log.entries[last[payload.key]].compacted = True
            last[payload.key] = offset

    def end_well(self) -> None:
        """A last run without faults copies the rest; then the zombies wake, and the late requests arrive."""
        zombies = [task for task in self.tasks if not task.done]
        for number in range(3):
            run = f"last{number}"
            self.finish(self.open_run(run, 2))
            for name, slot in self.planned():
                if name == run:
                    self.finish(self.attempt(run, slot))
        everything_is_copied(self)
        while self.late:
            self.deliver_late()
        for task in zombies:
            self.finish(task)
        everything_is_copied(self)

    def note(self, line: str) -> None:
        """Write down what happens, for the failure's message."""
        self.trace.append(line)

    def committed_receipts(self) -> list[Receipt]:
        """All committed receipts in ledger order, compacted ones included."""
        log = self.target.logs[LEDGER]
        if self._read_to != log.end:
            fates = log.fates(0, log.end)
            for offset in range(max(self._read_to, 0), log.end):
                record = log.entries[offset].payload
                if isinstance(record, Record) and record.value is not None and record.key.startswith(b'["receipt",'):
                    self._receipts[offset] = parse_receipt(decode_value(record.value, "receipt"))
            self._read_to = log.end
            self._committed = [found for at, found in self._receipts.items() if fates[at] is Fate.COMMITTED]
        return self._committed


def rules(slots: int, max_records: int | None = None) -> Rules:
    """The rules of a plan for so many slots."""
    return Rules(
        flow=FLOW,
        lane=LANE,
        policy=IdentityReplicationPolicy(source_alias=FLOW.source),
        max_tasks=slots,
        max_bytes=None,
        max_records=max_records,
        max_seconds=60,
        replication_factor=1,
        config_excluded=lambda _: False,
        sync_configs=False,
    )


@cache
def _generations(record: Record) -> dict[str, list[int]]:
    """The generations that a record of a start or a rule has in it, by kind."""
    alone = fold([LedgerRecord(offset=0, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=-1)], 1)
    return {
        "start": list(recorded_starts(alone, LANE).offsets.values()),
        "era": [era.since for era in eras(alone, LANE).values()],
    }


def _decided(driver: Driver) -> list[Record]:
    """What a driver decides beside its plan: the lane's start, once, and a rule. Both have its generation in them."""
    generation = driver.opened.generation
    era = Era(source_topic=TOPIC, target_topic=TOPIC, since=generation, begins=(), digest="", partitions=1)
    began = (
        [] if recorded_starts(driver.view, LANE).offsets else [start_record(LANE, TOPIC, {0: generation}, {}, "", {})]
    )
    return [*began, era_record(LANE, era)]


def _apply(act: Act) -> None:
    """What a request does when nobody waits for its answer."""
    try:
        act()
    except (BrokerError, FerryError):
        return


def check(world: World) -> None:
    """What holds at every moment; nothing can have changed while no log grew."""
    size = sum(log.end for log in world.target.logs.values())
    if size == world.checked:
        return
    world.checked = size
    readers_see_each_record_once_in_order(world)
    receipts_follow_one_another(world)
    segments_are_true(world)
    overtaken_drivers_change_nothing(world)


def expected(batches: Sequence[Batch]) -> list[int]:
    """Source offsets of the records of a partition."""
    return [at for batch in batches if not batch.is_control for at in range(batch.base_offset, batch.next_offset)]


def passed(world: World) -> dict[TopicPartition, set[int]]:
    """Source offsets that were passed by hand on the way from one committed receipt to the next."""
    found: dict[TopicPartition, set[int]] = {place: set() for place in world.source}
    ends: dict[TopicPartition, int] = {}
    for receipt in world.committed_receipts():
        found[receipt.source].update(range(ends.get(receipt.target, 0), receipt.start))
        ends[receipt.target] = receipt.end
    return found


def allowed(world: World) -> dict[TopicPartition, set[int]]:
    """Source offsets that somebody has passed by hand, whether or not a run was quicker."""
    found: dict[TopicPartition, set[int]] = {place: set() for place in world.source}
    for place, ones in skips(world.view(), LANE).items():
        for gap in ones:
            found[place].update(range(gap.start, gap.end))
    return found


def readers_see_each_record_once_in_order(world: World) -> None:
    """A read_committed consumer of a target partition has got a beginning of the source's records.

    What was passed by hand is missing, and nothing else. Of markers that are on their way the data's may come first:
    then the receipt does not tell yet whether a place was passed.
    """
    gone, may_go = passed(world), allowed(world)
    for place, source in world.source.items():
        wanted = [(place, at) for at in expected(source) if at not in gone[place]]
        got = [payload for _, payload in world.target.logs[str(place)].committed()]
        without = [item for item in wanted if item[1] not in may_go[place] or item in got]
        assert got in (wanted[: len(got)], without[: len(got)]), _story(world, f"{place} shows {got}")


def receipts_follow_one_another(world: World) -> None:
    """The committed receipts of a partition continue each other: no overlap, and no hole but what was passed."""
    ends: dict[TopicPartition, int] = {}
    may_go = allowed(world)
    for receipt in world.committed_receipts():
        before = ends.get(receipt.target, 0)
        follows = receipt.start >= before and may_go[receipt.source].issuperset(range(before, receipt.start))
        assert follows, _story(
            world, f"receipt of {receipt.target} begins at {receipt.start}, the one before ends at {before}"
        )
        ends[receipt.target] = receipt.end


def segments_are_true(world: World) -> None:
    """Where a committed receipt says that a record lies, it lies, and is not aborted."""
    for receipt in world.committed_receipts():
        log = world.target.logs[str(receipt.target)]
        fates = log.fates(0, log.end)
        inside = [at for at in expected(world.source[receipt.source]) if receipt.start <= at < receipt.end]
        said = {part.source_start + at: part.target_start + at for part in receipt.segments for at in range(part.count)}
        assert sorted(said) == inside, _story(world, f"receipt of {receipt.target} names {sorted(said)}, not {inside}")
        for source, target in said.items():
            true = log.entries[target].payload == (receipt.source, source) and fates[target] is not Fate.ABORTED
            assert true, _story(world, f"source offset {source} of {receipt.source} is not at {target}")


def overtaken_drivers_change_nothing(world: World) -> None:
    """The lane's start is recorded once, and no rule replaces that of a newer run. Compacted records count too."""
    for kind, written in world.decided().items():
        wanted = written[:1] if kind == "start" else sorted(written)
        assert written == wanted, _story(world, f"drivers of generations {written} each decided the {kind} in force")


def everything_is_copied(world: World) -> None:
    """Every record of the source is visible on the target, but for those that the lane was led past by hand."""
    check(world)
    gone, may_go = passed(world), allowed(world)
    ends = lane_ends(world.view(), LANE)
    for place, source in world.source.items():
        gone[place] |= {at for at in may_go[place] if at >= ends.get(place, 0)}
        got = [payload for _, payload in world.target.logs[str(place)].committed()]
        wanted = [(place, at) for at in expected(source) if at not in gone[place]]
        assert got == wanted, _story(world, f"{place} lacks records: {got}")


def _story(world: World, what: str) -> str:
    world.broken = True
    return "\n  ".join([what, *world.trace])
