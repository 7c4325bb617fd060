"""What a cluster's connections tell of its brokers."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError
from kafka.future import Future

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster, event_loop
from tests.golden import Golden


def test_pauses_that_brokers_ask_for_count_once_where_they_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"})
    # Seconds, and what the answer says then: five requests are under way to a broker that asks for pauses.
    for now, pause_ms in ((10.0, 0), (10.0, 2_000), (10.1, 1_000), (11.5, 1_500), (20.0, 250)):
        monkeypatch.setattr(time, "monotonic", lambda now=now: now)
        cluster._note_throttling(SimpleNamespace(throttle_time_ms=pause_ms))
    cluster._note_throttling(SimpleNamespace())
    monkeypatch.undo()
    assert cluster.throttled_s == pytest.approx(2.0 + 1.0 + 0.25)
    cluster.close()
    loop.close()


def test_nothing_is_sent_over_closed_connections(golden: Golden) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"})
    cluster.close()
    with pytest.raises(Retryable) as caught:
        loop.run(cluster.submit, object(), 1)
    golden(caught.value)
    loop.close()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(KafkaConnectionError("[Errno 104] reset"), id="of kafka-python"),
        pytest.param(ConnectionResetError(104, "reset"), id="of the socket"),
    ],
)
def test_a_lost_answer_names_its_error_once(error: Exception, golden: Golden) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"})
    with pytest.raises(Retryable) as caught:
        loop.run(cluster.answered, Future().failure(error))
    golden(caught.value)
    cluster.close()
    loop.close()
