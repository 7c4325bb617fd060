"""What an application's ledger says of a batch, record by record, and what stands against a commit."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from ferry.config.flow.clients import kafka_python_options
from ferry.errors import BadInput, Refused
from ferry.features.sink.acts.ids import DeliverySpec
from ferry.features.sink.rules import codec
from ferry.features.sink.rules.batch_state import (
    KEPT_BATCHES,
    BatchState,
    expired,
    foreign_record,
    last_known,
    other_content,
    standing,
    written,
)
from ferry.features.sink.rules.dealing import first_numbers, slot_of
from ferry.ledger.codec import encode
from ferry.model import Fate, LedgerRecord, Record, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, KnownBatches, Settled, TargetShape, WrittenPart
from tests.golden import Golden

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SETTLED = Settled(topics={"t": TargetShape(partitions=2, topic_id="id")}, due={T0: Due(3, 2**64 - 1), T1: Due(1, 7)})


def receipt(place: TopicPartition = T0, records: int = 2) -> DeliveryReceipt:
    return DeliveryReceipt(place=place, done=Due(records, 5), first=10, last=14, slot=0, generation=0)


def log(*records: Record | tuple[Record, Fate]) -> list[LedgerRecord]:
    found = []
    for offset, one in enumerate(records):
        record, fate = one if isinstance(one, tuple) else (one, Fate.COMMITTED)
        found.append(LedgerRecord(offset=offset, key=record.key, value=record.value, fate=fate, producer_id=1))
    return found


def attempt(name: str = "a", slots: int = 2) -> Record:
    return codec.attempt_record(name, 1, slots, 0, "host")


def test_a_batch_is_what_its_committed_records_say() -> None:
    found = standing(
        log(
            attempt(),
            codec.settled_record(1, SETTLED),
            codec.settled_record(2, Settled(topics={})),
            codec.receipt_record(1, receipt(records=1)),
            codec.receipt_record(1, receipt(records=2)),
            (codec.receipt_record(1, receipt(records=3)), Fate.ABORTED),
            codec.receipt_record(2, receipt(T1)),
            Record(key=b"of somebody else", value=b"{}"),
        ),
        1,
        "here",
    )
    assert found.settled == SETTLED
    assert found.receipts == {T0: receipt(records=2)}
    assert (found.delivered, found.first_open, found.newest, found.slots) == (None, None, 0, 2)


def test_a_batch_that_is_written_whole_keeps_what_it_was() -> None:
    last = [receipt(T0, 3), receipt(T1, 1)]
    records = [
        attempt(),
        codec.settled_record(1, SETTLED),
        codec.receipt_record(1, last[0]),
        codec.delivered_record(1, SETTLED, last, 9),
        codec.tombstone([codec.SETTLED, 1]),
        codec.tombstone([codec.RECEIPT, 1, *T0]),
    ]
    compacted = [records[0], records[3]]
    offsets = {T0: (10, 14), T1: (10, 14)}
    for some in (records, compacted):
        found = standing(log(*some), 1, "here")
        assert (found.settled, found.delivered, found.batches) == (SETTLED, offsets, {1})
    told = written("app", 1, SETTLED, offsets, already=True)
    assert told.parts == (WrittenPart("t", 0, 10, 14, 3), WrittenPart("t", 1, 10, 14, 1))
    assert told.records == 4


def test_a_batch_that_is_forgotten_is_so_before_it_is_compacted_away() -> None:
    records = [codec.delivered_record(1, SETTLED, [receipt(T0, 3), receipt(T1, 1)], 9)]
    records += [codec.tombstone([codec.DELIVERED, 1]), codec.forgotten_record(1)]
    for some in (records, records[1:], records[2:]):
        found = standing(log(*some), 1, "here")
        assert (found.settled, found.delivered, found.batches, found.forgotten) == (None, None, set(), 1)


def test_all_slots_that_anybody_had_are_fenced() -> None:
    records = [attempt("a", 9), codec.tombstone([codec.ATTEMPT, "a"]), codec.fenced_record(0, 9, None), attempt("b", 2)]
    for some in (records, records[1:]):
        assert standing(log(*some), 1, "here").slots == 9
    assert standing(log(*records), 1, "here").attempts == {"b": 3}


def test_what_is_undecided_is_told_but_not_what_is_known_to_be_committed() -> None:
    of_others = (codec.receipt_record(2, receipt(T1)), Fate.OPEN)
    records = log(attempt(), (codec.settled_record(1, SETTLED), Fate.OPEN), of_others)
    assert (standing(records, 1, "here").first_open, standing(records, 1, "here").undecided) == (1, set())
    assert standing(records, 2, "here").undecided == {T1}
    assert standing(records, 1, "here").settled is None
    assert standing(records, 1, "here", own={1}).settled == SETTLED


class History:
    """A ledger as attempts write it, some of which are overtaken, broken off, or have an open transaction."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.records: list[LedgerRecord] = []

    def write(self, *records: Record, fate: Fate = Fate.COMMITTED) -> int:
        for one in records:
            self.records.append(
                LedgerRecord(offset=len(self.records), key=one.key, value=one.value, fate=fate, producer_id=1)
            )
        return len(self.records) - 1

    def attempt(self, batch: int) -> None:
        """As `ferry.features.sink.acts.attempt` does, as far as it comes."""
        stop = self.random.choice([0, 1, 2, 3, 3, 3, 3, 3])
        slots = self.random.randint(1, 5)
        generation = self.write(codec.attempt_record(str(len(self.records)), batch, slots, 0, "host"))
        before = standing(self.records, batch, "here")
        if self.random.random() < 0.2:  # another one has begun meanwhile
            self.write(codec.attempt_record(str(len(self.records)), batch, slots, 0, "other"))
        if stop < 1:
            return
        old = [name for name, at in before.attempts.items() if at < generation]
        fate = self.random.choice([Fate.COMMITTED, Fate.COMMITTED, Fate.ABORTED])
        self.write(
            codec.fenced_record(generation, before.slots, before.known(generation)),
            *(codec.tombstone([codec.ATTEMPT, name]) for name in old),
            fate=fate,
        )
        if fate is Fate.ABORTED or stop < 2 or before.delivered is not None or batch <= before.forgotten:
            return
        if before.settled is None:
            self.write(codec.settled_record(batch, SETTLED))
        for place in (T0, T1):
            self.write(codec.receipt_record(batch, receipt(place)), fate=self.random.choice([fate, Fate.ABORTED]))
        if stop < 3:
            return
        over = sorted({*before.batches, batch})[:-4]
        self.write(
            codec.delivered_record(batch, SETTLED, [receipt(T0, 3), receipt(T1, 1)], 9),
            codec.tombstone([codec.SETTLED, batch]),
            *(codec.tombstone([codec.RECEIPT, batch, *place]) for place in (T0, T1)),
            *(codec.tombstone([codec.DELIVERED, one]) for one in over),
            *([codec.forgotten_record(max(over))] if over else []),
        )

    def leave_one_open(self) -> None:
        """A slot's transaction that is not decided yet; the records before it are."""
        self.write(codec.receipt_record(3, receipt()), fate=Fate.OPEN)


