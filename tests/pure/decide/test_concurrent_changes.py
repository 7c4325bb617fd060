"""What happened while groups were looked at stops a pass, or takes single groups and offsets out of it."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.groups.rules.checkpoints import TargetGroups, Write
from ferry.features.groups.rules.codec import group_record
from ferry.features.groups.rules.concurrent_changes import concurrent_changes, left_to_others, still_there
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.ledger.codec import encode, pause_record
from ferry.ledger.run_codec import run_record
from ferry.model import (
    Checkpoint,
    CommittedOffset,
    Fate,
    Flow,
    Found,
    LedgerRecord,
    Origin,
    Pause,
    Record,
    RunRecord,
    TopicPartition,
    Why,
)
from tests.golden import Golden
from tests.said import facts_in

LANE, NOW = "main", 1_000_000
PLACE = TopicPartition("a.orders", 0)
HELD = HeldGroup(offsets={PLACE: Held(Wrote(5, 7))}, sources={"a.orders": "orders"}, renewed_ms=0)
PAUSE = Pause(topic="", who="ann", why="switch", since_ms=0)


def logged(*records: Record) -> list[LedgerRecord]:
    return [
        LedgerRecord(offset=100 + number, key=one.key, value=one.value, fate=Fate.COMMITTED, producer_id=1)
        for number, one in enumerate(records)
    ]


def group(lane: str = LANE, name: str = "app", held: HeldGroup = HELD) -> Record:
    return group_record(lane, name, held, run="r9", at_ms=NOW)


def test_a_pause_of_the_flow_stops_everybody_and_one_that_is_lifted_or_of_a_topic_nobody(golden: Golden) -> None:
    lifted = Record(key=encode(["pause", ""]), value=None)
    topic = pause_record(replace(PAUSE, topic="orders"))
    over = pause_record(replace(PAUSE, until_ms=NOW - 1))
    for is_run in (False, True):
        found = concurrent_changes(logged(pause_record(PAUSE)), LANE, now_ms=NOW, is_run=is_run)
        golden(found.why)
        for harmless in ([pause_record(PAUSE), lifted], [topic], [over]):
            assert concurrent_changes(logged(*harmless), LANE, now_ms=NOW, is_run=is_run).why is None


def test_a_newer_run_stops_a_run_of_its_lane_alone(golden: Golden) -> None:
    def opened(lane: str) -> list[LedgerRecord]:
        run = RunRecord(
            flow=Flow(source="old", target="new"),
            lane=lane,
            run="r2",
            slots=1,
            config_digest="",
            started_ms=NOW,
            origin=Origin(host="h"),
        )
        return logged(run_record(run))

    golden(concurrent_changes(opened(LANE), LANE, now_ms=NOW, is_run=True).why)
    assert concurrent_changes(opened(LANE), LANE, now_ms=NOW, is_run=False).why is None
    assert concurrent_changes(opened("other"), LANE, now_ms=NOW, is_run=True).why is None


def test_groups_of_another_pass_are_told_from_the_own() -> None:
    records = logged(group(), group(name="own"), group(lane="other", name="b"), group(name="back"))
    records += [replace(records[-1], offset=104, value=None)]
    found = concurrent_changes(records, LANE, own={101}, now_ms=NOW, is_run=True)
    assert found.taken == {"app": "run r9", "back": "a rollback"}
    assert [(one.group, one.why) for one in left_to_others(found.taken, {"app", "own"})] == [("app", Why.MOVED)]


def test_only_offsets_that_lie_as_they_were_seen_are_written_over() -> None:
    places = [TopicPartition("a.orders", number) for number in range(5)]
    before = [CommittedOffset(3), CommittedOffset(3), None, None, CommittedOffset(3)]
    one = Checkpoint(
        group="app",
        source=PLACE,
        source_offset=5,
        target=PLACE,
        target_offset=7,
        outcome=Found.EXACT,
        metadata="",
    )
    writes = [Write(one._replace(target=place), was, None) for place, was in zip(places, before, strict=True)]
    now = TargetGroups(
        listed={},
        offsets={"app": {places[0]: CommittedOffset(3), places[1]: CommittedOffset(9), places[3]: CommittedOffset(1)}},
        pending={"app": frozenset({places[4]})},
        failed={"lost": "no coordinator"},
    )
    kept, left = still_there({"app": writes, "lost": writes}, now, "new")
    assert kept == {"app": [writes[0], writes[2]]}
    assert [(found.group, found.place, found.why) for found in left] == [
        ("app", places[1], Why.MOVED),
        ("app", places[3], Why.MOVED),
        ("app", places[4], Why.PENDING),
        ("lost", None, Why.FAILED),
    ]
    assert [facts_in(one.message)["how"] for one in left[:2]] == ["from 3 to 9", "from none to 1"]
