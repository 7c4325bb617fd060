"""The public sink's protocol on real brokers: killed before each request, fenced, repeated; nothing lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from ferry.dev import RunningCluster
from ferry.errors import BadInput, FerryError, Refused, Retryable, Superseded
from ferry.features.sink.acts.driver import delivering
from ferry.features.sink.acts.ids import DeliverySpec, delivery_ledger
from ferry.features.sink.acts.slot import write_slot
from ferry.features.sink.rules import batch_state, codec
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.model import LedgerRecord, Record, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, Settled, TargetShape, Written
from tests.harness import create_topic, delete_topic, new_alias, on_cluster, producer, read_topic, watermark
from tests.kafka.run.deliverer import PARTITIONS, RECORDS, TIME, Given, deliver, due, frame, slots_of, spec_of
from tests.said import data_of
from tests.tiers import ANSWER_S, IN_PART

ROOT = Path(__file__).parents[3]
Rows = Iterator[pa.RecordBatch]

TURNED_AWAY = "was fenced|answered ConcurrentTransactionsError"
"""What an overtaken slot is told: while the other one's markers are still written, that something is under way."""


def kept(cluster: RunningCluster, name: str) -> None:
    """A topic whose records stay, however old they are said to be."""
    create_topic(cluster, name, PARTITIONS, {"retention.ms": "-1"})


def assert_once(cluster: RunningCluster, topic: str, told: Written, rows: list[Given]) -> None:
    """Each record is there once, in order, with all that it is, and where the answer says."""
    found = read_topic(cluster.bootstrap, topic)
    for partition in range(PARTITIONS):
        mine = [row for row in rows if row.partition == partition]
        read = [(key, value, headers, timestamp) for _, key, value, headers, timestamp in found[partition]]
        assert read == [
            (f"k{row.number}".encode(), row.value, (("n", str(row.number).encode()), ("n", None)), TIME + row.number)
            for row in mine
        ]
    assert [(part.topic, part.partition, part.records) for part in told.parts] == [
        (topic, partition, sum(row.partition == partition for row in rows)) for partition in range(PARTITIONS)
    ]
    for part in told.parts:
        assert (part.first, part.last) == (found[part.partition][0][0], found[part.partition][-1][0])


def killed(cluster: RunningCluster, topic: str, application: str, number: int) -> bool:
    """Whether a process that delivers was killed before its request of this number, or came to its end."""
    asked = {"bootstrap": cluster.bootstrap, "topic": topic, "application": application, "kill": number}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka.run.deliverer", json.dumps(asked)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_a_batch_is_written_once_and_told_again(target_cluster: RunningCluster, topic: str) -> None:
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    told = deliver(spec, topic, frame())
    assert not told.already
    assert_once(target_cluster, topic, told, frame())
    ends = [watermark(target_cluster, topic, number) for number in range(PARTITIONS)]
    again = deliver(spec, topic, frame(), slots=3)
    assert again.already
    assert again.parts == told.parts
    assert [watermark(target_cluster, topic, number) for number in range(PARTITIONS)] == ends
    following = deliver(spec_of(target_cluster.bootstrap, spec.application, 2), topic, frame(5, "w"))
    assert [part.first > before.last for part, before in zip(following.parts, told.parts, strict=True)] == [True] * 4
    assert {len(rows) for rows in read_topic(target_cluster.bootstrap, topic).values()} == {RECORDS + 5}


@pytest.mark.timeout(120 if IN_PART else 900)
@pytest.mark.parametrize("side", ["target_cluster", "old_cluster"])
def test_killed_before_each_request_and_repeated(side: str, request: pytest.FixtureRequest, topic: str) -> None:
    cluster: RunningCluster = request.getfixturevalue(side)
    # The older protocol has more requests for the same.
    number, step = 1, 11 if IN_PART else 3 if side == "old_cluster" else 1
    deaths = 0
    while True:
        name, application = f"{topic}-{number}", new_alias()
        kept(cluster, name)
        died = killed(cluster, name, application, number)
        deaths += died
        # Another number of slots deals the partitions to others.
        told = deliver(spec_of(cluster.bootstrap, application), name, frame(), slots=1 + number % 3)
        assert_once(cluster, name, told, frame())
        assert told.already is not died
        if not died:
            break
        number += step
    assert deaths > 15 / step, (
        "requests that change something: fences, data, receipts, commits, of two slots and the driver"
    )


