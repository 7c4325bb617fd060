"""Before a driver changes the target, it looks whether a newer run has opened the lane: no fence covers that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused, Superseded, Unreachable
from ferry.features.acls.acts import sync
from ferry.features.acls.acts.sync import acls_of_plan
from ferry.features.drill.acts import scratch_groups
from ferry.features.groups.acts import mirror_topics
from ferry.features.lanes.acts import dropping
from ferry.features.migrate.acts import hand_back
from ferry.features.migrate.rules.hand_back import HANDED_BACK, position_records
from ferry.kafka.admin.topics import delete_topics
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.offsets import commit_offsets
from ferry.ledger.acl_codec import own_acl_record, synced_record
from ferry.ledger.codec import resume_record
from ferry.ledger.run_codec import run_record
from ferry.model import AclBinding, AclChange, ChangeKind, Flow, Heartbeat, Record, TopicChange, scratch_lane
from ferry.plan import plan_run
from ferry.plan.change_topics import change_topics
from ferry.plan.rules.planning import decide_plan
from ferry.protocol.driver import Driver
from ferry.wire.mirror_records import heartbeat_record
from tests.pure.answers.stories import begun
from tests.pure.answers.test_two_at_once import NEWER, migrated, other, paused
from tests.pure.answers.world import World, world
from tests.pure.decide.acl_values import acl
from tests.pure.decide.values import LANE, run_of
from tests.pure.run.test_starts import Lane, lane

SKIPPING = """ferry.transforms = one
ferry.transform.one.topics = orders
ferry.transform.one.where = TRUE
ferry.transform.one.poison = skip
"""
LETTERS = "ferry-dead-letters.a.internal"
COPY = acl("allow User:x Read on topic a.orders")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each look of a driver."""
    found: list[str] = []
    look = Driver.refuse_superseded

    async def counted(driver: Driver) -> None:
        found.append(driver.opened.record.run)
        await look(driver)

    monkeypatch.setattr(Driver, "refuse_superseded", counted)
    return found


def overtake(monkeypatch: pytest.MonkeyPatch, it: Lane) -> None:
    """Have a newer run open the lane once the driver has decided."""
    it.ledger.records += [run_record(run_of("older")), run_record(run_of("run"))]

    def slowly(*given: object) -> object:
        plan = decide_plan(*given)  # type: ignore[arg-type]
        it.ledger.records.append(run_record(run_of("newer")))
        return plan

    monkeypatch.setattr(plan_run, "decide_plan", slowly)


def topics(it: Lane) -> set[str]:
    return {place.topic for place in it.target.leaders}


def test_an_overtaken_driver_creates_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    with lane("") as it:
        overtake(monkeypatch, it)
        with pytest.raises(Superseded):
            it.opens()
        assert topics(it) == set()


def test_an_overtaken_driver_creates_no_topic_of_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    with lane(SKIPPING) as it:
        it.target.holds("a.orders", 2)
        overtake(monkeypatch, it)
        with pytest.raises(Superseded):
            it.opens()
        assert topics(it) == {"a.orders"}


def test_an_overtaken_driver_changes_no_acl(monkeypatch: pytest.MonkeyPatch, looks: list[str]) -> None:
    asked: list[str] = []

    async def described(cluster: Cluster) -> frozenset[AclBinding]:
        asked.append(cluster.alias)
        return frozenset()

    monkeypatch.setattr(sync, "described_acls", described)
    with lane("") as it:
        it.target.holds("a.orders", 2)
        it.opens()
        assert (asked, looks) == (["a"], []), "there is nothing that could be deleted"
    asked.clear()
    with lane("") as it:
        it.target.holds("a.orders", 2)
        made = AclChange(kind="create", binding=COPY, source=COPY)
        it.ledger.records.append(own_acl_record(LANE, made, source_cluster_id="", run="run", at_ms=1))
        overtake(monkeypatch, it)
        with pytest.raises(Superseded):
            it.opens()
        assert asked == []


def test_a_run_that_changes_nothing_does_not_look(looks: list[str]) -> None:
    with lane(SKIPPING) as it:
        it.opens()
        assert len(looks) == 2, "before the copy is created, and before the topic of dead letters is"
        assert topics(it) == {"a.orders", LETTERS}
        looks.clear()
        made = AclChange(kind="create", binding=COPY, source=COPY)
        settings, now_ms = acls_of_plan(it.opened)._settings, wall_ms()
        it.ledger.records.append(own_acl_record(LANE, made, source_cluster_id="", run="run", at_ms=now_ms))
        it.ledger.records.append(synced_record(LANE, run="run", settings=settings, at_ms=now_ms))
        it.opens()
        assert looks == []


