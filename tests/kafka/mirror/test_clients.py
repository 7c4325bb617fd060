"""Kafka's own clients of MirrorMaker 2, on clusters that Ferry filled."""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka import KafkaAdminClient
from kafka import TopicPartition as Place
from kafka.structs import OffsetAndMetadata

from ferry.dev import RunningCluster
from ferry.dev.jars import jars, java
from ferry.features.groups.acts.of_run import checkpoint
from ferry.ledger.report import Report, RunState
from ferry.model import Heartbeat, OffsetSync
from ferry.run.micro_run import local_origin
from ferry.wire.mirror_records import parse_heartbeat, parse_offset_sync
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, read_topic, send, wait_until
from tests.kafka.mirror.mirror_oracle import ask_words, encoded, translated
from tests.kafka.topologies.atlas import Atlas
from tests.said import of_code
from tests.tiers import ANSWER_S
from tests.world.documents.commands import placed, told

POLICIES = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")
MIRROR = "org.apache.kafka.connect.mirror."
HEARTBEAT_BYTES = 10
READ = "Checkpoint{{consumerGroupId={}, topicPartition={}-0, upstreamOffset=4, downstreamOffset=4, metadata=mine}}"
EACH_RUN = {"emit.checkpoints.interval.seconds": "1", "heartbeats.replication.enabled": "true"}
"""A second is the shortest interval that a file can name."""


def run(lab: Lab, name: str = "") -> Report:
    """One micro-run with its last step, as `ferry run` does it."""
    with lab.runs() as runs:
        plan = runs.open_run(name or f"r-{new_alias()}", local_origin())
        assert lab.copy(runs, plan).state is RunState.SUCCESS
        checkpoint(runs, plan.run)
        return runs.report(plan.run)


def commit(lab: Lab, topic: str, offset: int, *, group: str = "readers", metadata: str = "") -> None:
    """A group of the source stands at `offset` of the topic's first partition."""
    with closing(KafkaAdminClient(bootstrap_servers=lab.source.bootstrap)) as admin:
        place = {Place(topic, 0): OffsetAndMetadata(offset, metadata, -1)}
        admin.alter_group_offsets(named(lab, group), place)


def named(lab: Lab, group: str) -> str:
    """A group's name: other tests have groups on the same clusters."""
    return f"{group}-{lab.alias}"


def client(cluster: RunningCluster, policy: str, alias: str, *question: str) -> list[str]:
    """What MirrorClient, or RemoteClusterUtils, answers on a cluster."""
    return ask_words(" ".join(["client", cluster.bootstrap, policy, alias, *question]))


def settings_of(cluster: RunningCluster, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    [found] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in found.result(ANSWER_S).items() if entry.source == 1}