@pytest.mark.parametrize("number", [9, 14, 20])
def test_killed_twice_at_the_same_batch(target_cluster: RunningCluster, topic: str, number: int) -> None:
    kept(target_cluster, topic)
    application = new_alias()
    assert killed(target_cluster, topic, application, number)
    killed(target_cluster, topic, application, number)
    assert_once(target_cluster, topic, deliver(spec_of(target_cluster.bootstrap, application), topic, frame()), frame())


def test_a_zombie_is_turned_away_at_each_place(target_cluster: RunningCluster, topic: str) -> None:
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    told: list[Written] = []
    # The driver: what it says, and what its slots write, counts for nothing once somebody came later.
    with pytest.raises(Superseded) as caught:
        deliver(spec, topic, frame(), between=lambda: told.append(deliver(spec, topic, frame())))
    assert data_of(caught.value)[0] == "superseded.delivery"
    assert_once(target_cluster, topic, told[0], frame())

    # A slot in the middle of a transaction: its rows come on when the later one is done.
    other = spec_of(target_cluster.bootstrap, new_alias())
    kept(target_cluster, f"{topic}-slot")

    def late(batches: Rows) -> Rows:
        for at, batch in enumerate(batches):
            if at == 3:
                told.append(deliver(other, f"{topic}-slot", frame()))
            yield batch

    with pytest.raises(Superseded):
        deliver_slot(other, f"{topic}-slot", frame(), late)
    assert_once(target_cluster, f"{topic}-slot", told[1], frame())


@pytest.mark.parametrize("step", ["settle", "close"])
def test_a_driver_that_was_overtaken_says_nothing_any_more(
    target_cluster: RunningCluster, topic: str, step: str
) -> None:
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    with delivering(spec, [topic], 2) as late:
        if step == "close":
            late.settle(due(topic, frame()))
        slots = list(slots_of(late.slot_specs(), topic, frame()))
        receipts = {one.place: one for slot, mine in slots for one in write_slot(slot, mine)}
        told = deliver(spec, topic, frame())
        with pytest.raises(Superseded) as caught:
            late.close(receipts) if step == "close" else late.settle(due(topic, frame(3, "late")))
        assert data_of(caught.value)[0] == "superseded.delivery"
    assert_once(target_cluster, topic, told, frame())
    assert deliver(spec, topic, frame()).parts == told.parts


def test_a_slot_begins_while_another_one_has_a_transaction_open(target_cluster: RunningCluster, topic: str) -> None:
    """Receipts that are undecided are the other one's, and those of a task that was lost are ended, not waited for."""
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    with delivering(spec, [topic], 2) as delivery:
        delivery.settle(due(topic, frame()))
        (first, of_first), (second, of_second) = slots_of(delivery.slot_specs(), topic, frame())
        receipts: list[DeliveryReceipt] = []
        commit = Writer.commit

        async def stopped(self: Writer) -> None:
            if self.transactional_id.endswith(".0") and not receipts:
                receipts.extend(write_slot(second, of_second))
                receipts.extend(write_slot(first, of_first))
            await commit(self)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Writer, "commit", stopped)
            with pytest.raises(Retryable, match=TURNED_AWAY):
                write_slot(first, of_first)
        told = delivery.close({one.place: one for one in receipts})
    assert_once(target_cluster, topic, told, frame())


def test_two_tasks_of_one_slot_write_once(target_cluster: RunningCluster, topic: str) -> None:
    """As Spark begins a task again that it takes for lost."""
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    with delivering(spec, [topic], 1) as delivery:
        delivery.settle(due(topic, frame()))
        ((slot, mine),) = slots_of(delivery.slot_specs(), topic, frame())
        receipts = []

        def late() -> Rows:
            for at, batch in enumerate(mine):
                if at == 3:
                    receipts.extend(write_slot(slot, mine))
                yield batch

        with pytest.raises(Retryable, match=TURNED_AWAY):
            write_slot(slot, late())
        told = delivery.close({one.place: one for one in receipts})
    assert_once(target_cluster, topic, told, frame())


def broken_off(rows: list[Given]) -> list[Given]:
    return rows[:-7]


