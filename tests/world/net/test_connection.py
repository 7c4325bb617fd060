"""A connection over real sockets, plain and by TLS: all that Ferry has in the place of kafka-python's own."""

from __future__ import annotations

import random
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.connect.transport import Transport
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.produce.appending import Appender
from ferry.model import Record, TopicPartition
from ferry.wire.records import open_batch
from tests.kafka.security.pki import Authority, pem_store
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Fault
from tests.tiers import ANSWER_S
from tests.world.net.served import listening

PLACE = TopicPartition(topic="orders", partition=0)


@pytest.fixture(params=["plain", "TLS"])
def contexts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """The broker's and the client's TLS, if any."""
    if request.param == "plain":
        return None, None
    authority = Authority.create("the authority")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem_store(tmp_path / "broker.pem", authority.issue("broker", address="127.0.0.1")))
    client = ssl.create_default_context(cadata=authority.own.certificate_pem.decode())
    return server, client


@pytest.fixture
def brokers() -> Brokers:
    made = Brokers(alias="near", host="127.0.0.1")
    made.topic(PLACE.topic)
    return made


@pytest.fixture
def cluster(brokers: Brokers, contexts: tuple[ssl.SSLContext | None, ssl.SSLContext | None]) -> Iterator[Cluster]:
    server, client = contexts
    with listening(brokers, server) as address:
        options: dict[str, Any] = {"bootstrap_servers": [address], "receive_message_max_bytes": 64 << 20}
        if client is not None:
            options |= {"security_protocol": "SSL", "ssl_context": client}
        loop = event_loop()
        made = Cluster(loop, brokers.alias, options, patience_s=ANSWER_S)
        loop.run(made.open)
        yield made
        made.close()
        loop.close()
    assert not brokers.broken


def test_what_is_written_is_read_again_whatever_its_size(cluster: Cluster) -> None:
    rng = random.Random(5)
    written = [Record(key=str(size).encode(), value=rng.randbytes(size)) for size in (0, 1, 20_000, 800_000, 70_000)]
    appender = Appender(cluster, PLACE, "the topic")
    found: list[Any] = []

    async def both() -> None:
        await cluster.refresh([PLACE.topic])
        for record in written:
            await appender.append([record])
        await read_batches(
            cluster, PLACE, 0, len(written), lambda batches, _: found.extend(batches), isolation=READ_UNCOMMITTED
        )

    cluster.loop.run(both)
    assert [Record(key=key, value=value) for batch in found for _, key, value in open_batch(batch)] == written


def test_answers_come_in_the_order_of_their_requests(cluster: Cluster, brokers: Brokers) -> None:
    async def many() -> list[Any]:
        answers = [cluster.loop.call_soon_with_future(cluster._metadata, None) for _ in range(40)]
        return [await answer for answer in answers]

    for answer in cluster.loop.run(many):
        assert [topic.name for topic in answer.topics] == [PLACE.topic]
    (connection,) = [one for one in cluster._manager._made.values() if one.connected]
    assert type(connection.transport) is Transport


def test_a_connection_that_is_cut_is_made_again(cluster: Cluster, brokers: Brokers) -> None:
    brokers.faults.append(Fault(api="Metadata", lost=True))
    with pytest.raises(Retryable):
        cluster.loop.run(cluster._metadata, None)
    assert [topic.name for topic in cluster.loop.run(cluster.retrying, lambda: cluster._metadata(None)).topics] == [
        PLACE.topic
    ]
