"""The real driver and the real slot under any interleaving of processes, requests, answers and crashes.

Each process has connections of its own. Requests that write, and reads of the ledger, wait at the brokers until a rule
serves them, loses them, or answers them with an error code. A rule also holds back, loses or refuses what comes next of
a source. Leaders and coordinators move between two brokers. Time passes only by a rule.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from kafka.net.selector import NetworkSelector

from ferry.clock import wall_ms
from ferry.errors import FerryError, OutcomeUnknown
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.ledger.receipts import receipts
from ferry.model import Attempt, Origin, Plan, Receipt
from ferry.protocol.driver import begin_attempt
from ferry.protocol.names import ledger_topic, position_group
from ferry.protocol.slot import SlotProgress
from tests.pure.protocol.world import FLOW, LANE
from tests.pure.scripted.broker import Brokers, Pending
from tests.pure.scripted.faults import Asked, Fault
from tests.pure.scripted.lane import Lane
from tests.pure.scripted.wire import connected, on_the_wire

WRITES = {"InitProducerId", "Produce", "EndTxn", "TxnOffsetCommit", "AddPartitionsToTxn", "AddOffsetsToTxn"}
MAX_RUNS, MAX_PROCESSES, MAX_SOURCE_FAULTS = 4, 5, 3
ALL = 10_000

NODES = (1, 2)
"""The brokers of each cluster."""
OF_SOURCE = ("Fetch", "Fetch", "Fetch", "Metadata", "OffsetForLeaderEpoch", "ListOffsets")
LIKELY_AT_SOURCE = (
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.OFFSET_OUT_OF_RANGE,
    codes.KAFKA_STORAGE_ERROR,
    codes.FENCED_LEADER_EPOCH,
)
CODES = sorted({value for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)} - {0})
LIKELY = (
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.REQUEST_TIMED_OUT,
    codes.NOT_COORDINATOR,
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    codes.CONCURRENT_TRANSACTIONS,
    codes.INVALID_TXN_STATE,
    codes.INVALID_PRODUCER_EPOCH,
    codes.PRODUCER_FENCED,
    codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
)
"""Codes that brokers answer while they move, stop or are slow."""

shapes = st.sampled_from([[[1]], [[1, 1], [2]], [[3, 2], [1, 1, 1]]])
indexes = st.integers(0, 5)


def waits(asked: Asked) -> bool:
    """Whether a rule decides when a request of a process is served."""
    return asked.api in WRITES or (asked.api == "Fetch" and ledger_topic(FLOW.source) in asked.topics)


@dataclass(kw_only=True)
class Process:
    """A driver or an attempt at a slot, with connections of its own."""

    name: str
    clusters: tuple[Cluster, Cluster]
    task: Any = None
    done: bool = False
    result: Any = None


class Machine(RuleBasedStateMachine):
    """No record is lost, doubled or out of order for a read_committed reader, and receipts continue each other."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.processes: list[Process] = []
        self.plans: list[Plan] = []
        self.attempts: dict[str, Attempt] = {}
        self.claims: list[Receipt] = []
        """What processes said to be committed."""
        self.broken: list[Exception] = []
        """What processes raised that is no FerryError."""
        self.runs = 0
        self.lane: Lane
        self.loop: NetworkSelector

    @initialize(shape=shapes, version=st.sampled_from([1, 2]))
    def begin(self, shape: list[list[int]], version: int) -> None:
        """A source with something in it, an empty target."""
        self.lane = Lane(shape, version=version, nodes=NODES)
        self.clock, self.loop = self.stack.enter_context(on_the_wire(self.lane.source, self.lane.target))
        self.target.tarry = True
        self.target.gate = waits
        self.open_run(slots=1, requests=ALL)

    @property
    def target(self) -> Brokers:
        return self.lane.target

    def live(self) -> list[Process]:
        return [one for one in self.processes if not one.done]

    def servable(self, of: Iterable[Process] | None = None) -> list[Pending]:
        """The first waiting request of each connection."""
        first: dict[int, Pending] = {}
        for one in self.target.pending:
            first.setdefault(id(one.wire), one)
        if of is None:
            return list(first.values())
        mine = {id(connection.transport) for one in of for connection in one.clusters[1]._manager._conns.values()}
        return [one for wire, one in first.items() if wire in mine]

    def settle(self) -> None:
        """Let all go on until everybody waits for a request, or for time to pass."""
        for _ in range(5_000):
            due = self.loop._next_scheduled_timeout(self.clock.now())
            if not self.loop._ready and not (due is not None and due <= 0):
                return
            self.loop._poll_once(0)
        raise AssertionError("it does not come to rest")

    def pass_time(self, seconds: float) -> None:
        """So much time passes."""
        until = self.clock.now() + seconds
        self.settle()
        while (due := self.loop._next_scheduled_timeout(self.clock.now())) is not None and (
            self.clock.now() + due <= until
        ):
            self.clock.skipped += max(0.0, due)
            self.settle()

    def start(self, name: str, work: Callable[[Cluster, Cluster], Awaitable[Any]]) -> Process:
        clusters = connected(self.loop, self.lane.source), connected(self.loop, self.target)
        process = Process(name=name, clusters=clusters)

        async def run() -> None:
            try:
                for cluster in clusters:
                    await cluster.open()
                    await cluster.refresh(None)
                process.result = await work(*clusters)
            except FerryError as error:
                process.result = error
            except Exception as error:  # the loop would only log it
                self.broken.append(error)
            finally:
                process.done = True
                for cluster in clusters:
                    cluster.close()

        process.task = self.loop.call_soon(run)
        self.processes.append(process)
        self.pass_time(0.01)
        return process

    def proceed(self, process: Process, requests: int, word: str = "") -> None:
        """Serve a process so many requests, or up to the first one of a kind; markers do not tarry."""
        for _ in range(requests):
            self.target.deliver_markers()
            self.pass_time(0.01)
            if process.done:
                return
            waiting = self.servable([process])
            if not waiting:  # it backs off
                self.pass_time(1.0)
                continue
            if word and waiting[0].asked.api == word:
                return
            self.target.serve(waiting[0])
            self.pass_time(0.0)
        self.check()

    def check(self) -> None:
        """What a reader sees is a beginning of the source, once and in order; receipts continue each other."""
        assert not self.broken, self.broken
        view = self.lane.view()
        for number, sizes in enumerate(self.lane.sizes):
            copied = self.lane.copied(number)
            assert copied == list(range(sum(sizes)))[: len(copied)], f"partition {number} shows {copied}"
        ends: dict[Any, int] = {}
        for one in sorted(receipts(view, lane=LANE), key=lambda one: (one.source, one.start, one.end)):
            assert one.start == ends.get(one.source, 0), f"a receipt of {one.source} begins at {one.start}"
            ends[one.source] = one.end

    def check_claims(self) -> None:
        """What a process said to have copied is in the ledger; all markers have arrived."""
        known = {(one.source, one.generation, one.start, one.end) for one in receipts(self.lane.view(), lane=LANE)}
        for claim in self.claims:
            one = (claim.source, claim.generation, claim.start, claim.end)
            assert one in known, f"{one} was reported, and is not in the ledger"

    @precondition(lambda self: self.runs < MAX_RUNS and len(self.live()) < MAX_PROCESSES)
    @rule(slots=st.integers(1, 2), requests=st.sampled_from([ALL, ALL, ALL, 3, 6, 9]))
    def open_run(self, slots: int, requests: int) -> None:
        """A driver begins."""
        self.runs += 1
        name = f"r{self.runs}"

        async def work(_: Cluster, target: Cluster) -> Plan:
            plan = await self.lane.opening(name, slots, target)()
            self.plans.append(plan)
            return plan

        self.proceed(self.start(f"driver {name}", work), min(requests, 200))

    @precondition(lambda self: self.plans and len(self.live()) < MAX_PROCESSES)
    @rule(index=indexes, slot=st.integers(0, 1), anew=st.booleans(), requests=st.sampled_from([ALL, ALL, 4, 7, 10, 13]),
          word=st.sampled_from(["", "EndTxn", "EndTxn", "Produce"]))  # fmt: skip
    def attempt(self, index: int, slot: int, anew: bool, requests: int, word: str) -> None:
        """A task of a slot starts, in the newest attempt or by a copy step of its own."""
        plan = self.plans[-1 - index % len(self.plans)]
        slot %= max(1, len(plan.used_slots))

        async def work(source: Cluster, target: Cluster) -> SlotProgress:
            known = None if anew else self.attempts.get(plan.run)
            attempt = known or await begin_attempt(LedgerTopic(target, FLOW.source), plan, Origin(), wall_ms())
            self.attempts[plan.run] = attempt
            return await self.lane.copying(
                attempt, slot, chunk_bytes=1, source=source, target=target, committed=self.claims.extend
            )()

        self.proceed(self.start(f"task {plan.run}/{slot}", work), min(requests, 300), word)

    @precondition(lambda self: self.live())
    @rule(index=indexes, requests=st.sampled_from([1, 2, 3, 5, 8, 300]), word=st.sampled_from(["", "", "EndTxn"]))
    def go_on(self, index: int, requests: int, word: str) -> None:
        """A process that waited goes on."""
        live = self.live()
        self.proceed(live[index % len(live)], requests, word)

    @precondition(lambda self: self.servable())
    @rule(index=indexes, applied=st.booleans())
    def lose(self, index: int, applied: bool) -> None:
        """A request, or its answer, is lost, and its connection with it."""
        waiting = self.servable()
        one = waiting[index % len(waiting)]
        if applied:
            self.target.serve(one, Fault(api="", lost=True, applied=True))
        else:
            self.target.pending.remove(one)
            one.wire.cut()
        self.pass_time(0.01)
        self.check()

    @precondition(lambda self: self.servable())
    @rule(index=indexes, code=st.sampled_from(LIKELY) | st.sampled_from(CODES), applied=st.booleans())
    def answer_an_error(self, index: int, code: int, applied: bool) -> None:
        """A request is answered with an error code, whether or not it was carried out."""
        waiting = self.servable()
        self.target.serve(waiting[index % len(waiting)], Fault(api="", code=code, applied=applied))
        self.pass_time(0.01)
        self.check()

    @precondition(lambda self: len(self.lane.source.faults) < MAX_SOURCE_FAULTS)
    @rule(api=st.sampled_from(OF_SOURCE), code=st.sampled_from([*LIKELY_AT_SOURCE, None]), held=st.booleans())
    def trouble_source(self, api: str, code: int | None, held: bool) -> None:
        """The source refuses a request, does not answer it, or has it until a rule releases it."""
        if held:
            self.lane.source.faults.append(Fault(api=api, held=True))
        else:
            self.lane.source.faults.append(Fault(api=api, code=code, lost=code is None))

    @precondition(lambda self: self.lane.source.faults)
    @rule()
    def release_source(self) -> None:
        """What the source held back arrives."""
        self.lane.source.release()
        self.pass_time(0.01)
        self.check()

    @rule(index=indexes, source=st.booleans())
    def move_leader(self, index: int, source: bool) -> None:
        """The other broker leads a partition of the source or of the copy, or the ledger."""
        brokers = self.lane.source if source else self.target
        places = sorted(brokers.leaders)
        place = places[index % len(places)]
        brokers.move_leader(place, other_than(brokers.leaders[place]))

    @precondition(lambda self: self.target.target.txns)
    @rule(index=indexes)
    def move_coordinator(self, index: int) -> None:
        """The other broker coordinates a transactional id, or the lane's positions."""
        names = sorted({*self.target.target.txns, position_group(FLOW, LANE)})
        name = names[index % len(names)]
        self.target.coordinators[name] = other_than(self.target.coordinators.get(name, NODES[0]))

    @precondition(lambda self: self.servable())
    @rule(index=indexes)
    def arrive_late(self, index: int) -> None:
        """A connection is lost, and its request is carried out later."""
        waiting = self.servable()
        one = waiting[index % len(waiting)]
        one.wire.cut()
        self.pass_time(0.01)

    @precondition(lambda self: len(self.live()) > 1)
    @rule(index=indexes)
    def crash(self, index: int) -> None:
        """A process dies; what it has sent may be carried out later."""
        live = self.live()
        self.kill(live[index % len(live)])

    def kill(self, process: Process) -> None:
        """End a process where it stands."""
        self.loop.cancel(process.task)
        process.done = True
        for cluster in process.clusters:
            with suppress(Exception):
                cluster.close()
        self.settle()

    @rule(seconds=st.sampled_from([0.2, 2.0, 35.0]))
    def wait(self, seconds: float) -> None:
        """Time passes: back-offs end, requests time out."""
        self.pass_time(seconds)
        self.check()

    @precondition(lambda self: self.target.target.markers())
    @rule(index=indexes)
    def deliver_marker(self, index: int) -> None:
        """A marker arrives at one partition."""
        markers = self.target.target.markers()
        self.target.target.deliver_marker(*markers[index % len(markers)])
        self.check()

    @precondition(lambda self: self.target.target.open_transactions())
    @rule(index=indexes)
    def expire(self, index: int) -> None:
        """The coordinator ends a transaction that took too long."""
        names = self.target.target.open_transactions()
        self.target.target.expire(names[index % len(names)])

    def teardown(self) -> None:
        """What is on its way arrives, all processes die, and a run without faults copies the rest."""
        with self.stack:
            if not hasattr(self, "lane"):
                return
            while waiting := self.servable():
                self.target.serve(waiting[0])
                self.settle()
            for process in self.live():
                self.kill(process)
            self.check()
            self.target.deliver_markers()
            self.check_claims()
            self.target.pending.clear()
            self.target.gate, self.target.tarry = None, False
            self.lane.source.faults.clear()
            self.lane.source.release()
            clusters = [connected(self.loop, one) for one in (self.lane.source, self.target)]
            for cluster in clusters:
                self.loop.run(cluster.open)
            self.lane.connect(clusters)
            plan = self.lane.open("last", 2)
            attempt = self.lane.begin(plan)
            for slot in plan.used_slots:
                self.lane.copy(attempt, slot, chunk_bytes=1)
            for cluster in clusters:
                cluster.close()
            self.check()
            assert self.lane.is_whole(), [self.lane.copied(number) for number in range(len(self.lane.sizes))]


def other_than(node: int) -> int:
    """The other one of a cluster's brokers."""
    return NODES[1 - NODES.index(node)]


def test_no_interleaving_breaks_what_the_real_writer_promises() -> None:
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=20))


@pytest.mark.slow
def test_a_commit_that_is_taken_for_granted_is_found() -> None:
    """The machine can fail: a writer that takes an unknown outcome for a commit reports what is not in the ledger."""
    commit = Writer.commit

    async def take_for_granted(self: Writer) -> None:
        with suppress(OutcomeUnknown):
            await commit(self)

    search = settings(
        max_examples=1000, stateful_step_count=20, derandomize=True, database=None, phases=[Phase.generate]
    )
    with patch.object(Writer, "commit", take_for_granted), pytest.raises(AssertionError, match="reported"):
        run_state_machine_as_test(Machine, settings=search)