def formatted(cluster: RunningCluster, topic: str, formatter: str) -> list[str]:
    """What kafka-console-consumer prints of a topic with one of MirrorMaker 2's formatters."""
    count = str(len(read_topic(cluster.bootstrap, topic)[0]))
    places = {
        "backup-1:9092": cluster.bootstrap,
        "primary.checkpoints.internal": topic,
        f"{MIRROR}formatters.CheckpointFormatter": f"{MIRROR}formatters.{formatter}",
    }
    words = [*placed(told("kafka-console-consumer.sh", "--formatter"), places), "--max-messages", count]
    command = [
        java(),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars('4.3.0')}/*",
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
    ]
    done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.startswith(("Checkpoint{", "Heartbeat{", "OffsetSync{"))]


@pytest.mark.parametrize("policy", POLICIES)
def test_mirror_client_reads_ferry(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, policy: str
) -> None:
    settings = {**EACH_RUN, "replication.policy.class": f"{MIRROR}{policy}"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    commit(lab, topic, 7, metadata="mine")
    commit(lab, topic, 3, group="others")
    assert not run(lab).notes

    def asked(*question: str) -> list[str]:
        return client(target_cluster, policy, lab.alias, *question)

    copy = topic if policy.startswith("Identity") else f"{lab.alias}.{topic}"
    for api in ("", "RemoteClusterUtils."):
        assert f"{lab.alias}.checkpoints.internal" in asked(f"{api}checkpointTopics")
        assert {"heartbeats", f"{lab.alias}.heartbeats"} <= set(asked(f"{api}heartbeatTopics"))
        assert lab.alias in asked(f"{api}upstreamClusters")
        assert asked(f"{api}replicationHops", lab.alias) == ["1"]
        assert asked(f"{api}replicationHops", "nobody") == ["-1"]
    for call in ("RemoteClusterUtils.translateOffsets", "remoteConsumerOffsets"):
        assert asked(call, lab.alias, encoded(named(lab, "readers"))) == [f"{copy} 0 7 mine"]
        assert asked(call, lab.alias, encoded(named(lab, "others"))) == [f"{copy} 0 3 "]
        assert asked(call, lab.alias, encoded("nobody")) == []
    assert not [name for name in topics(source_cluster) if lab.alias in name]
    assert lab.alias not in {beat.source_alias for beat in heartbeats(source_cluster)}


def test_the_formatters_print_what_ferry_wrote(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=EACH_RUN)
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(5))
    commit(lab, topic, 4, metadata="mine")
    run(lab)
    alias, copy = lab.alias, f"{lab.alias}.{topic}"
    assert formatted(target_cluster, f"{alias}.checkpoints.internal", "CheckpointFormatter") == [
        READ.format(named(lab, "readers"), copy)
    ]
    [beat] = [line for line in formatted(target_cluster, "heartbeats", "HeartbeatFormatter") if f"={alias}," in line]
    assert beat.startswith(f"Heartbeat{{sourceClusterAlias={alias}, targetClusterAlias=t{alias}, timestamp=1")
    # The source may have heartbeats of other flows, which are copied, too.
    syncs = formatted(target_cluster, f"mm2-offset-syncs.{alias}.internal", "OffsetSyncFormatter")
    assert [line for line in syncs if f"={topic}-0," in line] == [
        f"OffsetSync{{topicPartition={topic}-0, upstreamOffset={offset}, downstreamOffset={offset}}}"
        for offset in (0, 1, 3, 4)
    ]


def test_topics_are_created_as_mirror_maker_creates_them(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str
) -> None:
    settings = {
        **EACH_RUN,
        "replication.policy.separator": "_",
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "2",
        "offset-syncs.topic.location": "target",
    }
    lab = Lab(source=source_cluster, target=three_brokers, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic)
    run(lab)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    found = admin.list_topics(timeout=ANSWER_S).topics
    for name, replicas in (
        (f"{lab.alias}_checkpoints_internal", 1),
        (f"mm2-offset-syncs_{lab.alias}_internal", 2),
        ("heartbeats", 3),  # MirrorMaker 2's default
    ):
        assert [len(partition.replicas) for partition in found[name].partitions.values()] == [replicas]
        assert settings_of(three_brokers, name) == {"cleanup.policy": "compact"}


def test_a_chain_of_three_clusters(
    source_cluster: RunningCluster, target_cluster: RunningCluster, third_cluster: RunningCluster, topic: str
) -> None:
    """From a by b to c; the file asks for heartbeats at a, and not at b."""
    clusters = {"a": source_cluster, "b": target_cluster, "c": third_cluster}
    atlas = Atlas(
        clusters=clusters,
        flows=("a->b", "b->c"),
        topics=f".*{topic}",
        settings={**EACH_RUN, "b->a.emit.heartbeats.enabled": "true"},
    )
    a, b = atlas.alias("a"), atlas.alias("b")
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    step(atlas, "a->b")
    step(atlas, "a->b")  # copies the heartbeat that the first run wrote to a
    step(atlas, "b->c")
    assert {(a, b), (b, a)} & pairs(source_cluster) == {(b, a)}
    assert {(a, b), (b, a), (b, atlas.alias("c"))} & pairs(target_cluster) == {(a, b)}

    def asked(letter: str, source: str, *question: str) -> list[str]:
        return client(clusters[letter], POLICIES[0], source, *question)

    assert {a, b} <= set(asked("c", b, "upstreamClusters"))
    assert asked("c", b, "replicationHops", b) == ["1"]
    assert asked("c", b, "replicationHops", a) == ["2"]
    assert asked("b", a, "replicationHops", a) == ["1"]
    assert f"{b}.{a}.{topic}" in asked("c", b, "remoteTopics", b)
    assert not [name for name in topics(third_cluster) if a in name and name.endswith(".internal")]
    beats = formatted(third_cluster, f"{b}.{a}.heartbeats", "HeartbeatFormatter")
    assert any(f"sourceClusterAlias={b}, targetClusterAlias={a}," in beat for beat in beats)


def test_heartbeats_that_come_later_are_copied_into_the_empty_copy(
    source_cluster: RunningCluster, third_cluster: RunningCluster, topic: str
) -> None:
    """The copy that Ferry made for its name alone has no owner; what the source then has is copied into it."""
    lab = Lab(source=third_cluster, target=source_cluster, alias=new_alias(), topics=(topic,), settings=EACH_RUN)
    create_topic(third_cluster, topic)
    there = "heartbeats" in topics(third_cluster)  # by another test
    run(lab)
    copy = f"{lab.alias}.heartbeats"
    assert copy in topics(source_cluster)
    if not there:
        assert read_topic(source_cluster.bootstrap, copy) == {0: []}
        create_topic(third_cluster, "heartbeats")
    send(producer(third_cluster), "heartbeats", numbered(3))
    run(lab)
    assert len(read_topic(source_cluster.bootstrap, copy)[0]) >= 3


def test_a_repeat_writes_nothing_new_and_the_next_run_goes_on(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(8))
    with lab.runs() as runs:
        plan = runs.open_run("first", local_origin())
        lab.copy(runs, plan)
        commit(lab, topic, 5)
        checkpoint(runs, "first")
        commit(lab, topic, 6)
        checkpoint(runs, "first")  # checkpoints are not due, and the syncs are there
        assert [(sync.upstream, sync.downstream) for sync in syncs_of(lab)] == [(n, n) for n in (0, 4, 6, 7)]
        send(producer(source_cluster), topic, numbered(8))
        newer = runs.open_run("second", local_origin())
        lab.copy(runs, newer)
        checkpoint(runs, "first")  # superseded
        assert len(syncs_of(lab)) == 4
        checkpoint(runs, "second")
    assert len(read_topic(target_cluster.bootstrap, f"{lab.alias}.checkpoints.internal")[0]) == 1
    syncs = syncs_of(lab)
    assert len(syncs) == 8
    # Behind the first run's records lies its commit marker.
    assert translated(syncs, [8, 10, 12, 16]) == [9, 10, 13, 17]


def test_what_a_run_did_not_come_to_is_made_up_for(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(8))
    lab.micro_run()
    run(lab)  # copies nothing
    assert [sync.upstream for sync in syncs_of(lab)] == [0, 4, 6, 7]


def test_the_file_says_what_is_written_where(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    at_source = {"offset-syncs.topic.location": "source", "emit.heartbeats.enabled": "false"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=at_source)
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(8))
    run(lab)
    assert f"mm2-offset-syncs.t{lab.alias}.internal" in topics(source_cluster)
    assert (lab.alias, f"t{lab.alias}") not in pairs(target_cluster)
    off = {
        "emit.offset-syncs.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "emit.heartbeats.interval.seconds": "-1",
    }
    silent = replace(lab, alias=new_alias(), settings=off)
    commit(silent, topic, 3)
    run(silent)
    mine = [name for name in topics(source_cluster) | topics(target_cluster) if silent.alias in name]
    assert sorted(mine) == [f"{silent.alias}.{topic}", f"ferry-ledger.{silent.alias}.internal"]
    assert (silent.alias, f"t{silent.alias}") not in pairs(target_cluster)


def test_checkpoints_are_written_though_groups_are_left_alone(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """`emit.checkpoints.enabled` and `sync.group.offsets.enabled` are switches of their own."""
    settings = {"sync.group.offsets.enabled": "false"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(8))
    commit(lab, topic, 8)
    assert run(lab).groups is None
    found = client(
        target_cluster, POLICIES[0], lab.alias, "remoteConsumerOffsets", lab.alias, encoded(named(lab, "readers"))
    )
    assert found == [f"{lab.alias}.{topic} 0 9 "]  # behind the commit marker: its lag is 0
    copy = lab.target_topic(topic)
    delete_topic(target_cluster, copy)
    wait_until(lambda: copy not in topics(target_cluster), "the end of the deleted topic")
    create_topic(target_cluster, copy)
    with lab.runs() as runs:
        plan = runs.open_run("r2", local_origin())
        lab.copy(runs, plan)
        assert checkpoint(runs, plan.run) is None
        notes = of_code("mirror.no-checkpoint", runs.report(plan.run).notes)
    assert [f"group {named(lab, 'readers')}: offsets of {topic}-0 are not translated" in note for note in notes] == [
        True
    ]


def syncs_of(lab: Lab) -> list[OffsetSync]:
    """The flow's offset syncs, on the target."""
    rows = read_topic(lab.target.bootstrap, f"mm2-offset-syncs.{lab.alias}.internal")[0]
    return [parse_offset_sync(key, value) for _, key, value, _, _ in rows]


def pairs(cluster: RunningCluster) -> set[tuple[str, str]]:
    """The flows of which heartbeats were born on a cluster."""
    return {(beat.source_alias, beat.target_alias) for beat in heartbeats(cluster)}


def heartbeats(cluster: RunningCluster) -> list[Heartbeat]:
    """All heartbeats that were born on a cluster."""
    if "heartbeats" not in topics(cluster):
        return []
    rows = read_topic(cluster.bootstrap, "heartbeats")[0]
    return [parse_heartbeat(key, value) for _, key, value, _, _ in rows if len(value or b"") == HEARTBEAT_BYTES]


def step(atlas: Atlas, flow: str) -> None:
    """One micro-run of a flow with its last step."""
    with atlas.runs(flow) as runs:
        plan = runs.open_run(f"r-{new_alias()}", local_origin())
        assert atlas.copy(runs, plan).state is RunState.SUCCESS
        checkpoint(runs, plan.run)


def topics(cluster: RunningCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return set(admin.list_topics(timeout=ANSWER_S).topics)
