"""The files that a broker starts from: server.properties and the logging configuration; pure text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry.dev.spec import ClusterSpec
from ferry.ports import LOOPBACK

INTERNAL_PARTITIONS = 4
"""Partitions of `__consumer_offsets` and `__transaction_state`; Kafka's 50 take seconds to create and to load."""
CONTROLLER = "CONTROLLER"
NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

LOG4J_2 = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} [%t] %m%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
logger.state.name = state.change.logger
logger.state.level = WARN
"""
LOG4J_1 = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1} [%t] %m%n
log4j.logger.state.change.logger=WARN
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One combined broker and controller: its id (from 1) and its port per listener name, CONTROLLER included."""

    node_id: int
    ports: Mapping[str, int]


def server_properties(spec: ClusterSpec, nodes: tuple[Node, ...], node: Node, data: Path) -> dict[str, str]:
    """Return the settings of one node, those of the spec last."""
    replicas = min(3, spec.brokers)
    in_sync = max(1, replicas - 1)
    client_listeners = [f"{listener.name}://{LOOPBACK}:{node.ports[listener.name]}" for listener in spec.listeners]
    protocols = [f"{listener.name}:{listener.protocol}" for listener in spec.listeners]
    voters = [f"{peer.node_id}@{LOOPBACK}:{peer.ports[CONTROLLER]}" for peer in nodes]
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join([*client_listeners, f"{CONTROLLER}://{LOOPBACK}:{node.ports[CONTROLLER]}"]),
        "advertised.listeners": ",".join(client_listeners),
        "listener.security.protocol.map": ",".join([f"{CONTROLLER}:PLAINTEXT", *protocols]),
        "inter.broker.listener.name": spec.listeners[0].name,
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
        "group.initial.rebalance.delay.ms": "0",
        # A dead broker is noticed sooner than after 9 s; until then it cannot come back after a kill either.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "3000",
        # Otherwise an idle controller writes and flushes an empty record twice a second: a quarter of all that it uses.
        "metadata.max.idle.interval.ms": "0",
        # The default of 128 MiB would be a quarter of the heap.
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        **({"broker.rack": f"rack-{node.node_id}", "replica.selector.class": NEAREST} if spec.racks else {}),
        **spec.properties,
    }


def render(settings: Mapping[str, str]) -> str:
    """Return settings as a Java properties file; backslashes are doubled, as that format requires."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in settings.items())


def logging_configuration(version: str, folder: Path) -> tuple[Path, str, str]:
    """Return file, content and JVM option of the logging of Kafka `version`: log4j 2 since 4.0, reload4j before."""
    if int(version.partition(".")[0]) >= 4:
        path = folder / "log4j2.properties"
        return path, LOG4J_2, f"-Dlog4j2.configurationFile={path}"
    path = folder / "log4j.properties"
    return path, LOG4J_1, f"-Dlog4j.configuration=file:{path}"
