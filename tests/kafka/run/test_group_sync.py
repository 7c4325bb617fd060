"""Groups of a real source written to a real target: by runs and by hand, again and after a crash, none of others'."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from ferry.clock import wall_ms
from ferry.copy.slot_end import end_of
from ferry.dev import RunningCluster
from ferry.errors import BadInput, Refused, Unreachable
from ferry.features.groups.acts import checkpoint as module
from ferry.features.groups.acts.checkpoint import GroupSync, Looked, StoodBack
from ferry.features.groups.acts.of_run import checkpoint, sync_groups, sync_groups_unattended
from ferry.features.groups.acts.snapshots import GroupSnapshots
from ferry.features.groups.acts.table import find_groups
from ferry.features.groups.acts.translate import translate, translate_group
from ferry.features.groups.rules.codec import saved_groups
from ferry.features.groups.rules.offset_map import Ahead, Exact
from ferry.features.groups.rules.selection import GroupRules
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.offsets import commit_offsets
from ferry.lane import summaries
from ferry.lane.connections import TargetConnection
from ferry.ledger import summary
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import LedgerView
from ferry.model import CommittedOffset, GroupOutcome, Pause, TopicPartition, Why
from ferry.plan.options import RunOptions
from ferry.run.ledger.access import LedgerAccess
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, read_topic, send, wait_until
from tests.kafka.run.hooks import Hooks, copy_held
from tests.tiers import ANSWER_S

PROVIDERS = "org.apache.kafka.common.config.provider"


@dataclass(frozen=True)
class Groups:
    """A flow of two partitions with twenty records each, all copied; groups have names of their own."""

    lab: Lab
    topic: str
    mark: str

    @property
    def copy(self) -> str:
        return self.lab.target_topic(self.topic)

    def name(self, group: str) -> str:
        return f"{group}-{self.mark}"

    def commit(self, side: RunningCluster, group: str, offsets: Mapping[int, int], *, metadata: str = "") -> None:
        """From outside, as an operator's tool does it."""
        topic = self.topic if side is self.lab.source else self.copy
        with consumer(side, self.name(group)) as client:
            places = [Place(topic, number, offset, metadata=metadata) for number, offset in offsets.items()]
            client.commit(offsets=places, asynchronous=False)

    def at(self, group: str, side: RunningCluster | None = None) -> dict[int, int]:
        """Where a group stands, on the target unless told else, as kafka-python's admin client reads it."""
        return {number: offset for number, (offset, _) in self.read(group, side).items()}

    def read(self, group: str, side: RunningCluster | None = None) -> dict[int, tuple[int, str]]:
        side = side or self.lab.target
        topic = self.topic if side is self.lab.source else self.copy
        with closing(KafkaAdminClient(bootstrap_servers=side.bootstrap)) as admin:
            name = self.name(group)
            found = admin.list_group_offsets({name: None})[name]
        return {place.partition: (at.offset, at.metadata) for place, at in found.items() if place.topic == topic}

    def sync(self, **options: bool) -> tuple[Looked, GroupOutcome | None]:
        with self.lab.runs() as runs:
            return sync_groups(runs, f"groups-{secrets.token_hex(4)}", only=None, **options)

    def synced(self, **options: bool) -> GroupOutcome:
        done = self.sync(**options)[1]
        assert done is not None
        return done

    def between(self) -> GroupOutcome:
        """What the DAG of groups does between runs."""
        with self.lab.runs() as runs:
            done = sync_groups_unattended(runs, f"groups@dag@sync@{secrets.token_hex(4)}")[1]
        assert done is not None
        return done

    def ran(self, **settings: str) -> GroupOutcome:
        """A run of the flow, with its checkpoint step."""
        lab = replace(self.lab, settings={**self.lab.settings, **settings})
        with lab.runs() as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), RunOptions())
            lab.copy(runs, plan)
            done = checkpoint(runs, plan.run)
        assert done is not None
        return done

    def recreate(self, side: RunningCluster, topic: str) -> None:
        """By hand."""
        delete_topic(side, topic)
        admin = AdminClient({"bootstrap.servers": side.bootstrap})
        wait_until(lambda: topic not in admin.list_topics(timeout=ANSWER_S).topics)
        create_topic(side, topic, 2)

    def next_record(self, side: RunningCluster, topic: str, group: str) -> dict[int, bytes | None]:
        """What a reader of the group gets next on each partition."""
        rows = read_topic(side.bootstrap, topic)
        at = self.at(group, side)
        return {number: next(row[2] for row in rows[number] if row[0] >= offset) for number, offset in at.items()}

    def why(self, done: GroupOutcome | Looked) -> dict[str, set[Why]]:
        found: dict[str, set[Why]] = {}
        for one in done.left:
            found.setdefault(one.group.removesuffix(f"-{self.mark}"), set()).add(one.why)
        return found


