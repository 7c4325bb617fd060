"""Whatever the driver of a delivery is answered: a frame is written once, and what it says is true.

Each kind of request of an attempt that opens, settles what the batch is, and closes it, meets each of Kafka's error
codes, before and after it was carried out, a lost answer, and a late one. What its slots meet is in
`test_every_answer.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferry.errors import FerryError, Superseded
from ferry.features.sink.acts.ids import DRIVER, delivery_writer
from tests.pure.scripted.delivery import APPLICATION, DELIVERY_LEDGER, TOPIC, Frame
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.table import Case, Request, Table, each
from tests.pure.scripted.wire import scripted
from tests.tiers import IN_PART

ROWS = (5, 3)
OWN, SLOT = delivery_writer(APPLICATION, DRIVER), delivery_writer(APPLICATION, 0)


def judge(version: int, _side: str, fault: Fault) -> None:
    """An attempt with this fault, and others without it: the frame is there once, whatever the first one said."""
    print(f"transactions of version {version}: {fault}")
    frame = Frame(ROWS, version=version)
    with scripted(frame.brokers, frame.brokers) as (_, (first, second)):
        frame.brokers.faults.append(fault)
        said = error = None
        try:
            said = frame.deliver(first)
        except FerryError as raised:
            error = raised
            first.loop.run(frame.attempt.leave)
        assert not isinstance(error, Superseded), "there is no newer attempt"
        assert fault.happened, "the attempt made no such request"
        frame.brokers.faults.clear()
        for partition in range(len(ROWS)):
            written = frame.written(partition)
            assert written == list(range(len(written))), "once, in order"
        if said is not None:
            assert not said.already
            assert frame.is_whole()
        again = frame.deliver(second)
        assert again.already or said is None, "what is claimed is recorded"
        assert frame.is_whole()
        if not (IN_PART and again.already):
            assert frame.deliver(second).already
            assert frame.is_whole()


def of_driver(api: str, skip: int = 0) -> Request:
    """A request of the driver's transactions: of the fencing's record, of what the batch is, of its end."""
    return Request(judge=judge, fault=Fault(api=api, key=OWN, skip=skip), writes=True)


TABLE = Table(
    {
        "attempt": Request(judge=judge, fault=Fault(api="Produce", topic=DELIVERY_LEDGER), writes=True, versions=(2,)),
        "slot's fence": Request(judge=judge, fault=Fault(api="InitProducerId", key=SLOT), writes=True),
        "driver's fence": Request(judge=judge, fault=Fault(api="InitProducerId", key=OWN), writes=True),
        "fencing": of_driver("Produce"),
        "fencing's commit": of_driver("EndTxn"),
        "batch": of_driver("Produce", 1),
        "batch's commit": of_driver("EndTxn", 1),
        "end": of_driver("Produce", 2),
        "end's commit": of_driver("EndTxn", 2),
        "fencing's partition": replace(of_driver("AddPartitionsToTxn"), versions=(1,)),
        "end's partition": replace(of_driver("AddPartitionsToTxn", 2), versions=(1,)),
        "ledger": Request(judge=judge, fault=Fault(api="Fetch", topic=DELIVERY_LEDGER), versions=(2,)),
        "look": Request(judge=judge, fault=Fault(api="Fetch", topic=DELIVERY_LEDGER, skip=1), versions=(2,)),
        "ends": Request(judge=judge, fault=Fault(api="ListOffsets"), versions=(2,)),
        "settings": Request(judge=judge, fault=Fault(api="DescribeConfigs"), versions=(2,)),
        "coordinator": Request(judge=judge, fault=Fault(api="FindCoordinator"), versions=(2,)),
        "ledger's topic": Request(
            judge=judge, fault=Fault(api="Metadata", topic=DELIVERY_LEDGER, at=At.LISTED), versions=(2,)
        ),
        "topics": Request(judge=judge, fault=Fault(api="Metadata", topic=TOPIC, at=At.LISTED), versions=(2,)),
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
