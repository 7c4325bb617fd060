"""The source's applications: plain, idempotent, compacted and transactional records of all codecs, in one process.

```
python -m tests.soak.campaign.writer BOOTSTRAP SEED RATE [identical]
in   pause, resume, topic NAME PARTITIONS, quit          one line each; a topic may be known, and have grown
out  ready, paused: nothing is unacknowledged, and no transaction is open but abandoned ones
```

Transactions are committed, aborted, held open for seconds, or abandoned: these end by the broker's timeout. Their topic
has plain records in between. With `identical` there are no compacted records: such logs have holes.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaException, Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TRANSACTION_MS = 8_000
PLAIN, IDEMPOTENT, COMPACTED, TRANSACTIONAL = "c-plain", "c-idem", "c-compact", "c-txn"
PARTITIONS = {PLAIN: 4, IDEMPOTENT: 4, COMPACTED: 2, TRANSACTIONAL: 4}
COPIED = (PLAIN, IDEMPOTENT, TRANSACTIONAL)
"""The topics that are copied record by record."""
BIG = 700_000
"""Bytes of the largest records."""


def value_of(rng: random.Random, number: int) -> bytes:
    """Some bytes that begin with the record's number; one in 400 is large, one in 20 of some kilobytes."""
    draw = rng.random()
    size = rng.randrange(100_000, BIG) if draw < 0.0025 else rng.randrange(1_000, 9_000) if draw < 0.05 else 60
    return f"{number}:".encode() + rng.randbytes(size // 2) + b"." * (size // 2)


class Writers:
    """Every producer, each on a thread of its own, together at about `rate` records a second."""

    def __init__(self, bootstrap: str, seed: int, rate: float) -> None:
        self._bootstrap = bootstrap
        self._seed = seed
        self._pause = 10 / max(rate, 1.0)
        self._running = threading.Event()
        self._resting: dict[str, threading.Event] = {}
        self._topics = [PLAIN, TRANSACTIONAL]
        self._partitions = dict(PARTITIONS)
        self._abandoned: list[Producer] = []

    def begin(self, *, identical: bool) -> None:
        """Start all threads; they write once `resume` was called."""
        for codec in CODECS:
            self._start(f"plain-{codec}", partial(self._sending, codec=codec, acks="1"))
            self._start(f"idem-{codec}", partial(self._sending, codec=codec, acks="all"))
        if not identical:
            self._start("compacted", self._compacting)
        for number in range(3):
            self._start(f"txn-{number}", partial(self._transacting, number=number))

    def resume(self) -> None:
        """Write."""
        for event in self._resting.values():
            event.clear()
        self._running.set()

    def pause(self) -> None:
        """Write no more, and return when each thread has come to rest."""
        self._running.clear()
        for event in self._resting.values():
            event.wait()

    def add(self, topic: str, partitions: int) -> None:
        """Write to so many partitions of a topic; plain producers do when it is new."""
        self._partitions[topic] = partitions
        if topic not in (*PARTITIONS, *self._topics):
            self._topics.append(topic)

    def _start(self, name: str, work: Callable[[random.Random], None]) -> None:
        self._resting[name] = threading.Event()
        threading.Thread(target=self._repeated, args=(name, work), name=name, daemon=True).start()

    def _repeated(self, name: str, work: Callable[[random.Random], None]) -> None:
        rng = random.Random(f"{self._seed}/{name}")
        while True:
            if not self._running.is_set():
                self._resting[name].set()
                self._running.wait()
                self._resting[name].clear()
            try:
                work(rng)
            except KafkaException as error:  # of a broker that is down; what was not acknowledged may be there or not
                print(f"{name}: {error}", file=sys.stderr)

    def _producer(self, **settings: str | int) -> Producer:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer(
            {"bootstrap.servers": self._bootstrap, "message.max.bytes": 2_000_000, "log_level": 0, "linger.ms": 20}
            | given
        )

    def _sending(self, rng: random.Random, codec: str, acks: str) -> None:
        idempotent = acks == "all"
        client = self._producer(acks=acks, compression_type=codec, enable_idempotence=str(idempotent).lower())
        while self._running.is_set():
            topic = IDEMPOTENT if idempotent else rng.choice(self._topics)
            number = time.time_ns()
            client.produce(
                topic,
                value=value_of(rng, number),
                key=rng.choice([None, b"k%d" % rng.randrange(50)]),
                partition=rng.randrange(self._partitions[topic]),
                headers=[("h", b"%d" % number), ("empty", None)] if rng.random() < 0.3 else [],
            )
            client.poll(0)
            time.sleep(self._pause * rng.uniform(0.5, 1.5))
        client.flush(60)

    def _compacting(self, rng: random.Random) -> None:
        client = self._producer(acks="all", enable_idempotence="true")
        while self._running.is_set():
            number = rng.randrange(40)
            value = None if rng.random() < 0.1 else value_of(rng, time.time_ns())
            client.produce(COMPACTED, value=value, key=b"k%d" % number, partition=number % PARTITIONS[COMPACTED])
            client.poll(0)
            time.sleep(self._pause * rng.uniform(0.5, 1.5))
        client.flush(60)

    def _transacting(self, rng: random.Random, number: int) -> None:
        client: Producer | None = None
        while self._running.is_set():
            if client is None:
                # message.timeout.ms may not be above transaction.timeout.ms.
                client = self._producer(
                    transactional_id=f"c-{number}-{rng.randrange(4)}",
                    transaction_timeout_ms=TRANSACTION_MS,
                    message_timeout_ms=TRANSACTION_MS - 1_000,
                    compression_type=rng.choice(CODECS),
                )
                client.init_transactions(30)
            client = self._transaction(rng, client)

    def _transaction(self, rng: random.Random, client: Producer) -> Producer | None:
        """One transaction; the producer for the next one, None when that takes another one."""
        try:
            client.begin_transaction()
            for _ in range(rng.randrange(1, rng.choice((3, 20)))):
                value = value_of(rng, time.time_ns())
                client.produce(TRANSACTIONAL, value=value, partition=rng.randrange(self._partitions[TRANSACTIONAL]))
                client.poll(0)
                time.sleep(self._pause * rng.uniform(0.2, 0.5))
            draw = rng.random()
            if draw < 0.1:
                client.flush(5)
                self._abandoned = [*self._abandoned[-20:], client]
                return None
            if draw < 0.2:
                until = time.monotonic() + rng.uniform(1, 4)
                while self._running.is_set() and time.monotonic() < until:
                    time.sleep(0.1)
            if draw < 0.4:
                client.abort_transaction(20)
            else:
                client.commit_transaction(20)
        except KafkaException as error:
            print(f"transaction: {error}", file=sys.stderr)
            return None
        return client


def main() -> None:
    """Obey until standard input ends."""
    writers = Writers(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
    writers.begin(identical="identical" in sys.argv[4:])
    print("ready", flush=True)
    for line in sys.stdin:
        word, *named = line.split()
        if word == "pause":
            writers.pause()
            print("paused", flush=True)
        elif word == "resume":
            writers.resume()
        elif word == "topic":
            writers.add(named[0], int(named[1]))
        else:
            break
    os._exit(0)  # open transactions are abandoned


if __name__ == "__main__":
    main()
