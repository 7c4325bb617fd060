"""A lane that wrote identical offsets keeps what they cost, also if the file says `translated` by now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ferry.config.settings import parse_settings
from ferry.features.identical.acts.judging import identical_of_plan
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import fold
from ferry.ledger.producer_codec import producer_record, sending_records
from ferry.model import Fate, LedgerRecord, Record, TopicPartition
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import HEARTBEATS, begun
from tests.pure.answers.world import World, world
from tests.pure.identical.test_planned import PIECE, PLAN
from tests.tiers import share

PRODUCER = 7
PLACE = TopicPartition("a.orders", 0)
VERBS: dict[str, tuple[str, ...]] = {
    "skip": ("skip", "a->b", "orders", "0", "--to", "9", "--reason", "damaged"),
    "skip --dry-run": ("skip", "a->b", "orders", "0", "--to", "9", "--reason", "damaged", "--dry-run"),
    "failover": ("failover", "a->b", "--no-reverse", "--approve-by", "ann"),
    "failover --dry-run": ("failover", "a->b", "--no-reverse", "--dry-run"),
    "switchover": ("switchover", "a->b", "--no-reverse", "--approve-by", "ann"),
    "migrate mm2": ("migrate", "mm2", "a->b"),
    "migrate mm2 --dry-run": ("migrate", "mm2", "a->b", "--dry-run"),
    "migrate hand-back": ("migrate", "hand-back", "a->b"),
    "migrate hand-back --dry-run": ("migrate", "hand-back", "a->b", "--dry-run"),
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as found:
        begun(found)
        assert found.ask("run", "a->b", "--id", "r1").code == 0
        yield found


def kept(made: World, lane: str = "live") -> None:
    """Write to the ledger what a run does before it sends the first batch at the source's offsets."""
    records = records_of(lane, made.now_ms)
    made.b.append(ledger_topic("a"), build_batch(records, made.now_ms, ProducerIdentity()), 0)


def records_of(lane: str, at_ms: int) -> list[Record]:
    return [
        producer_record(lane, producer_id=PRODUCER, run="r0", at_ms=at_ms),
        *sending_records(lane, PLACE, first=0, producer_id=PRODUCER, run="r0", at_ms=at_ms),
    ]


@pytest.mark.parametrize("verb", share(VERBS, 0, 3))
def test_what_does_not_support_them_is_refused_before_anything_is_written(made: World, verb: str) -> None:
    kept(made)
    before = made.ask("ledger", "a->b", "--runs").body
    answer = made.ask(*VERBS[verb])
    assert answer.code == 2, answer
    assert f"{PLACE}" in answer.body["error"]["message"]
    assert made.ask("ledger", "a->b", "--runs").body == before


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["switchover", "failover"])
def test_clients_are_not_moved_where_the_lane_of_the_flow_back_wrote_them(made: World, verb: str) -> None:
    records = [replace(one, key=one.key.replace(b"a.orders", b"b.orders")) for one in records_of("live", made.now_ms)]
    asked = (verb, "a->b", "--no-reverse", "--approve-by", "ann")
    made.write(*HEARTBEATS, "b->a.enabled = true")
    made.ask("run", "b->a", "--id", "back")
    made.a.append(ledger_topic("b"), build_batch(records, made.now_ms, ProducerIdentity()), 0)
    answer = made.ask(*asked)
    assert (answer.code, "b.orders-0" in answer.body["error"]["message"]) == (2, True)
    assert made.ask("switches", "list", "a->b").body["switches"] == []


@pytest.mark.parametrize(("topic", "refused"), [("a.orders", True), ("a.orders.backfill-x", False)])
@pytest.mark.parametrize("lane", ["live", "append-x"])
def test_no_lane_copies_with_translated_offsets_where_one_wrote_identical_ones(
    lane: str, topic: str, refused: bool
) -> None:
    plan = replace(PLAN, lane=lane, slices=(replace(PIECE, target=TopicPartition(topic, 0)),))
    flow = parse_settings(FILE, "mm2.properties").flows[0]
    opened = cast("OpenLane", SimpleNamespace(flow=flow, name=lane))
    shown = asyncio.run(identical_of_plan(opened).preview(fold(written("live"), 2), plan))
    assert [one.code for one in shown.refusals] == ["identical.stays"] * refused
    assert bool(shown.slices) is not refused


def written(lane: str) -> list[LedgerRecord]:
    """What the ledger has once a run of a lane wrote to the place."""
    return [
        LedgerRecord(offset=number, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=1)
        for number, one in enumerate(records_of(lane, 1))
    ]


FILE = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\ntopics = orders\n"
