"""Whatever the second run of a lane is answered: nothing is lost, doubled or claimed, and the next attempt copies on.

Its receipts name leader epochs that have ended since at both clusters. Each kind of request that a first run does not
make meets each of Kafka's error codes, before and after it was carried out, a lost answer, and a late one: those about
what is at the source and the target since, of an attempt that begins, and of a writer that leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

import pytest

from ferry.errors import FerryError, Refused, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.fetch.offsets import EARLIEST, LATEST
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.ledger.codec import decode_key
from ferry.model import Record
from ferry.protocol.names import position_group
from ferry.protocol.slot import SlotProgress
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.batches import row
from tests.pure.scripted.faults import Asked, Fault
from tests.pure.scripted.lane import Lane, at_work, place
from tests.pure.scripted.table import Case, Request, Table, each
from tests.pure.scripted.test_every_answer import LEDGER, SIZES, SLOT, edge, judge_copy, writers_of

STRANGER = build_batch([Record(key=b"0", value=b"77")], 0, ProducerIdentity())
OUTSIDE = Fault(api="Fetch", code=codes.OFFSET_OUT_OF_RANGE)
"""A leader that takes an offset of its log for one that it does not have; it is asked for the log's edges."""

WAITED_S = 30.0
"""How long Ferry waits for an answer: Kafka's default of `request.timeout.ms`."""


@cache
def begun(version: int) -> bytes:
    """A lane whose second run is open; leaders have another epoch since the first run."""
    lane = Lane(SIZES, version=version)
    with at_work(lane):
        lane.most_records = 4
        lane.copy(lane.begin(lane.open("first")))
        lane.most_records = None
    for brokers in (lane.source, lane.target):
        for number in range(len(SIZES)):
            brokers.move_leader(place(number), brokers.leaders[place(number)])
    with at_work(lane):
        lane.open("second")
    return lane.kept()


judge_second = partial(judge_copy, kept=begun)
judge_outside = partial(judge_second, also=(OUTSIDE,))


def judge_stranger(version: int, _side: str, fault: Fault) -> None:
    """A stranger has written since the plan; with this fault its partition is left as it is, and named.

    A leader that answers later than Ferry waits may be named instead.
    """
    print(f"transactions of version {version}: {fault}")
    lane = Lane(SIZES, version=version)
    lane.restore(begun(version))
    with at_work(lane):
        assert lane.plan is not None
        attempt = lane.begin(lane.plan)
        before = lane.copied(0)
        lane.target.append(TOPIC, STRANGER)
        lane.target.faults.append(fault)
        result = SlotProgress()
        raised: FerryError | None = None
        try:
            lane.copy(attempt, result=result)
        except FerryError as error:
            raised = error
        assert fault.happened, "the copy made no such request"
        refused = {one: refusal.code for one, refusal in result.refusals.items()}
        is_given_up = fault.late_s > WAITED_S and isinstance(raised, Unreachable)
        assert is_given_up or refused.get(place(), "") in {"target.unseen", "foreign.since-plan"}
        assert lane.copied(0) == [*before, 77], "nothing is written after a stranger's record"


def judge_attempt(version: int, _side: str, fault: Fault) -> None:
    """A copy step begins with this fault: the number that it says is its record's, and it, or the next one, copies."""
    print(f"transactions of version {version}: {fault}")
    lane = Lane(SIZES, version=version)
    lane.restore(begun(version))
    with at_work(lane):
        assert lane.plan is not None
        lane.target.faults.append(fault)
        attempt = None
        with suppress(FerryError):
            attempt = lane.begin(lane.plan)
        assert fault.happened, "the attempt made no such request"
        lane.target.faults.clear()
        if attempt is None:
            attempt = lane.begin(lane.plan)
        _, key, _ = row(lane.target.log(LEDGER).entries[attempt.number].payload)
        assert decode_key(key)[0] == "attempt"
        assert -1 not in writers_of(lane), "what is sent again is written once"
        assert lane.copy(attempt).retries == 0
        assert lane.is_whole()


def judge_leaving(version: int, _side: str, fault: Fault) -> None:
    """A slot that may not keep positions ends its transaction, where the coordinator is only busy or elsewhere."""
    print(f"transactions of version {version}: {fault}")
    lane = Lane(SIZES, version=version)
    lane.restore(begun(version))
    with at_work(lane):
        assert lane.plan is not None
        attempt = lane.begin(lane.plan)
        lane.target.faults += [fault, Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED)]
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert fault.happened, "the writer made no such request"
        if fault.code in codes.COORDINATOR_MOVED or fault.lost:
            assert SLOT not in lane.target.target.open_transactions(), "no reader waits for its timeout"
        lane.target.faults.clear()
    with at_work(lane):  # the answer may be late
        lane.copy(lane.begin(lane.plan))
        assert lane.is_whole()


def up_to_stable(asked: Asked) -> bool:
    """Whether the last stable offsets are asked for."""
    return bool(asked.request.isolation_level == READ_COMMITTED)


def of_target(api: str, only: Callable[[Asked], bool] | None = None) -> Request:
    """A question about what the target's logs have since the plan, where a stranger has written.

    `make quick` has one code of each in `test_copies.py`.
    """
    return Request(judge=judge_stranger, fault=Fault(api=api, topic=TOPIC, only=only), versions=(2,), quick=False)


GROUP = position_group(FLOW, LANE)
TABLE = Table(
    {
        "stable ends": of_target("ListOffsets", only=up_to_stable),
        "ends": of_target("ListOffsets", only=lambda asked: not up_to_stable(asked)),
        "stranger": of_target("Fetch"),
        "target's epochs": Request(judge=judge_second, fault=Fault(api="OffsetForLeaderEpoch"), versions=(2,)),
        "source's epochs": Request(
            judge=judge_second, fault=Fault(api="OffsetForLeaderEpoch"), side="source", versions=(2,)
        ),
        "source's start": Request(
            judge=judge_outside, fault=Fault(api="ListOffsets", only=edge(EARLIEST)), side="source", versions=(2,)
        ),
        "source's end": Request(
            judge=judge_outside, fault=Fault(api="ListOffsets", only=edge(LATEST)), side="source", versions=(2,)
        ),
        "positions' coordinator": Request(
            judge=judge_second, fault=Fault(api="FindCoordinator", key=GROUP), versions=(2,)
        ),
        "attempt's producer": Request(
            judge=judge_attempt, fault=Fault(api="InitProducerId", only=lambda asked: not asked.keys), versions=(2,)
        ),
        "attempt": Request(judge=judge_attempt, fault=Fault(api="Produce", topic=LEDGER), writes=True, versions=(2,)),
        "own transaction": Request(judge=judge_leaving, fault=Fault(api="DescribeTransactions")),
        "own end": Request(
            judge=judge_leaving,
            fault=Fault(api="InitProducerId", only=lambda asked: asked.request.producer_id >= 0),
            writes=True,
        ),
    }
)


@each(TABLE.coded)
def test_an_error_code(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.lost)
def test_no_answer(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.late)
def test_a_late_answer(case: Case) -> None:
    TABLE.judge(case)
