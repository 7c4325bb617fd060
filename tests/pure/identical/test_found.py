"""Records that no receipt covers after a crash: compared in bounded memory, or refused with what is known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from ferry.copy import kafka_slot
from ferry.errors import Refused
from ferry.features.identical.acts import slot
from ferry.features.identical.acts.found import COMPARED_AT_ONCE, differing_before
from ferry.kafka.connect import codes
from ferry.kafka.fetch import one_partition
from ferry.ledger.receipts import receipts
from ferry.model import Receipt, Record, Refusal, RefusalKind, Slice
from ferry.protocol.slot import MAX_FAILURES
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.identical.test_slot import Identical
from tests.pure.protocol.world import LANE, TOPIC
from tests.pure.scripted.faults import Asked, Fault
from tests.pure.scripted.lane import at_work, place


@contextmanager
def crashed(*partitions: list[int], most: int | None = None) -> Iterator[Identical]:
    """A lane whose first run wrote `most` records, all by default, and died before its receipts."""
    lane = Identical(partitions)
    with at_work(lane):
        lane.most_records = most
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(Refused):
            lane.copy(attempt)
        assert lane.ends() == {}
        lane.most_records = None
        yield lane


def next_run(lane: Identical) -> list[Refusal]:
    """What the second run refuses."""
    return list(lane.copy(lane.begin(lane.open("second"))).refusals.values())


def receipt_of(lane: Identical) -> Receipt:
    """The first receipt of the lane."""
    return next(iter(receipts(lane.view(), lane=LANE)))


def test_both_sides_are_read_an_answer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory holds an answer of each side, however much the run wrote before it died."""
    sides: list[str] = []

    def noting(side: str) -> Any:
        def gate(asked: Asked) -> bool:
            if asked.api == "Fetch" and TOPIC in asked.topics and not receipts_there:
                sides.append(side)
            return False

        return gate

    with crashed([1] * 6) as lane:
        receipts_there = False
        monkeypatch.setattr(one_partition, "FETCH_BYTES", 1)
        lane.source.gate, lane.target.gate = noting("source"), noting("target")
        assert next_run(lane) == []
        assert (lane.is_identical(), lane.ends()) == (True, {place(): 6})
    compared = sides[sides.index("source") - 1 :]
    assert compared[:12] == ["target", "source"] * 6


def test_the_rest_of_a_batch_that_was_split_is_compared_record_by_record() -> None:
    with crashed([6, 4], most=3) as lane:
        assert next_run(lane) == []
        assert (lane.is_identical(), lane.ends()) == (True, {place(): 10})
        assert (receipt_of(lane).end, receipt_of(lane).transcoded) == (3, 1)


def test_a_found_receipt_says_no_age_and_a_written_one_does() -> None:
    with crashed([2]) as lane:
        lane.produce(0, 1)
        assert next_run(lane) == []
        found, written = receipts(lane.view(), lane=LANE)
        assert (found.ages, found.latency, found.max_timestamp_ms) == (None, None, lane.at_ms)
        assert written.ages is not None


def test_records_of_another_producer_get_no_receipt_though_they_are_alike() -> None:
    """The last batch is the lane's; the first one has the same records under another producer id."""
    with crashed([2, 2]) as lane:
        log = lane.target.log(TOPIC)
        del log.entries[:]
        own = lane.open("again").slices[0].producer
        assert own is not None
        for base, producer in ((0, own + 1), (2, own)):
            rows = [Record(key=b"0", value=b"%d" % (base + at)) for at in range(2)]
            identity = ProducerIdentity(producer_id=producer, producer_epoch=0, sequence=base)
            lane.target.append(TOPIC, build_batch(rows, lane.at_ms, identity))
        (refusal,) = next_run(lane)
        assert (refusal.code, lane.ends()) == ("identical.foreign", {})


@pytest.mark.slow
@pytest.mark.parametrize("other", [(), (3, 117)], ids=["all alike", "two differ"])
def test_the_last_records_of_many_partitions_are_read_at_once(other: tuple[int, ...]) -> None:
    """Each side needs a second for an answer; two for each partition would be minutes."""
    many = 120
    lane = Identical([[]] * many)
    with at_work(lane):
        for number in range(many):
            for brokers in (lane.source, lane.target):
                value = b"other" if number in other and brokers is lane.target else b"same"
                brokers.append(TOPIC, build_batch([Record(key=b"k", value=value)], 0, ProducerIdentity()), number)
        for brokers in (lane.source, lane.target):
            brokers.faults.append(Fault(api="Fetch", topic=TOPIC, late_s=1.0, times=2 * many))
        places = [place(number) for number in range(many)]
        pieces = [
            Slice(source=one, target=one, start=1, end=1, slot=0, target_next=1, continued_at=1) for one in places
        ]
        source, target = lane.clusters
        begun = time.monotonic()
        drops = target.loop.run(partial(differing_before, source, target, pieces, dict.fromkeys(places, 0), 1 << 20))
        assert {one.piece.target.partition for one in drops} == set(other)
        assert {one.refusal.code for one in drops} <= {"identical.differs"}
        assert time.monotonic() - begun < 2 * many / COMPARED_AT_ONCE + 3, "by the scripted clock"