def test_what_cannot_be_created_is_looked_at_again(looks: list[str]) -> None:
    with lane("") as it:
        it.target.creates = codes.TOPIC_AUTHORIZATION_FAILED
        it.opens()
        it.opens()
        assert looks == ["run", "run"]


def test_a_driver_that_is_overtaken_while_topics_are_created_deletes_none() -> None:
    with lane("") as it:
        it.target.holds("a.gone", 1)
        asked: list[str] = []
        ask = it.target.ask

        async def listening(request: Any, *given: Any, **more: Any) -> Any:
            asked.append(type(request).__name__)
            return await ask(request, *given, **more)

        it.target.ask = listening  # type: ignore[method-assign]
        left = iter([True, False])

        async def last_look() -> None:
            if not next(left):
                raise Superseded("r3 began")

        create = TopicChange(
            kind=ChangeKind.CREATE, topic="a.orders", source_topic="orders", partitions=2, replication_factor=1
        )
        changes = [create, replace(create, kind=ChangeKind.DELETE, topic="a.gone", source_topic="gone")]
        with pytest.raises(Superseded):
            it.loop.run(lambda: change_topics(it.target, changes, last_look))
        assert "CreateTopicsRequest" in asked
        assert "DeleteTopicsRequest" not in asked


def test_a_driver_that_is_overtaken_while_acls_are_read_deletes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with lane("") as it:
        it.target.holds("a.orders", 2)
        made = AclChange(kind="create", binding=COPY, source=COPY)
        it.ledger.records += [
            run_record(run_of("older")),
            run_record(run_of("run")),
            own_acl_record(LANE, made, source_cluster_id="", run="run", at_ms=1),
        ]
        deleted: list[AclBinding] = []

        async def described(cluster: Cluster) -> frozenset[AclBinding]:
            if cluster is it.source:
                return frozenset()
            it.ledger.records.append(run_record(run_of("newer")))
            return frozenset([COPY])

        async def may(_: Cluster) -> bool:
            return True

        async def delete(_: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, Refused]:
            deleted.extend(bindings)
            return {}

        monkeypatch.setattr(sync, "described_acls", described)
        monkeypatch.setattr(sync, "may_alter_cluster", may)
        monkeypatch.setattr(sync, "delete_acls", delete)
        with pytest.raises(Superseded):
            it.opens()
        assert deleted == []


OFFSETS = "mm2-offsets.a.internal"
HAND_BACK = "migrate", "hand-back", "a->b", "--create"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as found:
        yield found


def positions(made: World) -> int | None:
    """How many records MirrorMaker 2's offsets topic has; None: there is no such topic."""
    ends = [log.end for place, log in made.b.target.logs.items() if str(place).rpartition("-")[0] == OFFSETS]
    return sum(ends) if ends else None


