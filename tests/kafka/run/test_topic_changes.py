"""Topics on the target follow the source, on real brokers: shown first, made in the very next run."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ferry.dev import RunningCluster
from ferry.lane.connections import FlowConnections
from ferry.ledger.report import RunState
from ferry.model import ChangeKind, Plan, RefusalKind, TopicChange
from ferry.plan.change_topics import Changed, change_topics
from tests.harness import (
    Lab,
    Message,
    create_topic,
    delete_topic,
    grow_topic,
    new_alias,
    numbered,
    producer,
    send,
    whole_ledger,
)
from tests.quotas import quota
from tests.said import facts_in, of_code
from tests.tiers import ANSWER_S


def lab_of(source: RunningCluster, target: RunningCluster, topics: str, **settings: str) -> Lab:
    """A flow; underscores in the names of settings stand for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Lab(source=source, target=target, alias=new_alias(), topics=(topics,), settings=given)


def configure(cluster: RunningCluster, topic: str, **settings: str | None) -> None:
    """Set, or with None reset, settings of a topic."""
    entries = [
        ConfigEntry(
            name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)


def settings_of(cluster: RunningCluster, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    found = admin.describe_configs([resource])[resource].result(ANSWER_S)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


def kinds(plan: Plan) -> set[tuple[ChangeKind, str]]:
    return {(change.kind, change.source_topic) for change in plan.changes}


def preview(lab: Lab) -> Plan:
    with lab.runs() as runs:
        return runs.preview()


def test_the_very_next_run_makes_the_changes_that_the_plan_shows(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    old, new = f"{topic}-old", f"{topic}-new"
    create_topic(source_cluster, old, 2, {"retention.ms": "86400000", "segment.ms": "3600000"})
    send(producer(source_cluster), old, numbered(20, partitions=2))
    lab = lab_of(source_cluster, target_cluster, f"{topic}-.*")
    first = lab.micro_run()
    assert (first.state, kinds(first.plan)) == (RunState.SUCCESS, {(ChangeKind.CREATE, old)})
    copy = lab.target_topic(old)
    assert settings_of(target_cluster, copy) == {"retention.ms": "86400000", "segment.ms": "3600000"}
    assert preview(lab).changes == (), "a copy is as its plan says"

    grow_topic(source_cluster, old, 3)
    configure(source_cluster, old, retention_ms="172800000", segment_ms=None, cleanup_policy="compact,delete")
    configure(target_cluster, copy, max_message_bytes="2000000")
    create_topic(source_cluster, new)
    send(producer(source_cluster), new, numbered(10))
    send(producer(source_cluster), old, numbered(30, partitions=3))
    shown = preview(lab)
    assert kinds(shown) == {(ChangeKind.CREATE, new), (ChangeKind.GROW, old), (ChangeKind.CONFIGURE, old)}
    (configured,) = (change for change in shown.changes if change.kind is ChangeKind.CONFIGURE)
    assert dict(configured.configs) == {
        "cleanup.policy": "compact,delete",
        "max.message.bytes": None,
        "retention.ms": "172800000",
        "segment.ms": None,
    }
    assert dict(configured.was)["segment.ms"] == "3600000"
    assert settings_of(target_cluster, copy)["segment.ms"] == "3600000", "showing changes nothing"
    assert "schema-ids" not in {left.what for left in shown.not_copied}, "no registry shows"

    report = lab.micro_run()
    assert (report.state, report.plan.changes) == (RunState.SUCCESS, shown.changes)
    assert report.records == 40
    assert settings_of(target_cluster, copy) == {"retention.ms": "172800000", "cleanup.policy": "compact,delete"}
    assert lab.assert_equal() == 60

    configure(target_cluster, copy, retention_ms="1000000")
    alone = replace(lab, settings={"sync.topic.configs.enabled": "false", "ferry.target.free.percent": "99"})
    send(producer(source_cluster), new, numbered(5, start=10))
    plan = preview(alone)
    assert (plan.changes, [change.configs for change in plan.drift]) == ((), [(("retention.ms", "172800000"),)])
    narrower = [facts_in(note) for note in of_code("topic.narrower", plan.notes)]
    assert ("retention.ms", "1000000") in [(one["setting"], one["here"]) for one in narrower]
    assert [(refusal.topic, refusal.kind) for refusal in plan.refusals] == [(new, RefusalKind.NO_SPACE)]
    assert (plan.refusals[0].code, dict(plan.refusals[0].facts)["percent"]) == ("target.no-space", 99)
    report = alone.micro_run()
    assert (report.state, report.plan.drift) == (RunState.PARTIAL, plan.drift)
    assert settings_of(target_cluster, copy)["retention.ms"] == "1000000"


def changed(lab: Lab, *changes: TopicChange) -> Changed:
    """What the target's brokers make of changes."""

    async def last_look() -> None:
        """No newer run is there."""

    with FlowConnections.of(lab.flow) as connections:
        return connections.run(lambda: change_topics(connections.target, changes, last_look))


def change(kind: ChangeKind, topic: str, **configs: str) -> TopicChange:
    return TopicChange(
        kind=kind,
        topic=f"t.{topic}",
        source_topic=topic,
        partitions=1,
        replication_factor=1,
        configs=tuple((name.replace("_", "."), value) for name, value in configs.items()),
    )


def test_a_setting_that_the_target_does_not_take_stops_one_topic_alone(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    good, bad, there, other = (f"{topic}-{name}" for name in ("good", "bad", "there", "other"))
    lab = lab_of(source_cluster, target_cluster, topic)
    made = changed(lab, *(change(ChangeKind.CREATE, name) for name in (there, other)))
    assert (len(made.done), made.failed, made.unset) == (2, {}, {})
    made = changed(
        lab,
        change(ChangeKind.CREATE, good, retention_ms="5"),
        change(ChangeKind.CREATE, bad, retention_ms="soon"),
        change(ChangeKind.CONFIGURE, there, tea_ms="5"),
        change(ChangeKind.CONFIGURE, other, segment_ms="5"),
    )
    assert [each.source_topic for each in made.done] == [good, other]
    assert {name: refusal.kind for name, refusal in made.failed.items()} == {bad: RefusalKind.INVALID_CONFIG}
    assert {name: refusal.kind for name, refusal in made.unset.items()} == {there: RefusalKind.INVALID_CONFIG}
    for name, value, refusal in ((bad, "soon", made.failed[bad]), (there, "tea.ms", made.unset[there])):
        for words in (f"topic t.{name} on cluster t{lab.alias}", value, " config.properties.exclude"):
            assert words in refusal.message
    assert settings_of(target_cluster, f"t.{good}") == {"retention.ms": "5"}
    assert settings_of(target_cluster, f"t.{other}") == {"segment.ms": "5"}


def test_a_deletion_at_the_source_is_followed_when_it_is_asked_for(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    gone, stays = f"{topic}-gone", f"{topic}-stays"
    for name in (gone, stays):
        create_topic(source_cluster, name, 2)
        send(producer(source_cluster), name, numbered(20, partitions=2))
    lab = lab_of(source_cluster, target_cluster, f"{topic}-.*", ferry_sync_topic_deletes_enabled="true")
    assert lab.micro_run().state is RunState.SUCCESS
    delete_topic(source_cluster, gone)
    assert kinds(preview(lab)) == {(ChangeKind.DELETE, gone)}
    report = lab.micro_run()
    assert (report.state, kinds(report.plan)) == (RunState.SUCCESS, {(ChangeKind.DELETE, gone)})
    assert gone in [facts_in(note)["topic"] for note in of_code("topic.deleted", report.plan.notes)]
    topics = AdminClient({"bootstrap.servers": target_cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics
    assert (lab.target_topic(gone) in topics, lab.target_topic(stays) in topics) == (False, True)
    assert lab.micro_run().plan.changes == ()
    with lab.runs() as runs:
        assert [key[2] for key, _ in whole_ledger(runs).of_kind("deleted")] == [lab.target_topic(gone)]

    create_topic(source_cluster, gone, 1)
    send(producer(source_cluster), gone, numbered(7))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 7)
    assert lab.assert_equal() == 27


def test_records_too_far_ahead_for_the_copy_are_noted_before_and_refused_with_the_limit(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    limit = "message.timestamp.after.max.ms"
    create_topic(source_cluster, topic, config={limit: "9223372036854775807"})
    ahead = (time.time_ns() // 1_000_000) + 7_200_000
    send(producer(source_cluster), topic, [Message(key=b"k", value=b"v", timestamp=ahead)])
    lab = lab_of(source_cluster, target_cluster, topic)
    lab = replace(lab, settings={"config.properties.exclude": limit})
    assert limit in [facts_in(note)["setting"] for note in of_code("topic.narrower", preview(lab).notes)]
    (refusal,) = lab.micro_run().refusals
    assert (refusal.kind, refusal.partition) == (RefusalKind.INVALID_CONFIG, 0)
    facts = dict(refusal.facts)
    assert (refusal.code, facts["at"]) == ("batch.timestamp", 0)
    assert str(facts["words"]).startswith(f"Timestamp {ahead} of message")
    assert f"raise {limit} on that topic" in refusal.message


def test_quotas_of_the_source_are_counted_as_not_copied(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    lab = lab_of(source_cluster, target_cluster, topic)

    def counted() -> int:
        return next((left.count or 0 for left in preview(lab).not_copied if left.what == "client-quotas"), 0)

    before = counted()
    with quota(source_cluster, topic, "consumer_byte_rate", 1e6):
        assert counted() == before + 1
