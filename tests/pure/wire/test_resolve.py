"""The ledger is read to its very end and judged by its own markers: committed, aborted or open."""

from hypothesis import given

from ferry.model import Fate
from ferry.wire.resolve import Resolver
from tests.pure.wire.captured import captured
from tests.pure.wire.logs import PLAIN, Log, Step, cleaned_marker, histories, log_of

FATES = {True: Fate.COMMITTED, False: Fate.ABORTED, None: Fate.OPEN}


def resolved(log: Log) -> list[tuple[int, Fate]]:
    resolver = Resolver()
    for batch in log.batches:
        resolver.feed(batch)
    return [(record.offset, record.fate) for record in resolver.records()]


@given(histories.map(log_of))
def test_every_record_has_the_fate_of_its_producers_next_marker(log: Log) -> None:
    assert resolved(log) == [
        (offset, FATES[log.is_committed(index)])
        for index, (batch, step) in enumerate(zip(log.batches, log.steps, strict=True))
        if not step.is_marker
        for offset in range(batch.base_offset, batch.next_offset)
    ]


def test_a_crashed_neighbours_open_transaction_hides_nobody_elses_receipt() -> None:
    neighbour, ours = Step(producer=1, records=1), Step(producer=2, records=1)
    log = log_of([neighbour, ours, Step(producer=2, records=0), Step(producer=PLAIN, records=1)])
    assert resolved(log) == [(0, Fate.OPEN), (1, Fate.COMMITTED), (3, Fate.COMMITTED)]


def test_a_marker_that_the_cleaner_emptied_decides_nothing() -> None:
    """All records of its transaction are gone by then. With transactions of version 2 a ledger has such ones."""
    resolver = Resolver()
    for batch in (cleaned_marker(4, 2), *log_of([Step(producer=2, records=1)]).batches, cleaned_marker(5, 2)):
        resolver.feed(batch)
    assert [record.fate for record in resolver.records()] == [Fate.OPEN]


def test_keys_values_and_producers_come_through() -> None:
    resolver = Resolver()
    for batch in log_of([Step(producer=2, records=2)]).batches:
        resolver.feed(batch)
    assert [(record.key, record.value, record.producer_id) for record in resolver.records()] == [
        (b"0", b"of 2", 2),
        (b"1", b"of 2", 2),
    ]


def test_the_committed_records_of_a_golden_log_are_those_that_librdkafka_reads_committed() -> None:
    golden, resolver = captured("transactions"), Resolver()
    for batch in golden.batches:
        resolver.feed(batch)
    records = list(resolver.records())
    assert [(r.offset, r.key, r.value) for r in records if r.fate is Fate.COMMITTED] == [
        (offset, key, value) for offset, _, key, value, _ in golden.committed
    ]
    assert [(r.offset, r.key, r.value) for r in records] == [
        (offset, key, value) for offset, _, key, value, _ in golden.uncommitted
    ]
