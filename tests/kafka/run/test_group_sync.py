"""Groups of a real source written to a real target: by runs and by hand, again and after a crash, none of others'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.errors import Unreachable
from ferry.features.groups.acts import checkpoint as module
from ferry.features.groups.acts.of_run import checkpoint
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.offsets import commit_offsets
from ferry.model import CommittedOffset, TopicPartition, Why
from ferry.plan.options import RunOptions
from ferry.run.micro_run import local_origin
from tests.harness import delete_topic, numbered, producer, send, wait_until
from tests.kafka.run.groups import Groups, end, member
from tests.tiers import ANSWER_S


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
            "the coordinator drops the offsets of the deleted topic",
        )
        done = checkpoint(runs, "r1")
        assert done is not None
        assert groups.why(done) == {"app": {Why.FAILED}, "gone": {Why.FAILED}}
        assert all(f"no longer has {groups.copy}" in one.message for one in done.left)
        report = runs.report("r1")
        assert report.state == "partial"


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
