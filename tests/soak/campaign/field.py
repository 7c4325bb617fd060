"""Where the campaign takes place: two clusters of three brokers, a proxy in front of each, and Ferry's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ferry.dev import ClusterSpec, RunningCluster, up_all
from ferry.dev.cluster import create_cluster
from ferry.dev.spec import PLAINTEXT, Listener
from ferry.ports import LOOPBACK, free_ports
from tests.clusters import KEPT
from tests.harness import create_topic
from tests.proxy import Proxies
from tests.soak.campaign.hasty import IDLE_MS
from tests.soak.campaign.writer import COMPACTED, COPIED, PARTITIONS

ENTRY = Listener(name="ENTRY", protocol="PLAINTEXT")
"""The listener that only the proxies reach; what it tells clients to connect to are the proxies."""

BROKER = {**KEPT, "message.max.bytes": "4000000"}
"""Of all brokers: records stay, and those of the writer fit."""

FLOW = "s->t"
REPLICAS = 3
SLOTS = (1, 3, 4)
CHUNKS = (30_000, 300_000, 256 << 20)
SETTINGS = """\
clusters = s, t
s.bootstrap.servers = {source}
t.bootstrap.servers = {target}
s->t.enabled = true
topics = c-.*
groups = g-.*
sync.group.offsets.enabled = true
heartbeats.replication.enabled = false
replication.factor = {replicas}
tasks.max = {slots}
ferry.chunk.bytes = {chunk}
ferry.transaction.timeout.ms = 12000
ferry.chunk.seconds = 5
"""
IDENTICAL = "s->t.ferry.offsets = identical\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A cluster and the proxies in front of its brokers."""

    cluster: RunningCluster
    entries: tuple[int, ...]
    """A port for each broker, in their order."""

    @property
    def bootstrap(self) -> str:
        """Through the proxies."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Both sides, the process of the proxies, and the files by slots and bytes of a chunk."""

    source: Side
    target: Side
    proxies: Proxies
    configs: dict[tuple[int, int], Path]
    identical: bool = False
    """Whether the flow has identical offsets."""

    @property
    def config(self) -> Path:
        """One of them, for what asks only."""
        return self.configs[SLOTS[1], CHUNKS[1]]

    def ends(self) -> dict[tuple[str, int], int]:
        """Last stable offsets of the copies, asked past the proxies; nothing while no broker answers."""
        admin = AdminClient({"bootstrap.servers": self.target.cluster.bootstrap, "log_level": 0})
        topics = admin.list_topics(timeout=10).topics
        asked = {
            TopicPartition(name, number): OffsetSpec.latest()
            for name, topic in topics.items()
            if name.startswith("s.c-")
            for number in topic.partitions
        }
        if not asked:
            return {}
        answers = admin.list_offsets(asked, request_timeout=5)
        return {
            (place.topic, place.partition): answer.result().offset
            for place, answer in answers.items()
            if answer.exception() is None
        }


@contextmanager
def field(folder: Path, *, identical: bool = False) -> Iterator[Field]:
    """Clusters that run, with the source's topics; all of it ends with the block.

    With identical offsets, the target's brokers are what counts, and the source has one.
    """
    numbers = {"fault-source": 1 if identical else 3, "fault-target": 3}
    found: list[RunningCluster] = []
    for name, brokers in numbers.items():
        spec = ClusterSpec(
            name=name,
            brokers=brokers,
            heap_mb=320,
            listeners=(PLAINTEXT, ENTRY),
            properties={**BROKER, **({"connections.max.idle.ms": str(IDLE_MS)} if identical else {})},
        )
        found.append(create_cluster(spec, folder / name))
    sides = []
    ports: dict[int, int] = {}
    for cluster in found:
        entries = free_ports(len(cluster.brokers))
        for broker, entry in zip(cluster.brokers, entries, strict=True):
            address = broker.address_of(ENTRY.name)
            lines = broker.properties_file.read_text().splitlines()
            told = [
                line.replace(f"ENTRY://{address}", f"ENTRY://{LOOPBACK}:{entry}")
                if line.startswith("advertised.listeners=")
                else line
                for line in lines
            ]
            broker.properties_file.write_text("\n".join(told) + "\n")
            ports[entry] = broker.node.ports[ENTRY.name]
        sides.append(Side(cluster=cluster, entries=tuple(entries)))
    clusters = up_all([cluster.spec for cluster in found], home=folder, seconds=300)
    proxies = Proxies(ports)
    source, target = (replace(side, cluster=cluster) for side, cluster in zip(sides, clusters, strict=True))
    try:
        names = COPIED if identical else tuple(PARTITIONS)
        create_topics(source.cluster, replicas=len(source.entries), names=names)
        configs = _files(folder, source, target, identical=identical)
        yield Field(source=source, target=target, proxies=proxies, configs=configs, identical=identical)
    finally:
        proxies.close()
        for cluster in clusters:
            for broker in cluster.brokers:
                if broker.state == "paused":
                    broker.resume()
            cluster.stop()


def create_topics(cluster: RunningCluster, *, replicas: int, names: Collection[str] = tuple(PARTITIONS)) -> None:
    """Create the topics that the writer writes to."""
    compacted = {"cleanup.policy": "compact", "segment.ms": "10000", "min.cleanable.dirty.ratio": "0.01"}
    for topic in names:
        settings = {"max.message.bytes": "2000000", **(compacted if topic == COMPACTED else {})}
        create_topic(cluster, topic, PARTITIONS[topic], settings, replicas=replicas)


def flow_text(source: str, target: str, *, slots: int, chunk: int, replicas: int) -> str:
    """Ferry's file; the clusters are named by their bootstrap servers."""
    return SETTINGS.format(source=source, target=target, slots=slots, chunk=chunk, replicas=replicas)


def _files(folder: Path, source: Side, target: Side, *, identical: bool) -> dict[tuple[int, int], Path]:
    found = {}
    for slots in SLOTS[:-1] if identical else SLOTS:
        for chunk in CHUNKS:
            path = folder / f"{slots}-{chunk}.properties"
            text = flow_text(source.bootstrap, target.bootstrap, slots=slots, chunk=chunk, replicas=REPLICAS)
            path.write_text(text + (IDENTICAL if identical else ""))
            found[slots, chunk] = path
    return found
