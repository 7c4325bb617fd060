"""The positions of MirrorMaker 2's source connector, in the format of Kafka Connect's offsets topic.

Sources:

- `KafkaOffsetBackingStore` and `OffsetStorageWriter`: the key is the array of connector name and partition, in JSON.
- `MirrorUtils.wrapPartition` and `wrapOffset`: what the two maps hold.
- `MirrorSourceTask`: the offset is that of the last copied record. The connector continues at the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ferry.errors import BadInput
from ferry.model import Fate, LedgerRecord, TopicPartition

SOURCE_CONNECTOR = "MirrorSourceConnector"
"""The name of a dedicated MirrorMaker 2's source connector."""


def dedicated_offsets_topic(source_alias: str) -> str:
    """Return the offsets topic of a dedicated MirrorMaker 2, on the target (`MirrorMakerConfig.workerConfig`)."""
    return f"mm2-offsets.{source_alias}.internal"


def dedicated_status_topic(source_alias: str) -> str:
    """Return its topic with the states of connectors and tasks."""
    return f"mm2-status.{source_alias}.internal"


def dedicated_group(source_alias: str) -> str:
    """Return the group of its workers, on the target."""
    return f"{source_alias}-mm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsets:
    """The positions of one connector in the topic: the next source offset and the raw key, by source partition.

    `others` are names of other connectors there, and `clusters` other source aliases of this one.
    """

    next_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    keys: Mapping[TopicPartition, bytes] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The partition of the topic that has the key: a later record of the key must go there, too."""
    others: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    undecided: int = 0
    """The number of records in transactions that are still open."""


def connector_offsets(
    records: Iterable[tuple[int, LedgerRecord]], connector: str, cluster: str, topic: str
) -> ConnectorOffsets:
    """Fold the topic's records, `(partition, record)` in the order of each partition.

    Raises BadInput for a value of the connector that cannot be parsed: a guess would lose or double records.
    """
    offsets: dict[TopicPartition, int] = {}
    keys: dict[TopicPartition, bytes] = {}
    partitions: dict[TopicPartition, int] = {}
    others: set[str] = set()
    clusters: set[str] = set()
    undecided = 0
    for number, record in records:
        parsed = parse_key(record.key)
        if record.fate is Fate.ABORTED or parsed is None:
            continue
        name, place, alias = parsed
        if name != connector:
            others.add(name)
            continue
        if place is None:
            continue
        if alias != cluster:
            clusters.add(alias)
            continue
        if record.fate is Fate.OPEN:
            undecided += 1
            continue
        keys[place], partitions[place] = record.key, number
        last = parse_value(record.value, f"{topic}-{number} at offset {record.offset}")
        if last is None:
            offsets.pop(place, None)
        else:
            offsets[place] = last + 1
    return ConnectorOffsets(
        next_offsets=offsets,
        keys=keys,
        partitions=partitions,
        others=frozenset(others),
        clusters=frozenset(clusters),
        undecided=undecided,
    )


def parse_key(key: bytes) -> tuple[str, TopicPartition | None, str] | None:
    """Parse a key: connector, source partition (None: the key is of another kind of connector) and source alias.

    It is None if the key is not Connect's. A converter that writes schemas, too (`schemas.enable`), wraps the array.
    """
    body = _payload(key)
    if not isinstance(body, list) or len(body) != 2 or not isinstance(body[0], str):
        return None
    name, partition = body
    if not isinstance(partition, dict):
        return name, None, ""
    topic, number, cluster = partition.get("topic"), partition.get("partition"), partition.get("cluster")
    count = _count(number)
    if not (isinstance(topic, str) and isinstance(cluster, str)) or count is None:
        return name, None, ""
    return name, TopicPartition(topic=topic, partition=count), cluster


def parse_value(value: bytes | None, where: str) -> int | None:
    """Parse a value: the offset of the last copied record; None: the position was deleted.

    Raises BadInput, which begins with `where`, for any other value.
    """
    if value is None:
        return None
    body = _payload(value)
    if body is None:
        return None
    offset = _count(body.get("offset")) if isinstance(body, dict) else None
    if offset is None:
        raise BadInput(
            f"{where}: {value[:80]!r} is not an offset of MirrorMaker 2's source connector, which is written as "
            '{"offset": N}: name its offsets topic with --offsets-topic, and the connector with --connector'
        )
    return offset


def format_key(connector: str, cluster: str, source: TopicPartition) -> bytes:
    """Make the key as Connect writes it: the three fields in the order of Java's HashMap."""
    partition = {"cluster": cluster, "partition": source.partition, "topic": source.topic}
    return json.dumps([connector, partition], separators=(",", ":"), ensure_ascii=False).encode()


def format_value(next_offset: int) -> bytes:
    """Make the value for a lane that continues at `next_offset`, 1 at least: the offset before it was copied."""
    return json.dumps({"offset": next_offset - 1}, separators=(",", ":")).encode()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _payload(text: bytes) -> Any:
    try:
        body = json.loads(text)
    except ValueError:
        return None if text == b"" else text
    if isinstance(body, dict) and body.keys() == {"schema", "payload"}:
        return body["payload"]
    return body
