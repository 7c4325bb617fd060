"""The bytes of MirrorMaker 2's internal topics, against its own classes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.model import GroupCheckpoint, Heartbeat, OffsetSync, Record, TopicPartition
from ferry.wire.mirror_records import (
    checkpoint_record,
    heartbeat_record,
    offset_sync_record,
    parse_checkpoint,
    parse_heartbeat,
    parse_offset_sync,
)
from tests.golden import Golden

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mirror-records.json").read_text())["records"]

# Java writes a lone surrogate as a question mark; no name that Kafka hands out has one.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
OFFSETS = st.integers(-(2**63), 2**63 - 1)
PLACES = st.builds(TopicPartition, topic=TEXT, partition=st.integers(-(2**31), 2**31 - 1))
CHECKPOINTS = st.builds(GroupCheckpoint, group=TEXT, target=PLACES, upstream=OFFSETS, downstream=OFFSETS, metadata=TEXT)
HEARTBEATS = st.builds(Heartbeat, source_alias=TEXT, target_alias=TEXT, at_ms=OFFSETS)
SYNCS = st.builds(OffsetSync, source=PLACES, upstream=OFFSETS, downstream=OFFSETS)
PARSERS = {"checkpoint": parse_checkpoint, "heartbeat": parse_heartbeat, "sync": parse_offset_sync}


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['kind']}-{row['fields'][0][:8]}")
def test_golden_bytes(row: dict[str, Any]) -> None:
    """Bytes that Kafka's classes made are read, and written again just so."""
    thing = golden_value(str(row["kind"]), list(row["fields"]))
    key, value = bytes.fromhex(str(row["key"])), bytes.fromhex(str(row["value"]))
    assert PARSERS[str(row["kind"])](key, value) == thing
    assert record_of(thing) == Record(key=key, value=value)


@pytest.mark.slow
@given(thing=CHECKPOINTS | HEARTBEATS | SYNCS)
def test_what_was_written_is_read(thing: GroupCheckpoint | Heartbeat | OffsetSync) -> None:
    record = record_of(thing)
    assert PARSERS[kind_of(thing)](record.key, record.value) == thing


@given(thing=CHECKPOINTS | HEARTBEATS | SYNCS, data=st.data())
def test_bytes_that_end_early_are_no_record(
    thing: GroupCheckpoint | Heartbeat | OffsetSync, data: st.DataObject
) -> None:
    record = record_of(thing)
    assert record.value is not None
    value = record.value[: data.draw(st.integers(0, len(record.value) - 1))]
    with pytest.raises(BadInput):
        PARSERS[kind_of(thing)](record.key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"\0\1g\0\1t\0\0\0\0", None, id="no value"),
        pytest.param(b"\0\1g\0\1t\0\0\0\0", b"\0\1" + bytes(18), id="another version"),
        pytest.param(b"\0\1\xff\0\1t\0\0\0\0", bytes(20), id="no UTF-8"),
        pytest.param(b"\xff\xffg", bytes(20), id="a short key"),
    ],
)
def test_bytes_that_are_no_checkpoint(key: bytes, value: bytes | None, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        parse_checkpoint(key, value)
    golden(caught.value)


def test_a_text_that_does_not_fit(golden: Golden) -> None:
    checkpoint = GroupCheckpoint(
        group="g" * 32_768, target=TopicPartition(topic="t", partition=0), upstream=0, downstream=0
    )
    with pytest.raises(BadInput) as caught:
        checkpoint_record(checkpoint)
    golden(caught.value)


def golden_value(kind: str, fields: list[object]) -> GroupCheckpoint | Heartbeat | OffsetSync:
    match kind, fields:
        case "checkpoint", [str(group), str(topic), int(partition), int(up), int(down), str(metadata)]:
            place = TopicPartition(topic=topic, partition=partition)
            return GroupCheckpoint(group=group, target=place, upstream=up, downstream=down, metadata=metadata)
        case "heartbeat", [str(source), str(target), int(at_ms)]:
            return Heartbeat(source_alias=source, target_alias=target, at_ms=at_ms)
        case "sync", [str(topic), int(partition), int(up), int(down)]:
            return OffsetSync(source=TopicPartition(topic=topic, partition=partition), upstream=up, downstream=down)
    raise AssertionError((kind, fields))


def kind_of(thing: GroupCheckpoint | Heartbeat | OffsetSync) -> str:
    return {GroupCheckpoint: "checkpoint", Heartbeat: "heartbeat", OffsetSync: "sync"}[type(thing)]


def record_of(thing: GroupCheckpoint | Heartbeat | OffsetSync) -> Record:
    match thing:
        case GroupCheckpoint():
            return checkpoint_record(thing)
        case Heartbeat():
            return heartbeat_record(thing)
        case OffsetSync():
            return offset_sync_record(thing)