@contextmanager
def consumer(side: RunningCluster, group: str, **settings: str) -> Iterator[Consumer]:
    base = {"bootstrap.servers": side.bootstrap, "group.id": group, "enable.auto.commit": "false"}
    client = Consumer({**base, "auto.offset.reset": "error", **settings})
    try:
        yield client
    finally:
        client.close()


@contextmanager
def member(side: RunningCluster, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A group with a member that has its partitions."""
    settings = {"auto.offset.reset": "earliest", "group.protocol": protocol}
    with consumer(side, group, **settings) as client:
        client.subscribe([topic])
        while not client.assignment():
            client.poll(0.1)
        yield client


@pytest.fixture
def groups(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Groups:
    mark = secrets.token_hex(4)
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(40, partitions=2))
    settings = {"groups": f".*-{mark}"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    lab.micro_run()
    return Groups(lab=lab, topic=topic, mark=mark)


def end(side: RunningCluster, topic: str, partition: int) -> int:
    """Where a read_committed reader ends now."""
    with consumer(side, "nobody") as client:
        return int(client.get_watermark_offsets(Place(topic, partition), timeout=ANSWER_S)[1])


@pytest.mark.timeout(180)
def test_groups_follow_the_source_and_what_others_did_on_the_target_stays(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "done", {0: 20, 1: 20})
    groups.commit(source, "half", {0: 10}, metadata="half way")
    groups.commit(source, "ahead", {0: 10**6, 1: 3})
    groups.commit(source, "busy", {0: 5})
    groups.commit(source, "foreign", {0: 5})
    groups.commit(target, "foreign", {0: 2})
    with member(source, groups.name("new"), groups.topic, "consumer") as client:
        client.commit(offsets=[Place(groups.topic, 0, 7)], asynchronous=False)
    with member(target, groups.name("busy"), groups.copy, "consumer") as busy:
        busy.commit(offsets=[Place(groups.copy, 0, 1)], asynchronous=False)
        looked, nothing = groups.sync(dry_run=True)
        assert (nothing, groups.at("done")) == (None, {}), "a dry run writes nothing"
        wish = {
            (write.checkpoint.group, write.checkpoint.target.partition): write.checkpoint.target_offset
            for writes in looked.decided.writes.values()
            for write in writes
        }
        done = groups.synced()
        assert groups.why(done) == {"busy": {Why.ACTIVE}, "foreign": {Why.MOVED}}
        assert (done.groups, done.offsets, done.inexact) == (4, 6, {"ahead": 1})
        assert groups.at("busy") == {0: 1}
    for group in ("done", "half", "ahead", "new"):
        assert groups.at(group) == {n: wish[groups.name(group), n] for n in groups.at(group)}
    ends = {number: end(target, groups.copy, number) for number in (0, 1)}
    assert groups.at("done") == ends, "who has read all has lag 0, behind the last commit marker"
    assert groups.at("half") == {0: 10}
    assert groups.read("half") == groups.read("half", source), "with what the consumer noted"
    assert groups.at("ahead") == {0: ends[0], 1: 3}
    assert groups.at("new") == {0: 7}
    assert groups.at("foreign") == {0: 2}

    again = groups.synced()
    assert (again.groups, again.unchanged) == (0, 6), "a second pass has nothing to do"
    assert groups.why(again) == {"foreign": {Why.MOVED}, "busy": {Why.MOVED}}, "what members left behind is theirs"

    groups.commit(source, "half", {0: 4})
    groups.commit(target, "new", {0: 9})
    admin = AdminClient({"bootstrap.servers": source.bootstrap})  # held: its answers die with it
    admin.delete_consumer_groups([groups.name("ahead")])[groups.name("ahead")].result(ANSWER_S)
    done = groups.synced()
    assert groups.at("half") == {0: 4}, "a group that went back at the source goes back"
    found = groups.why(done)
    assert (found["new"], found["ahead"]) == ({Why.MOVED}, {Why.DELETED})
    assert groups.at("new") == {0: 9}
    assert groups.at("ahead") == {0: ends[0], 1: 3}
    groups.synced(force=True)
    assert (groups.at("new"), groups.at("foreign")) == ({0: 7}, {0: 5})
    groups.commit(source, "new", {0: 8})
    groups.synced()
    assert groups.at("new") == {0: 8}, "what was forced is Ferry's"
    groups.synced()
    groups.commit(target, "new", {0: 7})
    assert groups.why(groups.synced())["new"] == {Why.MOVED}, "somebody went back to where Ferry had been before"
    assert groups.at("new") == {0: 7}


def test_what_is_not_at_hand_now_is_not_gone(groups: Groups) -> None:
    """A group in use at the target while it is away at the source, and one whose topic the flow leaves out by now."""
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "used", {0: 10, 1: 10})
    groups.commit(source, "app", {0: 5})
    groups.synced()
    with member(target, groups.name("used"), groups.copy):
        admin = AdminClient({"bootstrap.servers": source.bootstrap})  # held: its answers die with it
        admin.delete_consumer_groups([groups.name("used")])[groups.name("used")].result(ANSWER_S)
        assert groups.why(groups.synced()) == {}
    groups.commit(source, "used", {0: 15, 1: 15})
    done = groups.synced()
    assert (groups.why(done), groups.at("used")) == ({}, {0: 15, 1: 15}), "Ferry wrote it, and nobody moved it"
    narrowed = replace(groups, lab=replace(groups.lab, topics=("others",)))
    assert groups.why(narrowed.synced()) == {}
    groups.commit(source, "app", {0: 6})
    assert (groups.why(groups.synced()), groups.at("app")) == ({}, {0: 6})


def test_a_crash_between_the_ledger_and_the_target_is_told_from_a_stranger(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = groups.lab.source
    groups.commit(source, "app", {0: 5, 1: 5})
    groups.synced()
    groups.commit(source, "app", {0: 15, 1: 15})

    async def half(cluster: Cluster, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]], **_: Any) -> None:
        """The coordinator got one of the two offsets, and then the process was killed."""
        first = {group: dict(sorted(places.items())[:1]) for group, places in offsets.items()}
        await commit_offsets(cluster, first)
        raise Unreachable("killed")

    monkeypatch.setattr(module, "commit_offsets", half)
    with pytest.raises(Unreachable, match="killed"):
        groups.sync()
    monkeypatch.undo()
    assert groups.at("app") == {0: 15, 1: 5}
    groups.commit(source, "app", {0: 16, 1: 16})
    done = groups.synced()
    assert (done.left, groups.at("app")) == ((), {0: 16, 1: 16})


def while_looking(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let `act` happen once, between the next look and what comes of it."""
    look = GroupSync.look

    async def held_up(self: GroupSync, view: LedgerView, rules: GroupRules) -> Looked:
        looked = await look(self, view, rules)
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:  # an event loop of its own
            pool.submit(act).result(2 * ANSWER_S)
        return looked

    monkeypatch.setattr(GroupSync, "look", held_up)


@pytest.mark.timeout(180)
def test_a_pass_that_was_held_up_leaves_groups_to_whoever_came_since(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 10, 1: 10})
    groups.synced()
    groups.commit(source, "app", {0: 15, 1: 15})
    while_looking(monkeypatch, lambda: groups.commit(target, "app", {0: 12}))
    done = groups.synced()
    assert (groups.at("app"), groups.why(done)) == ({0: 12, 1: 15}, {"app": {Why.MOVED}}), "a consumer came and left"
    assert done.offsets == 1

    def follow(offset: int, follower: Callable[[], object]) -> Callable[[], object]:
        def act() -> None:
            groups.commit(source, "other", {0: offset})
            follower()

        return act

    groups.commit(source, "other", {0: 5})
    while_looking(monkeypatch, follow(8, groups.synced))
    done = groups.synced()
    assert groups.at("other") == {0: 8}, "another pass knew more"
    assert groups.why(done)["other"] == {Why.MOVED}
    groups.commit(source, "other", {0: 9})
    groups.synced()
    assert groups.at("other") == {0: 9}, "and its memory stays, by which the group is followed"

    def paused() -> None:
        with TargetConnection.of(groups.lab.flow) as connection:
            pause = Pause(topic="", who="ann@desk", why="switch", since_ms=wall_ms())
            connection.run(partial(connection.ledger.append, [pause_record(pause)]))

    with groups.lab.runs() as runs:
        plan = runs.open_run("r1", local_origin(), RunOptions())
        groups.lab.copy(runs, plan)
        groups.commit(source, "other", {0: 11})
        while_looking(monkeypatch, follow(10, groups.ran))
        assert checkpoint(runs, "r1") is None
        assert groups.at("other") == {0: 10}, "a newer run knew better"
        assert runs.report("r1").groups is None
        plan = runs.open_run("r2", local_origin(), RunOptions())
        groups.lab.copy(runs, plan)
        while_looking(monkeypatch, follow(12, paused))
        assert checkpoint(runs, "r2") is None
    while_looking(monkeypatch, follow(13, paused))
    with pytest.raises(StoodBack, match=r"ann@desk paused the flow \(switch\) while they were checked"):
        groups.sync()
    assert groups.at("other") == {0: 10}


