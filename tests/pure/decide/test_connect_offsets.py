"""Positions of MirrorMaker 2's source connector, as Kafka Connect keeps them."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.features.migrate.rules.connect_offsets import (
    ConnectorOffsets,
    connector_offsets,
    dedicated_group,
    dedicated_offsets_topic,
    format_key,
    format_value,
    parse_key,
    parse_value,
)
from ferry.model import Fate, LedgerRecord, TopicPartition
from tests.golden import Golden
from tests.pure.decide.values import place, places

CONNECTOR = "MirrorSourceConnector"
KEY = b'["MirrorSourceConnector",{"cluster":"a","partition":3,"topic":"orders"}]'
"""As MirrorMaker 2 4.3.0 writes it: `tests/kafka/adopt/test_takeover.py` has it go on from keys like this."""


def record(key: bytes, value: bytes | None, *, offset: int = 0, fate: Fate = Fate.COMMITTED) -> LedgerRecord:
    return LedgerRecord(offset=offset, key=key, value=value, fate=fate, producer_id=-1)


def folded(*records: LedgerRecord, connector: str = CONNECTOR, cluster: str = "a") -> ConnectorOffsets:
    numbered = [(0, one) for one in records]
    return connector_offsets(numbered, connector, cluster, "offsets")


def test_keys_are_written_as_mirrormaker_2_writes_them() -> None:
    assert format_key(CONNECTOR, "a", place("orders", 3)) == KEY
    assert parse_key(KEY) == (CONNECTOR, place("orders", 3), "a")
    assert (format_value(42), parse_value(b'{"offset":41}', "x")) == (b'{"offset":41}', 41)
    assert (dedicated_offsets_topic("a"), dedicated_group("a")) == ("mm2-offsets.a.internal", "a-mm2")


@given(source=places, cluster=st.text(min_size=1, max_size=5), next_offset=st.integers(1, 2**62))
def test_a_position_comes_back(source: TopicPartition, cluster: str, next_offset: int) -> None:
    written = record(format_key("any", cluster, source), format_value(next_offset))
    assert folded(written, connector="any", cluster=cluster).next_offsets == {source: next_offset}


@given(st.permutations(["cluster", "partition", "topic"]), st.randoms())
def test_the_order_of_fields_and_blanks_mean_nothing(names: list[str], rng: random.Random) -> None:
    fields = {"cluster": "a", "partition": 3, "topic": "orders"}
    text = json.dumps([CONNECTOR, {name: fields[name] for name in names}], indent=rng.choice([None, 1]))
    assert parse_key(text.encode()) == (CONNECTOR, place("orders", 3), "a")


def test_a_converter_may_write_schemas_along() -> None:
    key = json.dumps({"schema": None, "payload": json.loads(KEY)}).encode()
    value = json.dumps({"schema": {"type": "map"}, "payload": {"offset": 9}}).encode()
    assert folded(record(key, value)).next_offsets == {place("orders", 3): 10}


def test_the_last_record_of_a_key_counts_and_a_tombstone_takes_the_position_back() -> None:
    first, second = record(KEY, b'{"offset":9}'), record(KEY, b'{"offset":12}', offset=1)
    assert folded(first, second).next_offsets == {place("orders", 3): 13}
    gone = folded(first, second, record(KEY, None, offset=2))
    assert (gone.next_offsets, gone.keys) == ({}, {place("orders", 3): KEY})


def test_undecided_and_aborted_positions_do_not_count() -> None:
    committed = record(KEY, b'{"offset":9}')
    aborted = record(KEY, b'{"offset":12}', offset=1, fate=Fate.ABORTED)
    assert folded(committed, aborted).next_offsets == {place("orders", 3): 10}
    still_open = folded(committed, record(KEY, b'{"offset":12}', offset=1, fate=Fate.OPEN))
    assert (still_open.undecided, still_open.next_offsets) == (1, {place("orders", 3): 10})


def test_others_in_the_topic_are_named_and_left_alone() -> None:
    found = folded(
        record(b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"a"}]', b'{"offset":0}'),
        record(b'["files",{"filename":"/x"}]', b'{"position":4}'),
        record(b'["MirrorSourceConnector",{"cluster":"c","partition":0,"topic":"t"}]', b'{"offset":4}'),
        record(b"\xff\x00 nobody's", b"{}"),
    )
    assert (found.next_offsets, found.others, found.clusters) == (
        {},
        frozenset({"MirrorHeartbeatConnector", "files"}),
        frozenset("c"),
    )


@pytest.mark.parametrize(
    "value", [b'{"offset":"9"}', b'{"offset":-1}', b'{"offset":true}', b"[9]", b"9", b"\x00\x01", b'{"other":1}', b"{"]
)
def test_a_value_that_is_no_offset_is_refused_with_its_place(value: bytes, golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        folded(record(KEY, value, offset=7))
    golden(wrong.value)
