"""What a writer makes of its coordinator's answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.future import Future
from kafka.protocol.admin import DescribeTransactionsRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, InitProducerIdRequest

from ferry.errors import Fenced, Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo, event_loop
from ferry.kafka.produce import writer as writers
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import PartitionsRefused, Writer
from ferry.model import Record, TopicPartition
from tests.golden import Golden

NAME = "ferry.a->b.live.0"
OPEN, CLOSED = (TopicPartition(topic=topic, partition=0) for topic in ("open", "closed"))
GROUP = "ferry.a->b.live"

Answers = Callable[[Any], Any]


class Coordinator(Cluster):
    """A cluster of one broker that answers as it is told; an answer that is an error is raised."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(event_loop(), "backup", {"bootstrap_servers": ["127.0.0.1:1"]}, patience_s=5)
        self.answers = answers
        self.asked: list[Any] = []

    async def coordinator(self, kind: int, key: str) -> int:
        return 1

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        self.asked.append(request)
        answer = self.answers(request)
        if isinstance(answer, Exception):
            raise answer
        return await answer if isinstance(answer, Future) else answer

    async def submit(self, request: Any, node: int | None = None, **_: Any) -> Future:
        return Future().success(self.answers(request))


@pytest.fixture
def told() -> Iterator[Callable[..., Writer]]:
    """Makes a transaction of version 1 whose coordinator answers as it is told."""
    made: list[Coordinator] = []

    def make(answers: Answers) -> Writer:
        made.append(Coordinator(answers))
        writer = Writer(made[-1], NAME, 60_000)
        writer.producer_id, writer.producer_epoch = 7, 3
        return writer

    yield make
    for cluster in made:
        cluster.close()
        cluster.loop.close()


def coordinator(writer: Writer) -> Coordinator:
    """Whom its requests go to."""
    assert isinstance(writer.cluster, Coordinator)
    return writer.cluster


def added(**found: int) -> SimpleNamespace:
    """The answer to AddPartitionsToTxn: a code for partition 0 of each topic."""
    return SimpleNamespace(
        error_code=0,
        results_by_topic_v3_and_below=[
            SimpleNamespace(
                name=topic, results_by_partition=[SimpleNamespace(partition_index=0, partition_error_code=code)]
            )
            for topic, code in found.items()
        ],
    )


def committed(**found: int) -> SimpleNamespace:
    """The answer to TxnOffsetCommit."""
    return SimpleNamespace(
        error_code=0,
        topics=[
            SimpleNamespace(name=topic, partitions=[SimpleNamespace(partition_index=0, error_code=code)])
            for topic, code in found.items()
        ],
    )


def test_sequences_count_records_by_partition_and_go_round(told: Callable[..., Writer]) -> None:
    writer = told(lambda _: None)
    most = 2**31 - 1
    assert [writer.next_sequence(OPEN, records) for records in (2, most - 2, 3, 1)] == [0, 2, most, 2]
    assert writer.next_sequence(CLOSED, 1) == 0


@pytest.mark.parametrize("code", [codes.TOPIC_AUTHORIZATION_FAILED, codes.UNKNOWN_TOPIC_OR_PARTITION])
def test_partitions_that_may_not_join_are_told_from_those_that_were_not_tried(
    told: Callable[..., Writer], code: int
) -> None:
    writer = told(lambda _: added(open=codes.OPERATION_NOT_ATTEMPTED, closed=code))
    with pytest.raises(PartitionsRefused) as caught:
        writer.cluster.loop.run(writer.join, [OPEN, CLOSED])
    assert caught.value.codes == {CLOSED: code}
    coordinator(writer).answers = lambda _: added(open=0)
    writer.cluster.loop.run(writer.join, [OPEN])
    assert [topic.name for topic in coordinator(writer).asked[-1].v3_and_below_topics] == ["open"], "it had not joined"


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ({"open": codes.INVALID_PRODUCER_EPOCH, "closed": codes.TOPIC_AUTHORIZATION_FAILED}, Fenced),
        ({"open": codes.OPERATION_NOT_ATTEMPTED, "closed": codes.OPERATION_NOT_ATTEMPTED}, Retryable),
        ({"open": codes.NOT_COORDINATOR, "closed": codes.NOT_COORDINATOR}, Retryable),
        ({"open": codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "closed": 0}, Refused),
    ],
)
def test_what_concerns_the_whole_transaction_comes_first(
    told: Callable[..., Writer], found: dict[str, int], error: type[Exception]
) -> None:
    writer = told(lambda _: added(**found))
    with pytest.raises(error):
        writer.cluster.loop.run(writer.join, [OPEN, CLOSED])


def test_a_partition_that_may_have_no_position_is_named(told: Callable[..., Writer]) -> None:
    writer = told(
        lambda request: (
            committed(open=0, closed=codes.TOPIC_AUTHORIZATION_FAILED)
            if hasattr(request, "generation_id")
            else SimpleNamespace(error_code=0)
        )
    )
    with pytest.raises(PartitionsRefused) as caught:
        writer.cluster.loop.run(writer.send_positions, GROUP, {OPEN: (1, ""), CLOSED: (1, "")})
    assert caught.value.codes == {CLOSED: codes.TOPIC_AUTHORIZATION_FAILED}


def test_a_transaction_is_joined_when_the_one_before_is_complete(told: Callable[..., Writer]) -> None:
    busy = [codes.CONCURRENT_TRANSACTIONS] * 3
    writer = told(lambda _: added(open=busy.pop() if busy else 0))
    writer.cluster.loop.run(writer.join, [OPEN])
    assert len(coordinator(writer).asked) == 4


