"""A target of today's Kafka with transactions of version 1, which forgets positions after a minute of rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.decide.report import RunState
from ferry.dev import ClusterSpec, RunningCluster, up
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send

FORGETFUL = ClusterSpec(
    name="forgetful",
    format_arguments=("--feature", "transaction.version=1"),
    properties={"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"},
)


@pytest.fixture(scope="session")
def forgetful(cluster_home: Path) -> RunningCluster:
    """One broker 4.3.0 whose finalized transaction.version is 1."""
    return up(FORGETFUL, home=cluster_home)


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
