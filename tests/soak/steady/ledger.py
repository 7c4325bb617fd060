"""What lives in a ledger: the records that compaction keeps, by their kind."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ferry.dev import RunningCluster
from tests.tiers import ANSWER_S


@dataclass
class LedgerWatch:
    """Reads a ledger on and on, past Ferry."""

    cluster: RunningCluster
    topic: str
    live: Counter[str] = field(default_factory=Counter)
    """How many keys have a value, by their kind; `summary` counts whole summaries."""
    end: int = 0
    """Offsets that were written in all."""
    summarised: int = 0
    """Up to where the newest summary reaches."""
    _keys: dict[bytes, int] = field(default_factory=dict)
    """How many bytes key and value of what lives have."""
    _consumer: Consumer | None = None

    def read_on(self) -> None:
        """Read to the end of what is committed now; nothing where there is no ledger yet."""
        consumer = self._opened()
        if consumer is None:
            return
        at_end = False
        while not at_end:
            for message in consumer.consume(10_000, timeout=0.3):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    self.end, at_end = message.offset() or 0, True
                    continue
                key, value = message.key() or b"", message.value()
                assert isinstance(key, bytes)
                kind = kind_of(key)
                before = self._keys.pop(key, None)
                if before is not None:
                    self.live[kind] -= 1
                if value is not None:
                    self._keys[key] = len(key) + len(value)
                    self.live[kind] += 1
                    if kind == "summary":
                        assert isinstance(value, bytes)
                        self.summarised = max(self.summarised, int(json.loads(value)["upto"]))

    @property
    def live_bytes(self) -> int:
        """Keys and values of what lives, uncompressed."""
        return sum(self._keys.values())

    @property
    def disk_bytes(self) -> int:
        """What the topic has on the broker's disk, before compaction and after."""
        folders = [broker.data / f"{self.topic}-0" for broker in self.cluster.brokers]
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))

    def close(self) -> None:
        """Read no further."""
        if self._consumer is not None:
            self._consumer.close()

    def _opened(self) -> Consumer | None:
        if self._consumer is None:
            consumer = Consumer(
                {
                    "bootstrap.servers": self.cluster.bootstrap,
                    "group.id": "ledger-watch",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                    "log_level": 0,
                }
            )
            if self.topic not in consumer.list_topics(timeout=ANSWER_S).topics:
                consumer.close()
                return None
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            self._consumer = consumer
        return self._consumer


def kind_of(key: bytes) -> str:
    """The kind of a record by its key; of a summary only the seal has the kind `summary`, its parts are `part`."""
    parts = json.loads(key)
    return "part" if parts[0] == "summary" and parts[-1] != "seal" else str(parts[0])
