"""What ADR 0057 needs of permissions, and of connections without traffic."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from ferry.config.flow.clients import kafka_python_options
from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.lane.connections import manager_options
from tests.clusters import VERSIONS, of_version
from tests.harness import awaited, create_topic, wait_until
from tests.kafka.raw import Producer, Raw
from tests.kafka.run.test_permissions import GUARDED, LOGIN, permit
from tests.tiers import ANSWER_S

IDLE_S = 4
CLUSTER_AUTHORIZATION_FAILED = 31
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""A whole frame, which a broker answers without a login."""


@pytest.fixture(scope="module", params=VERSIONS)
def guarded(cluster_home: Path, request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    """A broker that asks for ACLs at its second listener, and closes idle connections soon."""
    properties = {**GUARDED.properties, "connections.max.idle.ms": str(1000 * IDLE_S)}
    with of_version(replace(GUARDED, properties=properties), request.param, cluster_home) as cluster:
        yield cluster


def as_ferry(cluster: RunningCluster, topic: str, work: Callable[[Raw], Awaitable[None]]) -> None:
    """Send requests one by one as User:ferry."""
    loop = event_loop()
    login = {
        "bootstrap.servers": cluster.bootstrap_of("CLIENTS"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": LOGIN.format("secret"),
    }
    client = Cluster(loop, cluster.name, manager_options(kafka_python_options(login)), patience_s=ANSWER_S)

    async def act() -> None:
        await client.open()
        await work(await Raw(client, topic).open())

    try:
        loop.run(act)
    finally:
        client.close()
        loop.close()


def test_alter_on_the_cluster_is_enough_for_markers(guarded: RunningCluster, topic: str) -> None:
    """Item 4. Without it the marker is refused, and nothing is appended."""
    create_topic(guarded, topic)
    for operation in (AclOperation.WRITE, AclOperation.READ):
        permit(guarded, ResourceType.TOPIC, topic, operation)
    lane: list[Producer] = []

    async def refused(raw: Raw) -> None:
        lane.append(await raw.init())
        assert await raw.produce(lane[0], 0, 1) == (0, 0)
        assert await raw.mark(lane[0]) == [CLUSTER_AUTHORIZATION_FAILED]
        assert await raw.end(replica=0) == await raw.end() == 1
        assert (await raw.state(lane[0])).last_sequence == 0

    async def permitted(raw: Raw) -> None:
        async def marked() -> bool:
            return await raw.mark(lane[0]) == [0]

        await awaited(raw.cluster.loop, marked, "a marker that is permitted")
        assert await raw.end() == 2

    as_ferry(guarded, topic, refused)
    permit(guarded, ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER)
    as_ferry(guarded, topic, permitted)


@pytest.mark.parametrize("others", [0, pytest.param(150, marks=pytest.mark.extra)])
def test_idle_connections_are_closed_one_by_one(guarded: RunningCluster, others: int) -> None:
    """Item 8: a network thread closes one connection for each poll, the longest idle one first.

    A poll without traffic takes 0.3 s. So connections.max.idle.ms alone does not say how late a request may arrive.
    """
    host, port = guarded.bootstrap.split(",")[0].rsplit(":", 1)

    def connected() -> socket.socket:
        link = socket.create_connection((host, int(port)), timeout=2 * ANSWER_S)
        link.sendall(API_VERSIONS)
        assert link.recv(4)
        return link

    links = [connected() for _ in range(others + 1)]
    begun = time.monotonic()
    while links[-1].recv(4096):  # the rest of the answer, then the end
        pass
    took = time.monotonic() - begun
    print(f"{others} other connections: closed after {took:.1f} s, connections.max.idle.ms {1000 * IDLE_S}")
    assert took >= IDLE_S - 1
    assert others == 0 or took > IDLE_S + 5
    for link in links:
        link.close()


def test_an_idle_connection_of_a_sleeper_is_closed_while_it_sleeps(guarded: RunningCluster) -> None:
    """A request that is sent after the sleep gets no answer: the connection had ended before."""
    host, port = guarded.bootstrap.split(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as link:
        link.sendall(API_VERSIONS)
        closed = select.poll()
        closed.register(link, select.POLLRDHUP)
        assert closed.poll(1_000 * ANSWER_S), "the broker does not close it"
        answers = b""

        def ended() -> bool:
            nonlocal answers
            try:
                link.sendall(API_VERSIONS)
                piece = link.recv(65536)
            except OSError:
                return True
            answers += piece
            return not piece

        wait_until(ended, "an end of the connection")
        (length,) = struct.unpack(">i", answers[:4])
        assert len(answers) == 4 + length
