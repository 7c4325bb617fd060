"""Whatever one request is answered: nothing is lost, doubled or claimed, and the next attempt copies the rest.

Each kind of request of the copy path meets each of Kafka's error codes, before and after it was carried out, a lost
answer, and one that comes late, in transactions of version 1 and 2. Where tables run in part, each code is met in one
of a request's cases, and one of three where a request has a single case.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product

import pytest

from ferry.errors import FerryError
from ferry.net.connect import codes
from ferry.net.write.ledger import ledger_topic
from ferry.run.copy.slot import SlotResult
from tests.pure.protocol.world import FLOW, TOPIC
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane
from tests.pure.scripted.wire import scripted
from tests.tiers import share

LEDGER = ledger_topic(FLOW.source)
CODES = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)} - {codes.NONE}
FEW = {
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.REQUEST_TIMED_OUT,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    codes.TOPIC_AUTHORIZATION_FAILED,
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
    codes.INVALID_PRODUCER_EPOCH,
    codes.INVALID_TXN_STATE,
    codes.CONCURRENT_TRANSACTIONS,
    codes.KAFKA_STORAGE_ERROR,
}
"""Of each group in `ferry.net.connect.codes` one or two."""
SIZES = ((3, 2), (1, 2))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A kind of request. `writes`: it changes something, so it matters whether it was carried out."""

    fault: Fault
    side: str = "target"
    writes: bool = False
    codes: Collection[int] = frozenset(FEW)
    versions: tuple[int, ...] = (1, 2)


REQUESTS = {
    "commit": Request(fault=Fault(api="EndTxn"), writes=True, codes=CODES),
    "data": Request(fault=Fault(api="Produce", topic=TOPIC), writes=True),
    "later data": Request(fault=Fault(api="Produce", topic=TOPIC, skip=1), writes=True),
    "receipts": Request(fault=Fault(api="Produce", topic=LEDGER), writes=True),
    "positions": Request(fault=Fault(api="TxnOffsetCommit"), writes=True),
    "partitions": Request(fault=Fault(api="AddPartitionsToTxn"), writes=True, versions=(1,)),
    "group": Request(fault=Fault(api="AddOffsetsToTxn"), writes=True, versions=(1,)),
    "fencing": Request(fault=Fault(api="InitProducerId"), writes=True),
    "all data": Request(fault=Fault(api="Produce", topic=TOPIC), codes=CODES, versions=(2,)),
    "all receipts": Request(fault=Fault(api="Produce", topic=LEDGER), codes=CODES, versions=(2,)),
    "coordinator": Request(fault=Fault(api="FindCoordinator"), versions=(2,)),
    "ledger": Request(fault=Fault(api="Fetch", topic=LEDGER), versions=(2,)),
    "look": Request(fault=Fault(api="Fetch", topic=LEDGER, skip=2), versions=(2,)),
    "ends": Request(fault=Fault(api="ListOffsets"), versions=(2,)),
    "epochs": Request(fault=Fault(api="OffsetForLeaderEpoch"), versions=(2,)),
    "settings": Request(fault=Fault(api="DescribeConfigs"), versions=(2,)),
    "source": Request(fault=Fault(api="Fetch"), side="source", versions=(2,)),
}


def cases(one: Request) -> list[tuple[int, bool]]:
    """Versions, and whether the request is carried out."""
    return list(product(one.versions, (False, True) if one.writes else (False,)))


CASES = [(name, *case) for name, one in REQUESTS.items() for case in cases(one)]


def judge(version: int, side: str, fault: Fault) -> None:
    """One copy with this fault, and another run without it where something is missing; what each says is true."""
    print(f"transactions of version {version}, {side}: {fault}")
    lane = Lane(SIZES, version=version)
    with scripted(lane.source, lane.target) as (_, clusters):
        lane.connect(clusters)
        plan = lane.open("r")
        attempt = lane.begin(plan)
        getattr(lane, side).faults.append(fault)
        result, error = SlotResult(), None
        try:
            lane.copy(attempt, result=result, chunk_bytes=1)
        except FerryError as raised:
            error = raised
        assert fault.happened, "the copy made no such request"
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


@pytest.mark.parametrize(("name", "version", "applied"), CASES)
def test_an_error_code(name: str, version: int, applied: bool) -> None:
    one = REQUESTS[name]
    known = cases(one)
    for code in share(sorted(one.codes), known.index((version, applied)), max(2 * len(known), 3)):
        judge(version, one.side, replace(one.fault, code=code, applied=applied))


@pytest.mark.parametrize(("name", "version", "applied"), CASES)
def test_no_answer(name: str, version: int, applied: bool) -> None:
    one = REQUESTS[name]
    known = cases(one)
    for times in share((1, 3), known.index((version, applied)), min(2, len(known))):
        judge(version, one.side, replace(one.fault, lost=True, applied=applied, times=times))


@pytest.mark.parametrize(("name", "version"), [(name, version) for name, version, applied in CASES if not applied])
def test_a_late_answer(name: str, version: int) -> None:
    one = REQUESTS[name]
    # The second comes after the sender has given it up.
    for late_s in share((0.2, 45.0), version, len(one.versions)):
        judge(version, one.side, replace(one.fault, late_s=late_s))
