"""A target of today's Kafka with transactions of version 1, which forgets positions after a minute of rest.

By a policy (`TopicPolicy.java`) it refuses topics with `forbidden` in their names, and one value of a setting.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, RunningCluster, up
from ferry.dev.jars import jars
from ferry.lane import connections
from ferry.ledger.report import RunState
from tests.commands import compile_java
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.kafka.run.groups import Groups
from tests.kafka.run.switching import Clients

FORGETFUL = ClusterSpec(
    name="forgetful",
    format_arguments=("--feature", "transaction.version=1"),
    properties={
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "1000",
        "create.topic.policy.class.name": "TopicPolicy",
        "alter.config.policy.class.name": "TopicPolicy",
    },
)
POLICY = Path(__file__).with_name("TopicPolicy.java")


@pytest.fixture(scope="session")
def forgetful(cluster_home: Path) -> RunningCluster:
    """One broker 4.3.0 whose finalized transaction.version is 1."""
    classes = cluster_home / "policy"
    classes.mkdir()
    compile_java(POLICY, class_path=":".join(map(str, jars(FORGETFUL.version).glob("*.jar"))), into=classes)
    return up(replace(FORGETFUL, class_path=(str(classes),)), home=cluster_home)


@pytest.fixture(scope="session")
def resting(_pair: tuple[RunningCluster, ...], forgetful: RunningCluster) -> Lab:
    """A flow that has run once; asked for early, so that its positions grow old while other tests run."""
    lab = small_lab(_pair[0], forgetful, f"resting-{new_alias()}")
    assert lab.micro_run().state is RunState.SUCCESS
    return lab


def small_lab(source: RunningCluster, target: RunningCluster, topic: str) -> Lab:
    """Four partitions with 4,000 records, two slots, several chunks each."""
    create_topic(source, topic, 4)
    send(producer(source, batch_num_messages=50), topic, numbered(4_000, partitions=4, size=300))
    settings = {"ferry.chunk.bytes": "100000"}
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=settings)


@pytest.fixture
def clients(topic: str) -> Clients:
    """Of a topic and a group that no other test has."""
    return Clients(topic=topic, group=f"g-{secrets.token_hex(4)}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover does not wait long for a source that is gone: each step asks it again."""
    monkeypatch.setattr(connections, "SOURCE_PATIENCE_S", 0.5)


@pytest.fixture
def groups(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Groups:
    """A flow of a topic, all of which is copied, and whose groups no other test has."""
    mark = secrets.token_hex(4)
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(40, partitions=2))
    settings = {"groups": f".*-{mark}"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    lab.micro_run()
    return Groups(lab=lab, topic=topic, mark=mark)