def test_a_run_translates_after_the_copy_and_names_what_failed(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 20})
    groups.commit(source, "gone", {1: 20})
    with groups.lab.runs() as runs:
        send(producer(source), groups.topic, numbered(10, partitions=1, start=40))
        groups.commit(source, "app", {0: 30})
        plan = runs.open_or_keep("r1", local_origin(), RunOptions())
        groups.lab.copy(runs, plan)
        done = checkpoint(runs, "r1")
        assert done is not None
        assert groups.at("app") == {0: end(target, groups.copy, 0)}
        assert runs.report("r1").groups == done
        repeated = checkpoint(runs, "r1")
        assert repeated is not None
        assert (repeated.groups, repeated.unchanged) == (0, 2), "a retry finds it done"
        groups.commit(source, "app", {0: 12})
        groups.commit(source, "gone", {1: 12})
        delete_topic(target, groups.copy)
        wait_until(
            lambda: not groups.at("app") and not groups.at("gone"),
            what="the coordinator drops the offsets of the deleted topic",
        )
        done = checkpoint(runs, "r1")
        assert done is not None
        assert groups.why(done) == {"app": {Why.FAILED}, "gone": {Why.FAILED}}
        assert all(f"no longer has {groups.copy}" in one.message for one in done.left)
        report = runs.report("r1")
        assert report.state == "partial"


