"""Clients that work while they are moved: producers and a group that ask a directory where to go, never at rest.

They stop where the operator tells them to, and begin where the switch's hook sends them; nobody waits for them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ferry.dev import RunningCluster
from tests.harness import producer, wait_until
from tests.tiers import ANSWER_S

REST_S = 0.01
"""Between two records of a producer: some 70 a second."""

PASSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,  # it comes into being with the first switch
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
    }
)
REBALANCED = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A cluster, and the topics that the group reads there."""

    cluster: RunningCluster
    topics: tuple[str, ...]


@dataclass(kw_only=True)
class Directory:
    """Where clients are to be; a service discovery that the hook calls by HTTP."""

    homes: Mapping[str, Home]
    """By the alias of a cluster."""
    calls: list[dict[str, str]] = field(default_factory=list)
    _home: Home | None = None

    def now(self) -> Home | None:
        """Where to be; None: stand still."""
        return self._home

    def halt(self) -> None:
        """The operator's word to all."""
        self._home = None

    def move(self, alias: str) -> None:
        """The hook's."""
        self._home = self.homes[alias]

    @contextmanager
    def served(self) -> Iterator[str]:
        """The URL of the hook."""
        directory = self

        class Hook(BaseHTTPRequestHandler):
            """Sends clients where a switch says."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                directory.calls.append(body)
                if body["hook"] == "stop":
                    directory.halt()
                else:
                    directory.move(body["to"])
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"they are on their way")

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/clients"
        finally:
            server.shutdown()
            server.server_close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A record that the group was given, and where."""

    value: bytes
    cluster: str
    topic: str
    partition: int
    offset: int


@dataclass(kw_only=True)
class Movers:
    """A producer and the members of a group, each a thread, and what they have seen."""

    directory: Directory
    topic: str
    group: str
    partitions: int
    acknowledged: set[bytes] = field(default_factory=set)
    unsure: set[bytes] = field(default_factory=set)
    """Sent, and no answer came: it may be there or not."""
    read: list[Reading] = field(default_factory=list)
    uncommitted: set[bytes] = field(default_factory=set)
    """Read from a cluster that was gone before they could be committed: they may come again, there or elsewhere."""
    failures: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Producers stop for good."""
    producing: bool = False
    """Whether a record may be on its way."""
    _closed: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def at_work(self, members: int = 2) -> Iterator[None]:
        """All of them, until the block ends."""
        threads = [threading.Thread(target=self._produce, daemon=True)]
        threads += [threading.Thread(target=self._consume, daemon=True) for _ in range(members)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            self._closed.set()
            for thread in threads:
                thread.join(ANSWER_S)

    def go_on(self, count: int) -> None:
        """Let the group read so many records more."""
        wanted = len(self.read) + count
        wait_until(lambda: bool(self.failures) or len(self.read) >= wanted, "more records that the clients read", 60)
        assert not self.failures, self.failures[:3]

    @property
    def doubled(self) -> list[bytes]:
        """Values that the group was given more than once."""
        return sorted(value for value, times in Counter(one.value for one in self.read).items() if times > 1)

    def readings(self, value: bytes) -> list[Reading]:
        """Where the group was given it, in order."""
        return [one for one in self.read if one.value == value]

    @property
    def unread(self) -> set[bytes]:
        """Acknowledged, and not read so far."""
        return self.acknowledged - {one.value for one in self.read}

    def _produce(self) -> None:
        number = 0
        while not self.over.is_set():
            home = self.directory.now()
            if home is None:
                time.sleep(REST_S)
                continue
            self.producing = True
            client = producer(home.cluster, message_timeout_ms=3_000)
            while self.directory.now() is home and not self.over.is_set():
                self._send(client, f"{number}".encode(), number % self.partitions)
                number += 1
                client.poll(REST_S)
            client.flush(10)
            client.purge()
            client.flush(1)
            self.producing = False

    def _send(self, client: Producer, value: bytes, partition: int) -> None:
        def delivered(error: KafkaError | None, _: object) -> None:
            (self.acknowledged if error is None else self.unsure).add(value)

        client.produce(self.topic, value=value, partition=partition, on_delivery=delivered)

    def _consume(self) -> None:
        while not self._closed.is_set():
            home = self.directory.now()
            if home is None:
                time.sleep(REST_S)
                continue
            member = threading.Thread(target=self._belong, args=(home,), daemon=True)
            member.start()
            # Who waits for the answer of a cluster that is gone waits long, and does not come along.
            while member.is_alive() and (self.directory.now() is home or not _is_gone(home)):
                member.join(0.1)

    def _belong(self, home: Home) -> None:
        """A member of the group, as long as it is to be there."""
        client = Consumer(
            {
                "bootstrap.servers": home.cluster.bootstrap,
                "group.id": self.group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "topic.metadata.refresh.interval.ms": 1_000,
                # Of members that die with their broker it knows until then, once it is back.
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 1_000,
            }
        )
        try:
            client.subscribe(list(home.topics))
            while self.directory.now() is home and not self._closed.is_set():
                born = _born(home)
                self._take(client, home, born, client.consume(50, timeout=0.1))
        finally:
            client.close()

    def _take(self, client: Consumer, home: Home, born: Sequence[int | None], messages: Sequence[Message]) -> None:
        """What the group has committed was read; and what it cannot commit, for its broker is gone, was read, too.

        A commit may outlive its broker, and be taken by the one that comes back: so late it may help nobody. `born` are
        the brokers' processes before the messages came.
        """
        found: list[Reading] = []
        for message in messages:
            error = message.error()
            if error is None:
                found.append(
                    Reading(
                        value=bytes(message.value() or b""),
                        cluster=home.cluster.name,
                        topic=str(message.topic()),
                        partition=int(message.partition() or 0),
                        offset=int(message.offset() or 0),
                    )
                )
            elif error.code() not in PASSING:
                self.failures.append(f"{home.cluster.name}: {error}")
        if not found:
            return
        ends = {(one.topic, one.partition): one.offset + 1 for one in found}
        try:
            places = [TopicPartition(*place, end) for place, end in ends.items()]
            client.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in REBALANCED:
                return  # the member that has the partition now is given them again: they were not read
            if _born(home) == born:
                self.failures.append(f"{home.cluster.name}: commit: {error}")
        if _born(home) != born:
            self.uncommitted.update(one.value for one in found)
        self.read += found


def _born(home: Home) -> list[int | None]:
    return [broker.pid for broker in home.cluster.brokers]


def _is_gone(home: Home) -> bool:
    return not all(broker.is_alive() for broker in home.cluster.brokers)
