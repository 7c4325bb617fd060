"""Whatever one request is answered: nothing is lost, doubled or claimed, and the next attempt copies the rest.

Each kind of request of a driver that opens a run, of a slot that copies, of one of transformed rows, of a run that
creates topics and sets groups, and of a slot of the sink, meets each of Kafka's error codes, before and after it was
carried out, a lost answer, and one that comes late.
Those in transactions do so in version 1 and 2 of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache

from ferry.errors import FerryError, Superseded
from ferry.features.sink.acts.ids import delivery_writer
from ferry.kafka.connect import codes
from ferry.kafka.fetch.offsets import EARLIEST, LATEST
from ferry.ledger.runs import sealed_plan
from ferry.model import Plan, TopicPartition
from ferry.protocol.names import DRIVER, ledger_topic, transactional_id
from ferry.protocol.slot import SlotProgress
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world_after
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.batches import Part, identity, row
from tests.pure.scripted.delivery import APPLICATION, DELIVERY_LEDGER, Frame
from tests.pure.scripted.delivery import TOPIC as FRAMES
from tests.pure.scripted.faults import Asked, At, Fault
from tests.pure.scripted.lane import Lane, PortOf, at_work
from tests.pure.scripted.row_lane import rows_port
from tests.pure.scripted.table import CODES, Case, Request, Table, each
from tests.pure.scripted.wire import scripted
from tests.tiers import IN_PART

LEDGER = ledger_topic(FLOW.source)
WRITES = {"Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
"""Requests of a transaction."""
SLOT, OWN = transactional_id(FLOW, LANE, 0), transactional_id(FLOW, LANE, DRIVER)
NEXT_SLOT = transactional_id(FLOW, LANE, 1)
SINK = delivery_writer(APPLICATION, 0)
OF_TOPICS = frozenset(
    {
        codes.REQUEST_TIMED_OUT,
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.TOPIC_ALREADY_EXISTS,
        codes.INVALID_REPLICATION_FACTOR,
        codes.NOT_CONTROLLER,
        codes.POLICY_VIOLATION,
        codes.THROTTLING_QUOTA_EXCEEDED,
    }
)
OF_GROUPS = frozenset(
    {
        codes.UNKNOWN_TOPIC_OR_PARTITION,
        codes.REQUEST_TIMED_OUT,
        codes.OFFSET_METADATA_TOO_LARGE,
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.NOT_COORDINATOR,
        codes.UNKNOWN_MEMBER_ID,
        codes.REBALANCE_IN_PROGRESS,
        codes.GROUP_AUTHORIZATION_FAILED,
    }
)
SIZES = ((3, 2), (1, 2))
COUNTS = (10, 8)
"""How many records the source has where a whole run is made."""
ROWS, CHUNK_BYTES = (7, 4), 12
"""Of a frame that the sink writes, and at how many bytes of them a transaction ends."""
READ = {TopicPartition(topic=f"a.{TOPIC}", partition=0): 4, TopicPartition(topic=f"a.{TOPIC}", partition=1): 6}
"""Up to where the group has read, as it is at the target."""


@cache
def opened(version: int) -> bytes:
    """A lane whose first run is open."""
    lane = Lane(SIZES, version=version)
    with at_work(lane):
        lane.open("r")
    return lane.kept()


@cache
def begun_before(version: int) -> bytes:
    """A lane whose first run has copied some records."""
    lane = Lane(SIZES, version=version)
    lane.most_records = 4
    with at_work(lane):
        copy_of(lane, lane.open("before", 2))
    return lane.kept()


def judge_copy(
    version: int,
    side: str,
    fault: Fault,
    port_of: Callable[[Lane], PortOf] | None = None,
    chunk_bytes: int = 1,
    kept: Callable[[int], bytes] = opened,
    also: Collection[Fault] = (),
) -> None:
    """One copy with this fault, and another run without it where something is missing; what each says is true.

    `kept`: what the lane is before. `also`: faults of the same cluster that make the request come about.
    """
    print(f"transactions of version {version}, {side}: {fault}")
    lane = Lane(SIZES, version=version)
    lane.restore(kept(version))
    lane.memory_bytes = max(lane.memory_bytes, 64 * chunk_bytes)  # or each request has one partition
    if port_of is not None:
        lane.port = port_of(lane)
    with at_work(lane):
        assert lane.plan is not None
        attempt = lane.begin(lane.plan)
        getattr(lane, side).faults += [fault, *map(replace, also)]
        fences = lane.target.count("InitProducerId")
        result, error = SlotProgress(), None
        try:
            lane.copy(attempt, result=result, chunk_bytes=chunk_bytes)
        except FerryError as raised:
            error = raised
        assert fault.happened, "the copy made no such request"
        judge_cost(fault, result.retries, lane.target.count("InitProducerId") - fences)
        lane.target.deliver_markers()
        ends = {place.partition: end for place, end in lane.ends().items()}
        claimed = {one.source.partition: one.end for one in result.receipts}
        for partition, end in claimed.items():
            assert end <= ends.get(partition, 0), "a receipt is claimed that the ledger does not have"
        for partition, sizes in enumerate(SIZES):
            assert lane.copied(partition) == list(range(ends.get(partition, 0))), "copied is what receipts say"
            whole = ends.get(partition, 0) == sum(sizes)
            named = any(place.partition == partition for place in result.refusals)
            assert whole or named or error is not None, "what is missing is named"
        getattr(lane, side).faults.clear()
        if not lane.is_whole():
            lane.copy(lane.begin(lane.open("again")), chunk_bytes=1)
        assert lane.is_whole()


def judge_cost(fault: Fault, retries: int, fences: int) -> None:
    """A failure costs one retry at most; a writer that was fenced fences no other one. `fences`: by InitProducerId."""
    assert retries <= fault.happened
    if fault.code in codes.FENCED and fault.api in WRITES:
        assert (retries, fences) == (0, 1)


def judge_whole(version: int, side: str, fault: Fault) -> None:
    """Test a copy in one chunk: its requests concern several partitions."""
    judge_copy(version, side, fault, chunk_bytes=1 << 20)


def judge_rows(version: int, side: str, fault: Fault) -> None:
    """The same of rows that were transformed; they keep their partitions."""
    judge_copy(version, side, fault, rows_port)


def judge_opening(version: int, side: str, fault: Fault) -> None:
    """A run is opened with this fault: what it says to be sealed is sealed, it copies nothing, and the next one can."""
    print(f"transactions of version {version}, {side}: {fault}")
    lane = Lane(SIZES, version=version)
    lane.restore(begun_before(version))
    lane.most_records = 4
    before = [lane.copied(number) for number in range(len(SIZES))]
    writers = {name: replace(lane.target.target.txns[name]) for name in (SLOT, NEXT_SLOT)}
    with at_work(lane):
        getattr(lane, side).faults.append(fault)
        plan = None
        try:
            plan = lane.open("r", 2)
        except FerryError as raised:
            print(raised)
        assert fault.happened, "the opening made no such request"
        getattr(lane, side).faults.clear()
        lane.target.deliver_markers()
        assert [lane.copied(number) for number in range(len(SIZES))] == before, "an opening copies nothing"
        if plan is not None:
            sealed = sealed_plan(lane.view(), LANE, "r", plan.generation)
            assert sealed is not None, "the plan is said to be sealed"
            assert sealed[0] == plan
            for name, writer in writers.items():
                assert lane.target.target.txns[name].epoch > writer.epoch, "each slot was fenced"
        assert -1 not in writers_of(lane), "what is sent again is written once"
        lane.most_records = None
        copy_of(lane, lane.open("after"))
        assert lane.is_whole()


def produced(made: World) -> None:
    """Records at the source that a group has read in part."""
    begun(made, topics={TOPIC: len(COUNTS)})
    made.commit(made.a, "billing", **{f"{TOPIC}_{place.partition}": offset for place, offset in READ.items()})


def judge_run(_version: int, side: str, fault: Fault) -> None:
    """`ferry run` with this fault: what it says is true, and the next run copies the rest and sets the group."""
    print(f"{side}: {fault}")
    with world_after(produced) as made:
        made.b.faults.append(fault)
        first = made.ask("run", "a->b", "--id", "r1")
        assert fault.happened, "the run made no such request"
        copied, there = copied_of(made), set_of(made)
        assert [numbers == list(range(len(numbers))) for numbers in copied] == [True] * len(COUNTS), "once, in order"
        assert there.items() <= READ.items(), "the group is where it was translated to, or where it was"
        body = first.body
        if "error" in body:
            assert first.code
        else:
            claimed = {one["partition"]: one["end"] for one in body["receipts"]}
            assert claimed == {number: len(numbers) for number, numbers in enumerate(copied) if numbers}
            whole = [len(numbers) for numbers in copied] == list(COUNTS)
            assert (first.code == 0) == (body["state"] == "success")
            assert whole or (body["refusals"] and first.code), "what is missing is named"
            groups = body["groups"] or {"offsets": 0, "left": []}
            assert groups["offsets"] <= len(there), "no offset is said to be written that is not"
            assert groups["offsets"] == len(READ) or groups["left"] or not whole, "what is not written is named"
        made.b.faults.clear()
        if IN_PART and first.code == 0 and [len(numbers) for numbers in copied] == list(COUNTS) and there == READ:
            return
        again = made.ask("run", "a->b", "--id", "r2")
        assert (again.code, again.body["state"]) == (0, "success")
        assert [len(numbers) for numbers in copied_of(made)] == list(COUNTS)
        assert copied_of(made) == [list(range(count)) for count in COUNTS]
        assert set_of(made) == READ


def judge_delivery(version: int, side: str, fault: Fault) -> None:
    """A slot of the sink writes with this fault: what it returns is written, and the next attempt writes the rest."""
    print(f"transactions of version {version}, {side}: {fault}")
    frame = Frame(ROWS, version=version)
    with scripted(frame.brokers, frame.brokers) as (_, clusters):
        delivering = frame.open(clusters[0])
        delivering.settle(frame.due)
        spec = delivering.slot_specs()[0]
        frame.brokers.faults.append(fault)
        receipts = error = None
        try:
            # The first transaction has one batch, later ones have several in flight.
            receipts = frame.write(clusters[1], spec, chunk_bytes=CHUNK_BYTES)
        except FerryError as raised:
            error = raised
        assert not isinstance(error, Superseded), "there is no newer attempt"
        assert fault.happened, "the slot made no such request"
        frame.brokers.faults.clear()
        for partition, count in enumerate(ROWS):
            written = frame.written(partition)
            assert written == list(range(len(written))), "once, in order"
            assert receipts is None or len(written) == count, "what is claimed is written"
        if receipts is not None:
            assert {one.place: one.done for one in receipts} == frame.due
            assert [(one.first, one.last) for one in receipts] == [frame.offsets(number) for number in range(len(ROWS))]
        assert not frame.deliver(clusters[0]).already
        assert frame.is_whole()


def copied_of(made: World) -> list[list[int]]:
    """The source offsets of what a read_committed consumer gets of each partition of the copy, in its order."""
    made.b.deliver_markers()
    logs = [made.b.target.logs.get(f"a.{TOPIC}-{number}") for number in range(len(COUNTS))]
    return [[int(row(payload)[2] or b"") for _, payload in log.committed()] if log else [] for log in logs]


def set_of(made: World) -> dict[TopicPartition, int]:
    """Where the group is at the target."""
    return {place: offset for place, (offset, _) in made.b.groups.get("billing", {}).items()}


def writers_of(lane: Lane) -> set[int]:
    """The producer ids of all that the ledger has; -1: none, so that a batch that is sent again is written again."""
    payloads = [one.payload for one in lane.target.log(LEDGER).entries]
    return {identity(one.batch)[0] for one in payloads if isinstance(one, Part)}


def edge(which: int) -> Callable[[Asked], bool]:
    """Whether a request asks where logs begin (EARLIEST) or end (LATEST)."""
    return lambda asked: all(part.timestamp == which for topic in asked.request.topics for part in topic.partitions)


def copy_of(lane: Lane, plan: Plan) -> list[list[int]]:
    """Copy all slots of a plan; what the copy then has of each partition."""
    attempt = lane.begin(plan)
    for slot in plan.used_slots:
        lane.copy(attempt, slot)
    lane.target.deliver_markers()
    return [lane.copied(number) for number in range(len(SIZES))]


REQUESTS = {
    "commit": Request(judge=judge_copy, fault=Fault(api="EndTxn"), writes=True, most=4),
    "data": Request(judge=judge_copy, fault=Fault(api="Produce", topic=TOPIC), writes=True),
    "later data": Request(judge=judge_copy, fault=Fault(api="Produce", topic=TOPIC, skip=1), writes=True),
    "receipts": Request(judge=judge_copy, fault=Fault(api="Produce", topic=LEDGER), writes=True),
    "positions": Request(judge=judge_copy, fault=Fault(api="TxnOffsetCommit"), writes=True),
    "partitions": Request(judge=judge_copy, fault=Fault(api="AddPartitionsToTxn"), writes=True, versions=(1,)),
    "group": Request(judge=judge_copy, fault=Fault(api="AddOffsetsToTxn"), writes=True, versions=(1,)),
    "fencing": Request(judge=judge_copy, fault=Fault(api="InitProducerId"), writes=True),
    "all data": Request(judge=judge_copy, fault=Fault(api="Produce", topic=TOPIC), most=4, versions=(2,)),
    "all receipts": Request(judge=judge_copy, fault=Fault(api="Produce", topic=LEDGER), most=4, versions=(2,)),
    "coordinator": Request(judge=judge_copy, fault=Fault(api="FindCoordinator"), versions=(2,)),
    "ledger": Request(judge=judge_copy, fault=Fault(api="Fetch", topic=LEDGER), versions=(2,)),
    "look": Request(judge=judge_copy, fault=Fault(api="Fetch", topic=LEDGER, skip=2), versions=(2,)),
    "ends": Request(judge=judge_copy, fault=Fault(api="ListOffsets"), versions=(2,)),
    "epochs": Request(judge=judge_copy, fault=Fault(api="OffsetForLeaderEpoch"), versions=(2,)),
    "settings": Request(judge=judge_copy, fault=Fault(api="DescribeConfigs"), versions=(2,)),
    "source": Request(judge=judge_copy, fault=Fault(api="Fetch"), side="source", versions=(2,)),
    "source's whole answer": Request(
        judge=judge_copy, fault=Fault(api="Fetch", at=At.OUTER), side="source", versions=(2,)
    ),
    "ledger's whole answer": Request(
        judge=judge_copy, fault=Fault(api="Fetch", topic=LEDGER, at=At.OUTER), versions=(2,)
    ),
    "one partition's data": Request(judge=judge_whole, fault=Fault(api="Produce", topic=TOPIC, at=At.ONE), writes=True),
    "one position": Request(judge=judge_whole, fault=Fault(api="TxnOffsetCommit", at=At.ONE), writes=True),
    "one of the partitions": Request(
        judge=judge_whole, fault=Fault(api="AddPartitionsToTxn", topic=TOPIC, at=At.ONE), writes=True, versions=(1,)
    ),
    "one end": Request(judge=judge_whole, fault=Fault(api="ListOffsets", at=At.ONE), versions=(2,)),
    "run record": Request(judge=judge_opening, fault=Fault(api="Produce", topic=LEDGER), writes=True, versions=(2,)),
    "slot's fence": Request(judge=judge_opening, fault=Fault(api="InitProducerId", key=SLOT), writes=True),
    "driver's fence": Request(judge=judge_opening, fault=Fault(api="InitProducerId", key=OWN), writes=True),
    "barrier": Request(judge=judge_opening, fault=Fault(api="Produce", topic=LEDGER, key=OWN), writes=True),
    "barrier's partitions": Request(
        judge=judge_opening, fault=Fault(api="AddPartitionsToTxn", key=OWN), writes=True, versions=(1,)
    ),
    "barrier's commit": Request(judge=judge_opening, fault=Fault(api="EndTxn", key=OWN), writes=True),
    "plan": Request(judge=judge_opening, fault=Fault(api="Produce", topic=LEDGER, key=OWN, skip=1), writes=True),
    "plan's partitions": Request(
        judge=judge_opening, fault=Fault(api="AddPartitionsToTxn", key=OWN, skip=1), writes=True, versions=(1,)
    ),
    "seal": Request(judge=judge_opening, fault=Fault(api="EndTxn", key=OWN, skip=1), writes=True, most=2),
    "coordinators": Request(judge=judge_opening, fault=Fault(api="FindCoordinator"), versions=(2,)),
    "opening's ledger": Request(judge=judge_opening, fault=Fault(api="Fetch", topic=LEDGER), versions=(2,)),
    "ledger's creation": Request(
        judge=judge_run,
        fault=Fault(api="CreateTopics", topic=ledger_topic("a")),
        writes=True,
        codes=OF_TOPICS if IN_PART else CODES,
        versions=(2,),
    ),
    "topic's creation": Request(
        judge=judge_run,
        fault=Fault(api="CreateTopics", topic=f"a.{TOPIC}"),
        writes=True,
        codes=OF_TOPICS if IN_PART else CODES,
        versions=(2,),
    ),
    "group's offsets": Request(
        judge=judge_run,
        fault=Fault(api="OffsetCommit", key="billing"),
        writes=True,
        codes=OF_GROUPS if IN_PART else CODES,
        versions=(2,),
    ),
    "frame's fence": Request(judge=judge_delivery, fault=Fault(api="InitProducerId", key=SINK), writes=True),
    "frame's data": Request(judge=judge_delivery, fault=Fault(api="Produce", topic=FRAMES), writes=True),
    "frame's later data": Request(judge=judge_delivery, fault=Fault(api="Produce", topic=FRAMES, skip=1), writes=True),
    "frame's last data": Request(judge=judge_delivery, fault=Fault(api="Produce", topic=FRAMES, skip=4), writes=True),
    "frame's partitions": Request(
        judge=judge_delivery, fault=Fault(api="AddPartitionsToTxn", key=SINK), writes=True, versions=(1,)
    ),
    "frame's receipts": Request(
        judge=judge_delivery, fault=Fault(api="Produce", topic=DELIVERY_LEDGER, key=SINK), writes=True
    ),
    "frame's commit": Request(judge=judge_delivery, fault=Fault(api="EndTxn", key=SINK), writes=True, most=2),
    "frame's next commit": Request(judge=judge_delivery, fault=Fault(api="EndTxn", key=SINK, skip=1), writes=True),
    "frame's ledger": Request(judge=judge_delivery, fault=Fault(api="Fetch", topic=DELIVERY_LEDGER), versions=(2,)),
    "frame's look": Request(
        judge=judge_delivery, fault=Fault(api="Fetch", topic=DELIVERY_LEDGER, skip=2), versions=(2,)
    ),
    "frame's ends": Request(judge=judge_delivery, fault=Fault(api="ListOffsets"), versions=(2,)),
    "frame's settings": Request(judge=judge_delivery, fault=Fault(api="DescribeConfigs"), versions=(2,)),
    "frame's coordinator": Request(judge=judge_delivery, fault=Fault(api="FindCoordinator"), versions=(2,)),
    "rows": Request(judge=judge_rows, fault=Fault(api="Produce", topic=TOPIC), writes=True),
    "later rows": Request(judge=judge_rows, fault=Fault(api="Produce", topic=TOPIC, skip=1), writes=True),
    "rows' receipts": Request(judge=judge_rows, fault=Fault(api="Produce", topic=LEDGER), writes=True),
    "rows' positions": Request(judge=judge_rows, fault=Fault(api="TxnOffsetCommit"), writes=True),
    "rows' partitions": Request(judge=judge_rows, fault=Fault(api="AddPartitionsToTxn"), writes=True, versions=(1,)),
    "rows' group": Request(judge=judge_rows, fault=Fault(api="AddOffsetsToTxn"), writes=True, versions=(1,)),
    "rows' fencing": Request(judge=judge_rows, fault=Fault(api="InitProducerId"), writes=True),
    "rows' commit": Request(judge=judge_rows, fault=Fault(api="EndTxn"), writes=True, most=2),
    "rows' ledger": Request(judge=judge_rows, fault=Fault(api="Fetch", topic=LEDGER), versions=(2,)),
    "rows' settings": Request(judge=judge_rows, fault=Fault(api="DescribeConfigs"), versions=(2,)),
    "driver's look": Request(judge=judge_opening, fault=Fault(api="Fetch", topic=LEDGER, skip=2), versions=(2,)),
    "append's producer": Request(
        judge=judge_opening, fault=Fault(api="InitProducerId", only=lambda asked: not asked.keys), versions=(2,)
    ),
    "next slot's fence": Request(judge=judge_opening, fault=Fault(api="InitProducerId", key=NEXT_SLOT), writes=True),
    "ledger's start": Request(
        judge=judge_opening, fault=Fault(api="ListOffsets", topic=LEDGER, only=edge(EARLIEST)), versions=(2,)
    ),
    "ledger's end": Request(
        judge=judge_opening, fault=Fault(api="ListOffsets", topic=LEDGER, only=edge(LATEST)), versions=(2,)
    ),
}


TABLE = Table(REQUESTS)


@each(TABLE.coded)
def test_an_error_code(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.lost)
def test_no_answer(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.late)
def test_a_late_answer(case: Case) -> None:
    TABLE.judge(case)