def test_what_lay_there_before_can_be_had_back(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 15, 1: 15}, metadata="by hand")
    groups.commit(source, "busy", {0: 15})
    groups.commit(source, "moved", {0: 15})
    for group in ("busy", "moved"):
        groups.commit(target, group, {0: 1})
    groups.synced(force=True)
    with GroupSnapshots(groups.lab.flow) as kept:
        (first,) = kept.all()
        assert (first.who, first.groups) == ("", 3)
        named = kept.take("before the drill", "ann@desk")
        assert kept.diff(named.name) == (named, [])
        assert {(one.group, one.then, one.now) for one in kept.diff(first.name)[1]} == {
            (groups.name("app"), None, 15),
            (groups.name("busy"), 1, 15),
            (groups.name("moved"), 1, 15),
        }
        groups.commit(source, "app", {0: 4, 1: 4})
        groups.synced()
        groups.commit(target, "moved", {0: 7})
        with member(target, groups.name("busy"), groups.copy):
            assert kept.rollback(first.name, "r1", dry_run=True)[2] is None
            assert groups.at("moved") == {0: 7}
            _, _, done = kept.rollback(first.name, "r1")
            assert done is not None
            assert groups.why(done) == {"app": {Why.CREATED}, "busy": {Why.ACTIVE}, "moved": {Why.MOVED}}
        assert groups.at("app") == {0: 4, 1: 4}
        _, _, done = kept.rollback("before the drill", "r2", frozenset({groups.name("app")}))
        assert done is not None
        assert (done.left, groups.read("app")) == ((), groups.read("app", source) | groups.read("app"))
        assert groups.at("app") == {0: 15, 1: 15}
        assert all(metadata.startswith("by hand") for _, metadata in groups.read("app").values())
        assert groups.why(groups.synced())["app"] == {Why.MOVED}, "what a person put back stays"
        _, _, done = kept.rollback("r2", "r3")
        assert groups.at("app") == {0: 4, 1: 4}, "a rollback is undone like anything else"
        with pytest.raises(BadInput, match="there is a snapshot 'before the drill' already"):
            kept.take("before the drill", "ann@desk")
        for name, why in ((groups.name("nobody"), "has no offsets on"), ("elsewhere", "is excluded by groups")):
            with pytest.raises(BadInput, match=f"no snapshot 'slip' is kept, because group {name} {why}"):
                kept.take("slip", "ann@desk", frozenset({groups.name("app"), name}))
        kept.drop("before the drill")
        with pytest.raises(BadInput, match=r"no snapshot 'before the drill'.* r2, r3"):
            kept.diff("before the drill")