def deliver_slot(
    spec: DeliverySpec,
    topic: str,
    rows: list[Given],
    through: Callable[[Rows], Rows] = iter,
    *,
    settled: list[Given] | None = None,
    chunk_bytes: int = 20_000,
) -> list[DeliveryReceipt]:
    """Have the only slot of an attempt write rows, which is `settled` for the same, or for others."""
    with delivering(spec, [topic], 1) as delivery:
        delivery.settle(due(topic, rows if settled is None else settled))
        ((slot, mine),) = slots_of(delivery.slot_specs(), topic, rows, chunk_bytes)
        return write_slot(slot, through(iter(mine)))


def changed(rows: list[Given]) -> list[Given]:
    return [*rows[:-1], Given(PARTITIONS - 1, RECORDS - 1, "other")]


@pytest.mark.parametrize("number", [10, 15, 1000])
@pytest.mark.parametrize("other", [broken_off, changed])
def test_a_frame_that_gives_something_else_is_refused_before_anything_is_written(
    target_cluster: RunningCluster, topic: str, number: int, other: Callable[[list[Given]], list[Given]]
) -> None:
    kept(target_cluster, topic)
    application = new_alias()
    killed(target_cluster, topic, application, number)
    before = read_topic(target_cluster.bootstrap, topic)
    with pytest.raises(Refused, match=rf" 1 .* {application} .*\({topic}-3 ha[ds] \d"):
        deliver(spec_of(target_cluster.bootstrap, application), topic, other(frame()))
    assert read_topic(target_cluster.bootstrap, topic) == before
    told = deliver(spec_of(target_cluster.bootstrap, application), topic, frame())
    assert_once(target_cluster, topic, told, frame())


@pytest.mark.parametrize(
    ("other", "error"),
    [(broken_off, Retryable), (changed, Refused), (lambda rows: [*rows, rows[-1]], Refused)],
)
def test_rows_that_change_between_counting_and_writing_are_refused(
    target_cluster: RunningCluster, topic: str, other: Callable[[list[Given]], list[Given]], error: type[FerryError]
) -> None:
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    with pytest.raises(error, match=f"other .*{topic}-3 "):
        deliver_slot(spec, topic, other(frame()), settled=frame(), chunk_bytes=1 << 20)
    assert not any(read_topic(target_cluster.bootstrap, topic).values())
    assert_once(target_cluster, topic, deliver(spec, topic, frame()), frame())


def test_another_order_of_what_is_written_already_is_refused(target_cluster: RunningCluster, topic: str) -> None:
    """The same records with another order would lose some and double others behind the place where one goes on."""
    kept(target_cluster, topic)
    spec = spec_of(target_cluster.bootstrap, new_alias())
    rows = frame()

    def breaks(batches: Rows) -> Rows:
        yield next(batches)
        raise Retryable("here")

    with pytest.raises(Retryable, match="here"):
        deliver_slot(spec, topic, rows, breaks, chunk_bytes=3_000)
    written = len(read_topic(target_cluster.bootstrap, topic)[0])
    assert 0 < written < RECORDS
    moved = [*rows[: written - 1], rows[written], rows[written - 1], *rows[written + 1 :]]
    with pytest.raises(Refused, match=r"\bother\b"):
        deliver(spec, topic, moved, slots=1)
    assert len(read_topic(target_cluster.bootstrap, topic)[0]) == written
    assert_once(target_cluster, topic, deliver(spec, topic, rows), rows)


def test_topics_that_are_gone_or_others_by_now(target_cluster: RunningCluster, topic: str) -> None:
    spec = spec_of(target_cluster.bootstrap, new_alias())
    with pytest.raises(BadInput, match=f"topic {topic} "):
        deliver(spec, topic, frame())
    kept(target_cluster, topic)
    assert killed(target_cluster, topic, spec.application, 12)
    delete_topic(target_cluster, topic)
    kept(target_cluster, topic)
    with pytest.raises(Refused, match=f"{topic}.* batch 1"):
        deliver(spec, topic, frame())


def test_old_batches_are_forgotten_and_refused(
    target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_state, "KEPT_BATCHES", 2)
    kept(target_cluster, topic)
    application = new_alias()
    for batch in (1, 2, 3, 4):
        deliver(spec_of(target_cluster.bootstrap, application, batch), topic, frame(2, f"b{batch}"))
    for batch in (1, 2, 0):
        with pytest.raises(Refused, match=f"batch {batch} .*{application}"):
            deliver(spec_of(target_cluster.bootstrap, application, batch), topic, frame(2, f"b{batch}"))
    assert deliver(spec_of(target_cluster.bootstrap, application, 3), topic, frame(2, "b3")).already
    assert {len(rows) for rows in read_topic(target_cluster.bootstrap, topic).values()} == {8}