def test_an_end_that_replicas_in_sync_do_not_have_yet_is_no_end() -> None:
    with crashed([2, 2]) as lane:
        lane.target.behind[place()] = 2
        (refusal,) = next_run(lane)
        assert (refusal.code, lane.ends()) == ("identical.unsettled", {})
        assert {name: dict(refusal.facts)[name] for name in ("end", "shown")} == {"end": 4, "shown": 2}
        lane.target.behind.clear()
        assert (next_run(lane), lane.ends()) == ([], {place(): 4})


@pytest.mark.parametrize("begin", [1, 2, 3])
def test_records_that_retention_took_at_the_target_are_named_so(begin: int) -> None:
    with crashed([1, 1, 1]) as lane:
        lane.target.begins[place()] = begin
        (refusal,) = next_run(lane)
        assert refusal.code == "identical.unread"
        assert {name: dict(refusal.facts)[name] for name in ("at", "begin", "end")} == {
            "at": 0,
            "begin": begin,
            "end": 3,
        }


def test_records_that_retention_took_at_the_source_are_no_difference() -> None:
    with crashed([1, 1, 1]) as lane:
        plan = lane.open("second")
        lane.source.begins[place()] = 2
        (refusal,) = lane.copy(lane.begin(plan)).refusals.values()
        assert (refusal.code, refusal.kind) == ("identical.uncompared", RefusalKind.RETENTION_PASSED)
        assert dict(refusal.facts)["at"] == 0


def test_a_batch_that_memory_does_not_take_is_refused_and_a_verbatim_one_is_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slot, "MOST_DECOMPRESSED", 10)
    with crashed([2, 600], most=402) as lane:
        lane.memory_bytes = 10
        (refusal,) = next_run(lane)
        assert (refusal.code, refusal.kind, dict(refusal.facts)["at"]) == (
            "identical.too-large",
            RefusalKind.TOO_LARGE,
            2,
        )
    with crashed([2, 600]) as lane:
        lane.memory_bytes = 10
        assert next_run(lane) == []
        assert lane.ends() == {place(): 602}


@pytest.mark.slow
def test_a_partition_without_a_leader_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(*_: Any) -> None:
        """Waits for nothing."""

    monkeypatch.setattr(kafka_slot, "back_off", at_once)
    lane = Identical([[2], [3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.leaders[place(0)] = -1
        result = lane.copy(attempt)
        assert [(one.kind, one.partition) for one in result.refusals.values()] == [(RefusalKind.NO_LEADER, 0)]
        assert lane.ends() == {place(1): 3}
        lane.target.leaders[place(0)] = 1
        lane.copy(lane.begin(lane.open("second")))
        assert lane.is_identical()


@pytest.mark.slow
def test_a_partition_that_loses_its_leader_while_the_slot_writes_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def at_once(*_: Any) -> None:
        """Waits for nothing."""

    monkeypatch.setattr(kafka_slot, "back_off", at_once)
    lane = Identical([[1, 1, 1], [1, 1, 1]])

    def gone() -> None:
        lane.target.leaders[place(0)] = -1

    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, skip=1, then=gone))
        result = lane.copy(attempt, request_bytes=1)
        assert [(one.kind, one.partition) for one in result.refusals.values()] == [(RefusalKind.NO_LEADER, 0)]
        assert lane.ends()[place(1)] == 3
        assert lane.same_up_to(0) >= lane.ends().get(place(0), 0)


def test_a_batch_that_was_appended_with_too_few_replicas_is_no_log_that_is_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ninth failure in a row leaves partition 0 out at its second batch, which is in the log."""
    lane = Identical([[1, 1], [1]])
    waits = 0

    async def at_once(*_: Any) -> None:
        nonlocal waits
        waits += 1
        if waits == MAX_FAILURES:
            lane.target.leaders[place(1)] = 1
            code = codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=code, applied=True, skip=1))

    monkeypatch.setattr(kafka_slot, "back_off", at_once)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.leaders[place(1)] = -1
        result = lane.copy(attempt, request_bytes=1)
        assert [(one.kind, one.partition) for one in result.refusals.values()] == [(RefusalKind.TOO_FEW_REPLICAS, 0)]
        assert (waits, lane.is_identical(), lane.ends()) == (MAX_FAILURES + 1, True, {place(0): 2, place(1): 1})
