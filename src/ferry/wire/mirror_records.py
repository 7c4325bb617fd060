"""Records of MirrorMaker 2's internal topics, key and value, to bytes and back.

Sources: `Checkpoint`, `Heartbeat` and `OffsetSync` of Kafka 4.3.0 (`org.apache.kafka.connect.mirror`), whose fields are
of `org.apache.kafka.common.protocol.types`: integers are big-endian, a STRING is UTF-8 after its length as INT16.

```
checkpoint   key: STRING group, STRING topic, INT32 partition    value: INT16 version (0), INT64 upstream offset,
                                                                        INT64 downstream offset, STRING metadata
heartbeat    key: STRING source alias, STRING target alias       value: INT16 version (0), INT64 timestamp (ms)
offset sync  key: STRING topic, INT32 partition                  value: INT64 upstream offset, INT64 downstream offset
```

A key never gets a tombstone: Kafka's readers of these topics take every value to have bytes.
"""

from __future__ import annotations

import struct
from typing import Any

from ferry.errors import BadInput
from ferry.model import GroupCheckpoint, Heartbeat, OffsetSync, Record, TopicPartition

VERSION = 0
"""The version of checkpoints and heartbeats; offset syncs have none."""

_LONGEST_STRING = 32_767


def checkpoint_record(checkpoint: GroupCheckpoint) -> Record:
    """Encode a checkpoint in MirrorMaker 2's form. Raises BadInput when a text is longer than the format holds."""
    place = checkpoint.target
    return Record(
        key=_string(checkpoint.group) + _string(place.topic) + struct.pack(">i", place.partition),
        value=struct.pack(">hqq", VERSION, checkpoint.upstream, checkpoint.downstream) + _string(checkpoint.metadata),
    )


def parse_checkpoint(key: bytes | None, value: bytes | None) -> GroupCheckpoint:
    """Return the checkpoint of the bytes that `checkpoint_record` made. Raises BadInput for other bytes."""
    keys, values = _Reader("checkpoint", key), _Reader("checkpoint", value)
    values.version()
    group, topic = keys.string(), keys.string()
    return GroupCheckpoint(
        group=group,
        target=TopicPartition(topic=topic, partition=keys.number(">i")),
        upstream=values.number(">q"),
        downstream=values.number(">q"),
        metadata=values.string(),
    )


def heartbeat_record(heartbeat: Heartbeat) -> Record:
    """Encode a heartbeat in MirrorMaker 2's form. Raises BadInput when an alias is longer than the format holds."""
    return Record(
        key=_string(heartbeat.source_alias) + _string(heartbeat.target_alias),
        value=struct.pack(">hq", VERSION, heartbeat.at_ms),
    )


def parse_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Return the heartbeat of the bytes that `heartbeat_record` made. Raises BadInput for other bytes."""
    keys, values = _Reader("heartbeat", key), _Reader("heartbeat", value)
    values.version()
    return Heartbeat(source_alias=keys.string(), target_alias=keys.string(), at_ms=values.number(">q"))


def offset_sync_record(sync: OffsetSync) -> Record:
    """Encode an offset sync in MirrorMaker 2's form. Raises BadInput when a text is longer than the format holds."""
    return Record(
        key=_string(sync.source.topic) + struct.pack(">i", sync.source.partition),
        value=struct.pack(">qq", sync.upstream, sync.downstream),
    )


def parse_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Return the offset sync of the bytes that `offset_sync_record` made. Raises BadInput for other bytes."""
    keys, values = _Reader("offset sync", key), _Reader("offset sync", value)
    return OffsetSync(
        source=TopicPartition(topic=keys.string(), partition=keys.number(">i")),
        upstream=values.number(">q"),
        downstream=values.number(">q"),
    )


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_STRING:
        raise BadInput(
            f"{text[:60]!r}... has {len(data)} bytes, a record of MirrorMaker 2 holds {_LONGEST_STRING}: shorten it"
        )
    return struct.pack(">h", len(data)) + data


class _Reader:
    """Reads one field after the other, and names the kind of record where the bytes end."""

    def __init__(self, what: str, data: bytes | None) -> None:
        if data is None:
            raise BadInput(f"a {what} of MirrorMaker 2 without key or value: {_OTHERS}")
        self._what = what
        self._data = data
        self._at = 0

    def number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def string(self) -> str:
        length = self.number(">h")
        data = self._take(length)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"a {self._what} of MirrorMaker 2 has a text that is not UTF-8: {_OTHERS}") from error

    def version(self) -> None:
        version = self.number(">h")
        if version != VERSION:
            raise BadInput(f"a {self._what} of MirrorMaker 2 has version {version}, Ferry reads {VERSION}: {_OTHERS}")

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._at:
            raise BadInput(f"a {self._what} of MirrorMaker 2 ends after {len(self._data)} bytes: {_OTHERS}")
        self._at += count
        return self._data[self._at - count : self._at]


_OTHERS = "look at who else writes to this topic"