def test_snapshots_behind_a_summary_are_found_completed_and_dropped(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 0)
    monkeypatch.setattr(summaries, "FIRST_WINDOW", 4)
    flow, source, app = groups.lab.flow, groups.lab.source, groups.name("app")

    def saved(name: str) -> dict[int, tuple[int | None, int | None]]:
        with LedgerAccess(flow) as access:
            found = saved_groups(access.whole(), flow.lane, name).get(app, {})
        return {place.partition: (one.before.offset if one.before else None, one.wrote) for place, one in found.items()}

    def sync(run: str) -> None:
        with groups.lab.runs() as runs:
            assert sync_groups(runs, run)[1] is not None

    groups.commit(source, "app", {0: 4, 1: 4})
    sync("s1")
    groups.commit(source, "app", {0: 15})
    sync("s2")
    with GroupSnapshots(flow) as kept:
        kept.take("drill", "ann@desk")
    groups.lab.micro_run()
    with LedgerAccess(flow) as access:
        view = access.view()
        assert {"s1", "s2", "drill"} <= {key.split('"')[5] for key in view.rolled.left if key.startswith('["offsets"')}
        assert not list(view.of_kind("offsets"))
    groups.commit(source, "app", {0: 17, 1: 6})
    sync("s2")
    assert saved("s2") == {0: (4, 17), 1: (4, 6)}, "what lay there before the first attempt stays"
    with GroupSnapshots(flow) as kept:
        assert {(one.then, one.now) for one in kept.diff("drill")[1]} == {(15, 17), (4, 6)}
        done = kept.rollback("drill", "r1")[2]
        assert done is not None
        assert (done.offsets, groups.at("app")) == (2, {0: 15, 1: 4})
        kept.drop("drill")
    assert (saved("drill"), saved("s1")) == ({}, {0: (None, 4), 1: (None, 4)})
    monkeypatch.setattr(module, "KEPT_SNAPSHOTS", 1)
    groups.lab.micro_run()
    groups.commit(source, "other", {0: 4})
    sync("s3")
    assert (saved("s1"), saved("s2"), saved("r1")) == ({}, {}, {})