def filled(cluster: RunningCluster, application: str, batches: int) -> None:
    """A ledger of so many batches that an earlier Ferry has written whole, to eight partitions each."""
    settled = Settled(
        topics={"t": TargetShape(partitions=8)}, due={TopicPartition("t", number): Due(5, 1) for number in range(8)}
    )
    last = [
        DeliveryReceipt(place=place, done=done, first=0, last=4, slot=0, generation=0)
        for place, done in settled.due.items()
    ]
    records: list[Record] = []
    for batch in range(batches):
        records += [
            codec.settled_record(batch, settled),
            *(codec.receipt_record(batch, one) for one in last),
            codec.delivered_record(batch, settled, last, 9),
            codec.tombstone([codec.SETTLED, batch]),
            *(codec.tombstone([codec.RECEIPT, batch, *one.place]) for one in last),
        ]

    async def append(client: Cluster) -> None:
        ledger = LedgerTopic(client, application, topic=delivery_ledger(application))
        await ledger.open(3)
        await ledger.append_each(records, batch_bytes=10_000)

    on_cluster(cluster, append)


def test_a_batch_reads_what_came_since_the_last_one_and_not_the_whole_ledger(
    target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(target_cluster, topic)
    application, read = new_alias(), Counter[int]()
    original = LedgerTopic.read
    batch = 500

    async def counted(self: LedgerTopic, *args: int | None) -> tuple[list[LedgerRecord], int]:
        found = await original(self, *args)
        read[batch] += len(found[0])
        return found

    filled(target_cluster, application, batch)
    monkeypatch.setattr(LedgerTopic, "read", counted)
    for _ in range(4):
        deliver(spec_of(target_cluster.bootstrap, application, batch), topic, frame(2, f"b{batch}"))
        batch += 1
    assert read[500] > 500 * 19, "nothing says what an earlier Ferry knew"
    assert max(read[number] for number in (501, 502, 503)) < 600, read
    batch = 500
    assert deliver(spec_of(target_cluster.bootstrap, application, batch), topic, frame(2, "b500")).already


def test_a_transaction_that_hangs_on_the_ledger_is_named(target_cluster: RunningCluster, topic: str) -> None:
    kept(target_cluster, topic)
    application = new_alias()
    deliver(spec_of(target_cluster.bootstrap, application), topic, frame())
    ledger = delivery_ledger(application)
    hanging = producer(target_cluster, transactional_id=f"hangs-{topic}")
    hanging.init_transactions(ANSWER_S)
    hanging.begin_transaction()
    hanging.produce(ledger, b"{}", key=b"[]", partition=0)
    assert hanging.flush(ANSWER_S) == 0
    with pytest.raises(Retryable) as caught:
        deliver(spec_of(target_cluster.bootstrap, application, 2), topic, frame(5, "w"))
    for word in (f"transactional id hangs-{topic}", f"abort --topic {ledger} --partition 0 --start-offset"):
        assert word in str(caught.value)
    hanging.abort_transaction(ANSWER_S)
    told = deliver(spec_of(target_cluster.bootstrap, application, 2), topic, frame(5, "w"))
    assert [part.records for part in told.parts] == [5] * PARTITIONS


def test_others_may_write_beside_it(target_cluster: RunningCluster, topic: str) -> None:
    kept(target_cluster, topic)
    one, two = (spec_of(target_cluster.bootstrap, new_alias()) for _ in range(2))
    told: list[Written] = []
    deliver(one, topic, frame(), between=lambda: told.append(deliver(two, topic, frame(20, "w"))))
    found = Counter(row[2] for rows in read_topic(target_cluster.bootstrap, topic).values() for row in rows)
    assert found == Counter(row.value for row in [*frame(), *frame(20, "w")])


def test_a_ledger_that_would_not_keep_receipts_is_refused(target_cluster: RunningCluster, topic: str) -> None:
    kept(target_cluster, topic)
    application = new_alias()
    create_topic(target_cluster, delivery_ledger(application), 1, {"cleanup.policy": "delete"})
    with pytest.raises(Refused) as refused:
        deliver(spec_of(target_cluster.bootstrap, application), topic, frame())
    code, facts = data_of(refused.value)
    assert (code, facts["setting"], facts["found"]) == ("ledger.may-lose", "cleanup.policy", "delete")