def shown(found: BatchState) -> tuple[object, ...]:
    """All that an attempt goes by; older attempts' names are only of use to those who take them away."""
    return (
        found.newest, found.slots, found.settled, found.receipts, found.delivered,
        found.batches, found.begun, found.forgotten, found.undecided, found.first_open,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else ()) for seed in range(10)])
def test_what_is_read_on_from_the_last_attempt_is_as_the_whole_ledger_says(seed: int) -> None:
    random = Random(seed)
    history = History(random)
    read_on = 0
    for number in range(30):
        history.attempt(max(0, number // 2 - random.choice([0, 0, 0, 1, 4])))
        if number == 25 and seed % 2:
            history.leave_one_open()
        known = last_known(history.records, "here")
        if known is None:
            continue
        since = [record for record in history.records if record.offset >= known.upto]
        for batch in random.sample(range(20), 4):
            if batch not in known.written and batch not in known.begun:
                read_on += len(since)
                whole = standing(history.records, batch, "here")
                assert shown(standing(since, batch, "here", before=known)) == shown(whole)
                end = whole.upto(whole.newest)
                again = [record for record in history.records if record.offset >= end]
                assert shown(standing(again, batch, "here", before=whole)) == shown(whole)
    assert read_on


def test_what_an_attempt_knew_survives_its_record() -> None:
    known = KnownBatches(upto=7, written=frozenset({1, 2, 3, 9, 2**40}), begun=frozenset({4}), forgotten=0)
    (record,) = log(codec.fenced_record(7, 2, known))
    assert last_known([record], "here") == known
    assert len(record.value or b"") < 200
    assert last_known(log(codec.fenced_record(7, 2, None)), "here") is None
    assert BatchState(begun=set(range(KEPT_BATCHES + 1))).known(7) is None


def test_records_of_other_batches_are_not_even_parsed() -> None:
    broken = b"no json at all"
    keys = [[codec.SETTLED, 2], [codec.RECEIPT, 2, "t", 0], [codec.DELIVERED, 3]]
    found = standing(log(attempt(), *(Record(key=encode(key), value=broken) for key in keys)), 1, "here")
    assert (found.batches, found.begun, found.newest) == ({3}, {2}, 0)


def test_a_record_of_a_newer_ferry_is_refused(golden: Golden) -> None:
    with pytest.raises(Refused) as caught:
        standing(log(Record(key=encode(["settled", 1]), value=encode({"v": 2}))), 1, "here")
    golden(caught.value)


@pytest.mark.parametrize(
    ("record", "fate", "stands"),
    [
        (attempt("b"), Fate.COMMITTED, True),
        (codec.receipt_record(1, receipt(T0)), Fate.COMMITTED, True),
        (codec.receipt_record(1, receipt(T0)), Fate.OPEN, True),
        (codec.receipt_record(1, receipt(T0)), Fate.ABORTED, False),
        (codec.receipt_record(1, receipt(T1)), Fate.COMMITTED, False),
        (codec.receipt_record(2, receipt(T0)), Fate.COMMITTED, False),
        (codec.tombstone([codec.ATTEMPT, "a"]), Fate.COMMITTED, False),
        (Record(key=b"junk", value=b"{}"), Fate.COMMITTED, False),
        (Record(key=encode([codec.RECEIPT]), value=b"{}"), Fate.COMMITTED, False),
        (Record(key=encode([codec.RECEIPT, 1, "t"]), value=b"{}"), Fate.COMMITTED, False),
    ],
    ids=[
        "a newer attempt",
        "another receipt",
        "an open receipt",
        "an aborted one",
        "of another partition",
        "of another portion",
        "a tombstone",
        "junk",
        "a receipt of nothing",
        "a receipt without a partition",
    ],
)
def test_what_stands_against_a_commit(record: Record, fate: Fate, stands: bool, golden: Golden) -> None:
    seen = [LedgerRecord(offset=5, key=record.key, value=record.value, fate=fate, producer_id=1)]
    found = foreign_record(seen, 1, 4, frozenset(), {T0})
    assert (found is not None) is stands
    if stands:
        golden(found)
    assert foreign_record(seen, 1, 4, frozenset({5}), {T0}) is None, "what is one's own"


def test_other_content_is_named_by_partition(golden: Golden) -> None:
    assert other_content("it", SETTLED.due, dict(SETTLED.due)) is None
    many = {TopicPartition("t", number): Due(number + 1, 1) for number in range(9)}
    told = other_content("it", many, {**many, T0: Due(1, 2), T1: Due(5, 1), TopicPartition("u", 0): Due(1, 1)}) or ""
    golden(told)
    assert "and 6 partitions more" in (other_content("it", many, {}) or "")


def test_the_lowest_batches_are_forgotten() -> None:
    assert expired(BatchState(batches=set(range(KEPT_BATCHES))), KEPT_BATCHES) == [0]
    assert expired(BatchState(batches=set(range(5, KEPT_BATCHES + 5))), 0) == [], "the one that is being written stays"
    assert expired(BatchState(batches={1, 2}), 3) == []


def test_partitions_are_dealt_in_turn() -> None:
    firsts = first_numbers({"u": 2, "t": 3})
    assert firsts == {"t": 0, "u": 3}
    assert [slot_of(firsts, TopicPartition("u", number), 2) for number in (0, 1)] == [1, 0]


@pytest.mark.parametrize("partitions", [1, 300])
def test_no_record_of_a_batch_becomes_larger_than_is_asked_before_it_is_begun(partitions: int) -> None:
    settled = Settled(
        topics={"enriched": TargetShape(partitions=partitions, topic_id="A" * 22)},
        due={TopicPartition("enriched", number): Due(10**6, 2**64 - 1) for number in range(partitions)},
    )
    most = codec.most_bytes(17, settled)
    last = [replace(receipt(place, 10**6), first=10**15, last=10**16) for place in settled.due]
    for record in (
        codec.settled_record(17, settled), codec.delivered_record(17, settled, last, 1_790_000_000_000),
    ):  # fmt: skip
        assert len(record.value or b"") <= most


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(10_000, 10 / 3), (60_000, 20), (900_000, 20)])
def test_a_chunk_ends_well_before_its_transaction_is_aborted(timeout_ms: int, seconds: float) -> None:
    connection = kafka_python_options({"bootstrap.servers": "h:1"})
    spec = DeliverySpec(alias="b", connection=connection, application="a", batch=1, transaction_timeout_ms=timeout_ms)
    assert spec.chunk_seconds == pytest.approx(seconds)


def test_a_few_bytes_cannot_name_more_batches_than_memory_holds(golden: Golden) -> None:
    told = codec.fenced_record(0, 2, KnownBatches(upto=1, written=frozenset(), begun=frozenset(), forgotten=0))
    body = json.loads(told.value or b"")
    body["known"]["written"] = [[0, 2**40]]
    with pytest.raises(BadInput) as wrong:
        last_known(log(Record(key=told.key, value=encode(body))), "the ledger")
    golden(wrong.value)


@pytest.mark.parametrize("slots", [2**40, -1, "2"])
def test_a_number_of_slots_that_nobody_could_fence_is_none(slots: object, golden: Golden) -> None:
    made = attempt()
    wrong = Record(key=made.key, value=encode({**json.loads(made.value or b""), "slots": slots}))
    with pytest.raises(BadInput) as caught:
        standing(log(wrong), 1, "the ledger")
    golden(caught.value)


def test_an_open_receipt_with_a_key_that_is_none_is_one_error(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        standing(log((Record(key=b'["receipt",1]', value=b"{}"), Fate.OPEN)), 1, "the ledger")
    golden(caught.value)