@pytest.mark.timeout(180)
def test_a_group_waits_for_a_target_that_is_copied_again_and_goes_to_its_record_there(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    for count in range(3):
        send(producer(source), groups.topic, numbered(4, partitions=2, start=40 + 4 * count))
        groups.lab.micro_run()
    groups.commit(source, "app", {0: 24, 1: 24})
    groups.commit(source, "slow", {0: 3, 1: 3})
    groups.ran()
    assert groups.at("app") == {0: 27, 1: 27}, "behind three markers"
    groups.recreate(target, groups.copy)
    done = groups.ran()
    assert (done.offsets, groups.why(done)) == (0, {"app": {Why.FAILED}, "slow": {Why.FAILED}})
    assert "was created again since it was written" in done.left[0].message
    assert groups.at("app") == {}, "nothing in a topic that is empty"
    with pytest.raises(Refused, match="was created again since it was written"):
        translate(groups.lab.flow, TopicPartition(groups.topic, 0), 24)
    groups.commit(
        target, "app", {0: 27, 1: 27}
    )  # as it stands where the brokers did not forget it: Ferry's, and too far
    done = groups.ran(**{"ferry.guard.target.changed": "restart"})
    assert done.left == ()
    assert groups.at("app") == {0: 24, 1: 24}, "all in one transaction now"
    assert groups.next_record(target, groups.copy, "app") == groups.next_record(source, groups.topic, "app")

    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    admin.delete_records([Place(groups.copy, 0, 12)])[Place(groups.copy, 0, 12)].result(ANSWER_S)
    groups.commit(source, "slow", {0: 4, 1: 4})
    done = groups.ran()
    assert (done.left, done.inexact) == ((), {"log-start": 1})
    assert groups.at("slow") == {0: 12, 1: 4}, "who stands before a log's start is reset, maybe to its end"
    assert translate(groups.lab.flow, TopicPartition(groups.topic, 0), 4).outcome.word == "log-start"
    secret = {"config.providers": "env", "config.providers.env.class": f"{PROVIDERS}.EnvVarConfigProvider"}
    lost = {f"{groups.lab.alias}.ssl.truststore.password": "${env:FERRY_TEST_NO_SUCH_SECRET}"}
    blind = replace(groups.lab, settings={**groups.lab.settings, **secret, **lost})
    assert translate(blind.flow, TopicPartition(groups.topic, 0), 4).outcome.word == "log-start"
    there = {f"t{name}": value for name, value in lost.items()}
    with pytest.raises(BadInput, match="FERRY_TEST_NO_SUCH_SECRET"):
        translate(replace(blind, settings={**blind.settings, **there}).flow, TopicPartition(groups.topic, 0), 4)


@pytest.mark.timeout(180)
def test_a_group_of_a_source_topic_that_was_created_again_is_not_translated_by_the_old_one(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 20, 1: 20})
    groups.ran()
    ends = {number: end(target, groups.copy, number) for number in (0, 1)}
    assert groups.at("app") == ends
    groups.recreate(source, groups.topic)
    send(producer(source), groups.topic, numbered(12, partitions=2, start=1000))
    groups.commit(source, "app", {0: 4, 1: 4})
    done = groups.ran()
    assert (done.offsets, groups.why(done)) == (0, {"app": {Why.FAILED}})
    assert "was created again since it was copied" in done.left[0].message
    assert groups.at("app") == ends
    done = groups.ran(**{"ferry.guard.topic.recreated": "restart"})
    assert done.left == ()
    assert groups.next_record(target, groups.copy, "app") == groups.next_record(source, groups.topic, "app")


def test_a_group_stands_at_the_beginning_of_a_copy_that_is_empty_until_something_is_copied(groups: Groups) -> None:
    """Without an offset there, a consumer with `latest` would miss what is produced before it first asks."""
    source, target = groups.lab.source, groups.lab.target
    idle = f"{groups.topic}-idle"
    create_topic(source, idle, 2)
    lab = replace(groups.lab, topics=(groups.topic, idle))
    quiet = replace(groups, lab=lab, topic=idle)
    quiet.commit(source, "app", {0: 0, 1: 30})
    assert quiet.why(quiet.synced()) == {"app": {Why.NOT_COPIED}}, "there is no copy yet"
    done = quiet.ran()
    assert (done.left, done.offsets, dict(done.inexact), quiet.at("app")) == ((), 2, {"ahead": 1}, {0: 0, 1: 0})
    assert quiet.synced().unchanged == 2
    told = translate_group(lab.flow, quiet.name("app"))
    assert ([one.outcome for _, one in told.found], told.uncopied) == ([Exact(offset=0), Ahead(offset=0)], ())
    (table,) = find_groups(lab.flow, topics=[idle], groups=[quiet.name("app")]).tables
    assert [row.outcome for row in table.rows] == [Exact(offset=0), Ahead(offset=0)]
    assert translate(lab.flow, TopicPartition(idle, 1), 30).outcome == Ahead(offset=0)
    send(producer(source), idle, numbered(20, partitions=2))
    quiet.commit(source, "app", {0: 4, 1: 10})
    assert quiet.ran().left == ()
    assert quiet.at("app") == {0: 4, 1: end(target, quiet.copy, 1)}