@pytest.mark.slow
def test_an_overtaken_hand_back_writes_no_position(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    migrated(made)
    looks = iter(range(2))

    def slowly(*given: Any) -> Any:
        if next(looks):  # the writers are fenced, and the ledger is read
            other(made, NEWER)
        return position_records(*given)

    monkeypatch.setattr(hand_back, "position_records", slowly)
    assert made.ask(*HAND_BACK).body["error"]["kind"] == "superseded"
    assert (positions(made), paused(made)) == (None, [])


@pytest.mark.slow
def test_a_hand_back_that_is_overtaken_after_its_pause_writes_no_position(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(made)
    settle = Driver.settle

    async def slowly(driver: Driver) -> None:
        await settle(driver)
        other(made, NEWER)

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "settle", slowly)
        assert made.ask(*HAND_BACK).body["error"]["kind"] == "superseded"
    assert positions(made) is None
    ((_, why),) = paused(made)
    assert HANDED_BACK in why
    assert made.ask("run", "a->b", "--id", "r4").code == 0, "it copies nothing, because the flow is paused"
    assert (made.ask(*HAND_BACK).code, positions(made)) == (0, 2)


@pytest.mark.slow
def test_a_hand_back_that_dies_before_its_positions_leaves_a_pause_and_is_repeated(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = migrated(made)

    def dies(key: bytes, count: int) -> int:
        raise Unreachable("broker 1 of cluster b does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(hand_back, "partition_of_key", dies)  # the topic is created, and nothing is in it
        assert made.ask(*HAND_BACK).code != 0
    ((_, unwritten),) = paused(made)
    assert (positions(made), HANDED_BACK in unwritten) == (0, True)
    assert (made.ask(*HAND_BACK).code, positions(made)) == (0, 2)
    ((_, why),) = paused(made)
    assert HANDED_BACK in why
    assert len(why) < len(unwritten), "the pause no longer says that the positions are missing"
    adopt()
    assert paused(made) == []


FILE_BACK = "migrate", "hand-back", "a->b", "--output"


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False], ids=["a file", "no folder"])
def test_a_hand_back_to_a_file_that_cannot_be_new_does_not_begin(made: World, taken: bool) -> None:
    migrated(made)
    place = made.folder / ("taken" if taken else "nowhere/positions")
    if taken:
        place.symlink_to("elsewhere")
    answer = made.ask(*FILE_BACK, str(place))
    assert answer.body["error"]["kind"] == "bad-input"
    assert str(place) in answer.body["error"]["message"]
    assert paused(made) == []


def test_a_hand_back_says_that_it_is_written_when_the_file_is_there(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(made)
    place = made.folder / "positions"

    def full(*_: object, **__: object) -> Any:
        raise BadInput("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(hand_back, "new_file", full)
        assert made.ask(*FILE_BACK, str(place)).code != 0
    ((_, unwritten),) = paused(made)
    assert (HANDED_BACK in unwritten, place.exists()) == (True, False)
    assert made.ask(*FILE_BACK, str(place)).code == 0
    assert [json.loads(line)["value"] for line in place.read_text().splitlines()] == [{"offset": 7}, {"offset": 6}]
    ((_, why),) = paused(made)
    assert HANDED_BACK in why
    assert len(why) < len(unwritten), "the pause no longer says that the positions are missing"


def test_an_overtaken_hand_back_to_a_file_leaves_no_file(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    migrated(made)
    settle = Driver.settle

    async def slowly(driver: Driver) -> None:
        await settle(driver)
        other(made, NEWER)

    monkeypatch.setattr(Driver, "settle", slowly)
    assert made.ask(*FILE_BACK, str(made.folder / "positions")).body["error"]["kind"] == "superseded"
    assert not (made.folder / "positions").exists()


def test_a_flow_that_is_resumed_while_it_is_handed_back_keeps_its_positions(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(made)
    settle = Driver.settle

    async def slowly(driver: Driver) -> None:
        await settle(driver)
        other(made, resume_record(""))

    monkeypatch.setattr(Driver, "settle", slowly)
    assert made.ask(*HAND_BACK).body["error"]["kind"] == "refused"
    assert (positions(made), paused(made)) == (None, [])


def began(made: World, lane: str) -> None:
    """A newer run of a lane of a->b."""
    other(made, run_record(replace(run_of("r3"), flow=Flow(source="a", target="b"), lane=lane)))


def test_a_run_that_is_overtaken_before_it_writes_heartbeats_writes_none(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = "emit.offset-syncs.enabled = false", "emit.checkpoints.enabled = false"  # so the first look is for these
    begun(made, "emit.heartbeats.enabled = true", *others)

    def slowly(beat: Heartbeat) -> Record:
        began(made, "live")
        return heartbeat_record(beat)

    with monkeypatch.context() as patch:
        patch.setattr(mirror_topics, "heartbeat_record", slowly)
        made.ask("run", "a->b", "--id", "r1")
    assert "heartbeats-0" not in made.b.target.logs
    assert made.ask("run", "a->b", "--id", "r4").code == 0
    assert "heartbeats-0" in made.b.target.logs


@pytest.mark.slow
def test_a_drop_that_is_overtaken_while_topics_are_deleted_deletes_no_group(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made)
    window = "--from-offset", "users:0:2", "--to-offset", "users:0:7"
    assert made.ask("backfill", "a->b", "--lane", "backfill-june", *window).code == 0
    deleted: list[str] = []

    async def slowly(*given: Any) -> Any:
        began(made, "backfill-june")
        return await delete_topics(*given)

    async def delete(_: Cluster, group: str) -> None:
        deleted.append(group)

    with monkeypatch.context() as patch:
        patch.setattr(dropping, "delete_topics", slowly)
        patch.setattr(dropping, "delete_group", delete)
        dropped = made.ask("lanes", "drop", "a->b", "backfill-june", "--yes")
    assert dropped.body["error"]["kind"] == "superseded"
    assert deleted == []


@pytest.mark.slow
def test_a_drill_whose_lane_is_dropped_before_its_groups_are_written_writes_none(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    lanes: list[str] = []

    async def slowly(cluster: Cluster, offsets: Mapping[str, Any], **more: Any) -> Any:
        lanes.extend(filter(None, map(scratch_lane, offsets)))
        began(made, lanes[0])
        return await commit_offsets(cluster, offsets, **more)

    with monkeypatch.context() as patch:
        patch.setattr(scratch_groups, "commit_offsets", slowly)
        made.ask("drills", "shadow", "a->b", "--from", "earliest")
    assert lanes
    assert [group for group in made.b.groups if scratch_lane(group)] == []
