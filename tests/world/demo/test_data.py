"""The demo's producers count what the broker acknowledged, and say so when it did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferry.errors import Unreachable
from ferry_airflow.demo import data
from ferry_airflow.demo.data import ABORT_EVERY, TRANSACTION_RECORDS, DemoTopic, TopicWriter
from tests.golden import Golden

PLAIN = DemoTopic(name="plain", partitions=2, records=0, rate=0, codec="none")
PAYMENTS = DemoTopic(name="payments", partitions=2, records=0, rate=0, codec="none", transactional=True)


class Broker:
    """In the place of librdkafka's producer: takes `most` records, and answers the others with `error` or never."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.most, self.error = 1_000_000, ""
        self.taken = self.committed = self.aborted = 0
        self._open = 0
        self._queue: list[Callable[[object, object], None]] = []

    def produce(self, topic: str, *, on_delivery: Callable[[object, object], None], **_: Any) -> None:
        self._queue.append(on_delivery)

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        queue, self._queue = self._queue, []
        for number, tell in enumerate(queue):
            if self.taken < self.most:
                self.taken += 1
                tell(None, None)
            elif self.error:
                tell(self.error, None)
            else:
                return len(queue) - number
        return 0

    def init_transactions(self, timeout: float) -> None:
        assert not self.taken

    def begin_transaction(self) -> None:
        self._open = self.taken

    def commit_transaction(self, timeout: float) -> None:
        self.committed += self.taken - self._open

    def abort_transaction(self, timeout: float) -> None:
        self.aborted += self.taken - self._open


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """The broker of all writers of a test."""
    there = Broker({})
    monkeypatch.setattr(data, "Producer", lambda _: there)
    return there


def test_acknowledged_records_are_counted(broker: Broker) -> None:
    writer = TopicWriter("nowhere", PLAIN)
    writer.write(7)
    writer.write(5)
    assert writer.readable == broker.taken == 12


def test_records_without_an_answer_are_no_records(broker: Broker, golden: Golden) -> None:
    broker.most = 4
    writer = TopicWriter("nowhere", PLAIN)
    with pytest.raises(Unreachable) as caught:
        writer.write(7)
    golden(caught.value)
    assert writer.readable == 0


@pytest.mark.parametrize("topic", [PLAIN, PAYMENTS], ids=lambda topic: topic.name)
def test_a_refused_record_is_named(broker: Broker, topic: DemoTopic, golden: Golden) -> None:
    broker.most, broker.error = 4, "Broker: Message size too large"
    with pytest.raises(Unreachable) as caught:
        TopicWriter("nowhere", topic).write(7)
    golden(caught.value)


def test_records_of_aborted_transactions_do_not_count(broker: Broker) -> None:
    writer = TopicWriter("nowhere", PAYMENTS)
    writer.write(10 * ABORT_EVERY * TRANSACTION_RECORDS + 1)
    assert writer.readable == broker.committed
    assert broker.aborted > 0
    assert broker.committed + broker.aborted == broker.taken


def test_what_goes_wrong_in_one_topic_is_raised(broker: Broker) -> None:
    broker.most, broker.error = 100, "Broker: Not enough in-sync replicas"
    with pytest.raises(Unreachable, match="in-sync"):
        data.fill("nowhere")