def test_new_groups_are_looked_for_only_where_the_file_says_so(groups: Groups) -> None:
    source = groups.lab.source
    groups.commit(source, "app", {0: 4})
    assert groups.ran(**{"refresh.groups.enabled": "false"}).groups == 1, "the first that writes any finds them"
    groups.commit(source, "app", {0: 5})
    groups.commit(source, "late", {0: 4})
    for never in ({"refresh.groups.enabled": "false"}, {"refresh.groups.interval.seconds": "-1"}):
        assert groups.ran(**never).left == ()
        assert (groups.at("app"), groups.at("late")) == ({0: 5}, {})
    assert groups.ran().groups == 1
    assert groups.at("late") == {0: 4}


@pytest.mark.timeout(120)
def test_a_sync_between_two_copies_carries_what_was_read(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 10, 1: 10})
    groups.ran()
    groups.commit(source, "app", {0: 15, 1: 20})
    done = groups.between()
    assert (done.groups, done.offsets, done.left) == (1, 2, ())
    assert groups.at("app") == {0: 15, 1: end(target, groups.copy, 1)}
    after = groups.ran()
    assert (after.offsets, after.unchanged) == (0, 2), "the next run finds it done"
    groups.commit(target, "app", {0: 17})
    groups.commit(source, "app", {0: 16})
    done = groups.between()
    assert (groups.why(done), groups.at("app")[0]) == ({"app": {Why.MOVED}}, 17), "it reads on there"


@pytest.mark.timeout(180)
def test_a_sync_beside_a_running_copy_goes_by_what_is_committed(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    send(producer(source, batch_num_messages=5), groups.topic, numbered(20, partitions=1, start=40))
    groups.commit(source, "app", {0: 40})
    beside: list[tuple[GroupOutcome, int, int]] = []

    def sync() -> None:
        with ThreadPoolExecutor(1) as pool:  # an event loop of its own
            done = pool.submit(groups.between).result(2 * ANSWER_S)
        beside.append((done, groups.at("app")[0], end(target, groups.copy, 0)))

    lab = replace(groups.lab, settings={**groups.lab.settings, "ferry.chunk.bytes": "1"})
    with lab.runs() as runs:
        plan = runs.open_run("long", local_origin(), RunOptions())
        attempt = runs.begin(plan, local_origin())
        ends = [end_of(slot, copy_held(runs, plan, slot, Hooks(after={"commit": sync}), attempt))
                for slot in plan.used_slots]  # fmt: skip
        runs.record_outcome(plan, attempt, ends)
    ((done, at, there),) = beside
    assert (done.offsets, done.inexact, at) == (1, {"ahead": 1}, there), "the copied end"
    groups.between()
    assert groups.at("app") == {0: end(target, groups.copy, 0)}
    assert at < groups.at("app")[0], "the copy went on"


@pytest.mark.timeout(180)
def test_of_two_syncs_at_once_no_group_is_lost_or_goes_back(groups: Groups) -> None:
    source = groups.lab.source
    names = [f"app{number}" for number in range(6)]
    for name in names:
        groups.commit(source, name, {0: 10})
    groups.between()
    for name in names:
        groups.commit(source, name, {0: 15})
    ready = Barrier(2)

    def at_once() -> GroupOutcome | None:
        ready.wait(ANSWER_S)
        with suppress(StoodBack):
            return groups.between()
        return None

    with ThreadPoolExecutor(2) as pool:
        found = [one.result(4 * ANSWER_S) for one in [pool.submit(at_once) for _ in range(2)]]
    assert not [one for done in found if done is not None for one in done.failed]
    assert all(groups.at(name) in ({0: 10}, {0: 15}) for name in names)
    done = groups.between()
    assert (done.left, {name: groups.at(name) for name in names}) == ((), {name: {0: 15} for name in names})