def test_a_ledger_that_may_not_be_written_refuses_the_slot(told: Callable[..., Writer], golden: Golden) -> None:
    writer = told(lambda _: added(**{"ferry-ledger.a.internal": codes.TOPIC_AUTHORIZATION_FAILED}))
    ledger = LedgerTopic(writer.cluster, "a")
    with pytest.raises(Refused) as caught:
        writer.cluster.loop.run(ledger.append_in, writer, [Record(key=b"[]", value=b"{}")])
    golden(caught.value)


def test_receipts_wait_for_the_transaction_before_as_everything_else(told: Callable[..., Writer]) -> None:
    busy = [codes.CONCURRENT_TRANSACTIONS] * 3

    def answer(request: Any) -> SimpleNamespace:
        if isinstance(request, AddPartitionsToTxnRequest):
            return added(**{"ferry-ledger.a.internal": 0})
        part = SimpleNamespace(error_code=busy.pop() if busy else 0, base_offset=40)
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[part])])

    writer = told(answer)
    ledger = LedgerTopic(writer.cluster, "a")
    info = PartitionInfo(partition=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
    writer.cluster.topics[ledger.place.topic] = TopicInfo(
        name=ledger.place.topic, topic_id=None, partitions={0: info}, internal=False
    )
    records = [Record(key=b"[]", value=b"{}")] * 2
    assert writer.cluster.loop.run(ledger.append_in, writer, records) == {40, 41}
    assert not busy


def described(state: str = "Ongoing", *, epoch: int = 3, error_code: int = 0) -> SimpleNamespace:
    """The answer to DescribeTransactions."""
    found = SimpleNamespace(error_code=error_code, transaction_state=state, producer_id=7, producer_epoch=epoch)
    return SimpleNamespace(error_code=0, transaction_states=[found])


def initialisations(writer: Writer) -> list[tuple[int, int]]:
    """Producer id and epoch of the InitProducerId requests that were sent."""
    asked = [request for request in coordinator(writer).asked if isinstance(request, InitProducerIdRequest)]
    return [(request.producer_id, request.producer_epoch) for request in asked]


@pytest.mark.parametrize(
    ("description", "ended"),
    [
        (described(), [(7, 3)]),
        (described(epoch=4), []),
        (described("CompleteCommit"), []),
        (described("PrepareAbort"), []),
    ],
)
def test_a_writer_that_leaves_ends_an_open_transaction_of_its_own(
    told: Callable[..., Writer], description: SimpleNamespace, ended: list[tuple[int, int]]
) -> None:
    def answer(request: Any) -> SimpleNamespace:
        return description if isinstance(request, DescribeTransactionsRequest) else SimpleNamespace(error_code=51)

    writer = told(answer)
    writer.cluster.loop.run(writer.leave)
    assert initialisations(writer) == ended
    writer.cluster.loop.run(writer.leave)
    assert initialisations(writer) == ended, "it leaves once"


def test_a_writer_that_leaves_follows_its_coordinator(told: Callable[..., Writer]) -> None:
    moved = [described(error_code=codes.NOT_COORDINATOR), Retryable("no connection")]

    def answer(request: Any) -> Any:
        if moved:
            return moved.pop()
        return described() if isinstance(request, DescribeTransactionsRequest) else SimpleNamespace(error_code=0)

    writer = told(answer)
    writer.cluster.loop.run(writer.leave)
    assert initialisations(writer) == [(7, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (Future, Unreachable, "within 0.2 s"),
        (lambda: ValueError("not even an answer"), ValueError, "not even an answer"),
        (lambda: Retryable("gone"), Unreachable, "within 0.2 s"),
    ],
)
def test_leaving_takes_its_own_patience_at_most_and_raises_nothing(
    told: Callable[..., Writer],
    answer: Callable[[], Any],
    kind: type[Exception],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What ends the wait is the time that a writer takes to leave, not the cluster's patience of five seconds."""
    monkeypatch.setattr(writers, "LEAVE_SECONDS", 0.2)
    writer = told(lambda _: answer())
    writer.cluster.loop.run(writer.leave)
    (warning,) = (one for one in caplog.records if one.name == writers.__name__)
    assert isinstance(warning.args, tuple)
    assert isinstance(warning.args[1], kind)
    assert said in str(warning.args[1])
    assert writer.producer_id == -1


@pytest.mark.parametrize(
    "paused_s",
    [
        0.0,
        20.0,
        55.0,
    ],
)
def test_a_transaction_that_was_open_for_too_long_names_a_quota_that_was_the_cause(
    told: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch, paused_s: float, golden: Golden
) -> None:
    writer = told(lambda _: added(open=0))
    writer.cluster.throttled_s = 100.0  # by transactions before
    writer.cluster.loop.run(writer.join, [OPEN])
    writer.cluster.throttled_s += paused_s
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(Fenced) as caught:
        writer.raise_for(codes.INVALID_PRODUCER_EPOCH, "writing")
    golden(caught.value)


def test_a_batch_for_a_topic_that_is_gone_is_not_sent(told: Callable[..., Writer], golden: Golden) -> None:
    writer = told(lambda _: pytest.fail("a request was sent"))
    writer.cluster.topics = {}
    with pytest.raises(Retryable) as caught:
        writer.produced(NAME, {OPEN: b""}, 11)
    golden(caught.value)
