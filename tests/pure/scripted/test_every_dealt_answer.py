"""Whatever a slot of repartitioned records is answered: no record or dead letter is lost, doubled or claimed.

Each kind of request of a slot whose records get other partitions, and some of which become dead letters in the same
transaction, meets each of Kafka's error codes, before and after it was carried out, a lost answer, and a late one.
"""

from __future__ import annotations

from ferry.errors import FerryError
from ferry.kafka.connect import codes
from ferry.ledger.unit_codec import narrowed_units
from ferry.protocol.slot import SlotProgress
from tests.pure.protocol.world import LANE, TOPIC
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.lane import Lane
from tests.pure.scripted.row_lane import LETTERS, Dealt
from tests.pure.scripted.table import Case, Request, Table, each
from tests.pure.scripted.test_every_answer import LEDGER, judge_cost
from tests.pure.scripted.wire import scripted

SIZES = ((3, 2), (2, 2))
PARTITIONS = 2


def judge(version: int, _side: str, fault: Fault) -> None:
    """One copy with this fault, and another run without it where something is missing; what each says is true."""
    print(f"transactions of version {version}: {fault}")
    lane = Lane(SIZES, version=version)
    dealt = Dealt(lane, PARTITIONS)
    with scripted(lane.source, lane.target) as (_, clusters):
        lane.connect(clusters)
        plan = lane.open("r")
        assert len(plan.dealt) == PARTITIONS
        attempt = lane.begin(plan)
        lane.target.faults.append(fault)
        fences = lane.target.count("InitProducerId")
        result, error = SlotProgress(), None
        try:
            lane.copy(attempt, result=result, chunk_bytes=1)
        except FerryError as raised:
            error = raised
        assert fault.happened, "the copy made no such request"
        judge_cost(fault, result.retries, lane.target.count("InitProducerId") - fences)
        lane.target.faults.clear()
        lane.target.deliver_markers()
        kept = {one.target: one for one in narrowed_units(lane.view(), LANE, None, None)}
        counted = narrowed_units(lane.view(), LANE, None, None)
        for one in result.receipts:
            assert all(mine <= there for mine, there in zip(one.ends, kept[one.target].ends, strict=True))
        letters = dealt.got(LETTERS)
        assert len(letters) == sum(one.dead_letters for one in counted), "letters are what receipts say"
        assert len(set(letters)) == len(letters), "each letter is there once"
        for number in range(PARTITIONS):
            there = dealt.got(TOPIC, number)
            assert there == dealt.wanted(number)[: len(there)], "once, in order"
            assert len(there) == sum(one.records for one in counted if one.target.partition == number)
        named = result.refusals or result.time_over or error is not None
        assert dealt.is_whole() or named, "what is missing is named"
        if not dealt.is_whole():
            lane.copy(lane.begin(lane.open("again")), chunk_bytes=1)
        lane.target.deliver_markers()
        assert dealt.is_whole()


TABLE = Table(
    {
        "commit": Request(judge=judge, fault=Fault(api="EndTxn"), writes=True),
        "data": Request(judge=judge, fault=Fault(api="Produce", topic=TOPIC), writes=True),
        "letter": Request(judge=judge, fault=Fault(api="Produce", topic=LETTERS), writes=True),
        "all letters": Request(judge=judge, fault=Fault(api="Produce", topic=LETTERS, times=99), versions=(2,)),
        "receipts": Request(judge=judge, fault=Fault(api="Produce", topic=LEDGER), writes=True),
        "partitions": Request(judge=judge, fault=Fault(api="AddPartitionsToTxn"), writes=True, versions=(1,)),
        "letter's partition": Request(
            judge=judge, fault=Fault(api="AddPartitionsToTxn", topic=LETTERS), writes=True, versions=(1,)
        ),
        "fencing": Request(judge=judge, fault=Fault(api="InitProducerId"), writes=True),
        "ledger": Request(judge=judge, fault=Fault(api="Fetch", topic=LEDGER), versions=(2,)),
        "letters' topic": Request(judge=judge, fault=Fault(api="Metadata", topic=LETTERS, at=At.LISTED), versions=(2,)),
        "settings": Request(judge=judge, fault=Fault(api="DescribeConfigs"), versions=(2,)),
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


def test_a_topic_of_letters_that_is_refused_stops_its_partitions_alone() -> None:
    """The records between dead letters are not copied past them."""
    lane = Lane(SIZES)
    dealt = Dealt(lane, PARTITIONS)
    with scripted(lane.source, lane.target) as (_, clusters):
        lane.connect(clusters)
        fault = Fault(api="Produce", topic=LETTERS, code=codes.TOPIC_AUTHORIZATION_FAILED, times=99)
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(fault)
        result = lane.copy(attempt)
        assert result.refusals
        assert not dealt.got(LETTERS)
    for number in range(PARTITIONS):
        assert dealt.got(TOPIC, number) == dealt.wanted(number)[: len(dealt.got(TOPIC, number))]
