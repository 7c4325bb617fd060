"""What happens to each key of MirrorMaker 1's consumer and producer files.

Sources: `kafka.consumer.ConsumerConfig`, `kafka.producer.ProducerConfig`, `kafka.producer.async.AsyncProducerConfig`
and `kafka.utils.ZKConfig` of Kafka 0.7 and 0.8; `ConsumerConfig` and `ProducerConfig` of the Java clients up to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ferry.config.keys import values
from ferry.config.text.problem import BadValue
from ferry.features.migrate.acts.mm1.outcome import Fate
from ferry.messages.catalogue import sentence

ClientRole = Literal["consumer", "producer"]


class Meaning(Enum):
    """The meaning of keys that concern more than one client."""

    SERVERS = "servers"
    ZOOKEEPER = "zookeeper"
    WHITELIST = "whitelist"
    BLACKLIST = "blacklist"
    THREADS = "threads"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """Keys with one meaning, and what happens to them.

    If a file has several of them, the first of `names` counts: the newest client's name comes first.
    """

    names: tuple[str, ...]
    fate: Fate
    why: str
    becomes: str = ""
    """The key in the new file, after the cluster's alias."""
    meaning: Meaning | None = None
    convert: Callable[[str], str] = str.strip


_MAXIMA = {
    "int.maxvalue": 2**31 - 1,
    "integer.max_value": 2**31 - 1,
    "max integer": 2**31 - 1,
    "long.maxvalue": 2**63 - 1,
    "long.max_value": 2**63 - 1,
    "max long": 2**63 - 1,
}
_SERVER_WITH_ID = re.compile(r"[0-9]+:(?=[^:]+:[0-9]+$)")
_PORT_WITHOUT_COLON = re.compile(r"(.*?)[-_.;/\s]*([0-9]{4,5})")
_RESETS = {"earliest": "earliest", "smallest": "earliest", "latest": "latest", "largest": "latest"}
_PROTOCOLS = {"PLAINTEXTSASL": "SASL_PLAINTEXT", "SSLSASL": "SASL_SSL"}


def number(low: int) -> Callable[[str], str]:
    """Return a reader of whole numbers from `low`, which may be written as `Int.MaxValue` or `Long.MaxValue`."""
    read = values.integer(low)
    return lambda text: str(_MAXIMA.get(text.strip().lower()) or read(text))


def servers(text: str) -> str:
    """Read `host:port, ...`, and drop the broker ids of Kafka 0.7 (`0:host:port`). Raises BadValue."""
    listed = [_SERVER_WITH_ID.sub("", server) for server in values.items(text)]
    for at, server in enumerate(listed):
        slip = _PORT_WITHOUT_COLON.fullmatch(server)
        if ":" not in server and slip is not None and slip.group(1):
            corrected = [*listed[:at], f"{slip.group(1)}:{slip.group(2)}", *listed[at + 1 :]]
            raise BadValue(sentence("value.server.no-colon", server=server, servers=",".join(corrected)))
    return values.bootstrap_servers(",".join(listed))


def _reset(text: str) -> str:
    if text.strip().lower() not in _RESETS:
        raise BadValue(sentence("value.offset-reset", value=text))
    return _RESETS[text.strip().lower()]


def _protocol(text: str) -> str:
    name = text.strip().upper()
    return values.one_of(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))(_PROTOCOLS.get(name, name))


def _kept(
    names: str, role: ClientRole, convert: Callable[[str], str], why: str = "the same setting of Ferry's client"
) -> KeyRule:
    listed = tuple(names.split())
    return KeyRule(names=listed, fate=Fate.KEPT, becomes=f"{role}.{listed[0]}", convert=convert, why=why)


def _rule(fate: Fate, names: str, why: str, meaning: Meaning | None = None) -> KeyRule:
    return KeyRule(names=tuple(names.split()), fate=fate, why=why, meaning=meaning)


_ZOOKEEPER = (
    _rule(
        Fate.GONE,
        "zookeeper.connect zk.connect",
        "clients find each other through brokers; the bootstrap servers replace it",
        Meaning.ZOOKEEPER,
    ),
    _rule(
        Fate.GONE,
        "zookeeper.connection.timeout.ms zk.connection.timeout.ms zk.connectiontimeout.ms zookeeper.session.timeout.ms"
        " zk.session.timeout.ms zk.sessiontimeout.ms zookeeper.sync.time.ms zk.sync.time.ms zk.synctime.ms"
        " zk.read.num.retries zookeeper.set.acl",
        "no client speaks to ZooKeeper any more",
    ),
)
_PROVIDERS = _rule(
    Fate.GONE, "security.providers", "a setting of Java's own security, and Ferry's clients are not Java"
)
_METRICS = _rule(
    Fate.GONE,
    "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms kafka.metrics.reporters"
    " kafka.metrics.polling.interval.secs auto.include.jmx.reporter enable.metrics.push monitoring.interval.ms",
    "Ferry has its own figures: `ferry lag`, the run's report, the ledger",
)
_INTERCEPTORS = _rule(
    Fate.LOOK, "interceptor.classes", "Ferry copies records as they are and calls no interceptor; do without it"
)
_RETRIES = _rule(
    Fate.GONE,
    "retry.backoff.ms retry.backoff.max.ms metadata.fetch.timeout.ms metadata.recovery.strategy"
    " metadata.recovery.rebootstrap.trigger.ms default.api.timeout.ms",
    "Ferry retries by its own rules; `ferry.retries` bounds them",
)
CLASS_KEYS = (
    *("interceptor.classes", "metric.reporters", "kafka.metrics.reporters", "partition.assignment.strategy"),
    *(
        "partitioner.class",
        "callback.handler",
        "event.handler",
        "serializer.class",
        "key.serializer",
        "value.serializer",
    ),
    *("key.deserializer", "value.deserializer", "deserializer.class", "security.providers"),
)
"""Keys that name classes, which read keys of their own from the same file."""
_SERIALIZERS = "records are copied as bytes: nothing is serialized or deserialized"


def _network(role: ClientRole) -> Iterable[KeyRule]:
    yield _kept("client.id", role, values.text, "sent as it is, so that the broker's quotas and logs know the client")
    yield _kept("client.dns.lookup", role, values.text)
    yield _kept("request.timeout.ms socket.timeout.ms", role, number(1))
    yield _kept("socket.connection.setup.timeout.ms connect.timeout.ms", role, number(1))
    yield _kept("socket.connection.setup.timeout.max.ms", role, number(1))
    yield _kept("reconnect.backoff.ms", role, number(0))
    yield _kept("reconnect.backoff.max.ms", role, number(0))
    yield _kept("connections.max.idle.ms", role, number(1))
    yield _kept("metadata.max.age.ms", role, number(0))
    yield KeyRule(
        names=("security.protocol",),
        fate=Fate.KEPT,
        becomes="security.protocol",
        convert=_protocol,
        why="each cluster has its own security settings",
    )


CONSUMER_KEYS = (
    KeyRule(
        names=("bootstrap.servers",),
        fate=Fate.KEPT,
        becomes="bootstrap.servers",
        meaning=Meaning.SERVERS,
        convert=servers,
        why="the source cluster",
    ),
    *_ZOOKEEPER,
    _rule(Fate.KEPT, "group.id groupid", "where the first run begins", Meaning.GROUP),
    _rule(
        Fate.GONE,
        "group.instance.id consumer.id consumerid group.protocol group.remote.assignor",
        "there is no consumer group",
    ),
    _rule(Fate.KEPT, "mirror.topics.whitelist", "the topics of this source", Meaning.WHITELIST),
    _rule(Fate.KEPT, "mirror.topics.blacklist", "the topics of this source that are left out", Meaning.BLACKLIST),
    _rule(Fate.KEPT, "mirror.consumer.numthreads", "most Spark tasks of a run", Meaning.THREADS),
    _kept("auto.offset.reset autooffset.reset", "consumer", _reset, "where the first run begins"),
    _kept(
        "isolation.level",
        "consumer",
        values.one_of(("read_committed", "read_uncommitted")),
        "as this consumer had it",
    ),
    *_network("consumer"),
    _kept("client.rack", "consumer", values.text),
    _kept("fetch.max.bytes", "consumer", number(0), "bound of a fetch"),
    _kept(
        "max.partition.fetch.bytes fetch.message.max.bytes fetch.size",
        "consumer",
        number(0),
        "bound of a partition's part of a fetch",
    ),
    _kept("fetch.min.bytes", "consumer", number(0)),
    _kept("fetch.max.wait.ms fetch.wait.max.ms", "consumer", number(0)),
    _kept("receive.buffer.bytes socket.receive.buffer.bytes socket.buffersize", "consumer", number(-1)),
    _kept("send.buffer.bytes", "consumer", number(-1)),
    _rule(
        Fate.ALWAYS,
        "enable.auto.commit auto.commit.enable auto.commit.enabled autocommit.enable auto.commit.interval.ms"
        " autocommit.interval.ms",
        "no position is committed before its records: both are in one transaction",
    ),
    _rule(
        Fate.ALWAYS,
        "exclude.internal.topics",
        "internal topics (`__...`) are never copied, whatever the file says",
    ),
    _rule(
        Fate.ALWAYS,
        "shallow.iterator.enable shallowiterator.enable",
        "batches are copied as they are, without being unpacked: what the shallow iterator was for",
    ),
    _rule(Fate.ALWAYS, "check.crcs", "every batch's checksum is checked before it is copied"),
    _rule(
        Fate.GONE,
        "consumer.timeout.ms",
        "a run ends by itself at the offsets it planned",
    ),
    _rule(
        Fate.GONE,
        "queued.max.message.chunks queued.max.messages queuedchunks.max max.poll.records",
        "Ferry holds no queue between reading and writing; `ferry.task.memory.bytes` bounds what a task holds",
    ),
    _rule(
        Fate.GONE,
        "rebalance.max.retries rebalance.retries.max rebalance.backoff.ms partition.assignment.strategy"
        " session.timeout.ms heartbeat.interval.ms max.poll.interval.ms",
        "there is no consumer group, so no rebalance: the plan assigns the partitions",
    ),
    _rule(
        Fate.GONE,
        "offsets.storage offsets.channel.backoff.ms offsets.channel.socket.timeout.ms offsets.commit.max.retries"
        " dual.commit.enabled",
        "positions are in the ledger, on the target",
    ),
    _rule(
        Fate.GONE,
        "num.consumer.fetchers fetcher.backoff.ms backoff.increment.ms refresh.leader.backoff.ms max.fetch.size",
        "Ferry reads by its own rules; `tasks.max` is the number of readers",
    ),
    _rule(
        Fate.GONE,
        "key.deserializer value.deserializer deserializer.class serializer.class deserializer.encoding",
        _SERIALIZERS,
    ),
    _rule(Fate.GONE, "allow.auto.create.topics", "Ferry reads topics that exist and creates none at the source"),
    _rule(
        Fate.GONE, "socket.send.buffer socket.send.buffer.bytes", "a setting of the source's brokers, not of clients"
    ),
    _RETRIES,
    _METRICS,
    _PROVIDERS,
    _INTERCEPTORS,
)

PRODUCER_KEYS = (
    KeyRule(
        names=("bootstrap.servers", "metadata.broker.list", "broker.list"),
        fate=Fate.KEPT,
        becomes="bootstrap.servers",
        meaning=Meaning.SERVERS,
        convert=servers,
        why="the target cluster",
    ),
    *_ZOOKEEPER,
    *_network("producer"),
    _kept("max.request.size max.message.size", "producer", number(1), "bound of a produce request"),
    _kept("send.buffer.bytes buffer.size", "producer", number(-1)),
    _kept("receive.buffer.bytes", "producer", number(-1)),
    _rule(
        Fate.ALWAYS,
        "acks request.required.acks required.acks",
        "a write counts when all in-sync replicas have it (acks=all)",
    ),
    _rule(
        Fate.ALWAYS,
        "retries message.send.max.retries num.retries",
        "a write is tried again without loss or double; what still fails is done by the next run",
    ),
    _rule(
        Fate.ALWAYS,
        "max.in.flight.requests.per.connection",
        "the order within a partition is kept with several requests under way, too",
    ),
    _rule(
        Fate.ALWAYS,
        "block.on.buffer.full max.block.ms queue.enqueueTimeout.ms queue.enqueue.timeout.ms",
        "reading waits for writing; nothing is thrown away when a buffer is full",
    ),
    _rule(Fate.ALWAYS, "enable.idempotence", "every write is idempotent and part of a transaction"),
    _rule(
        Fate.GONE,
        "transactional.id transaction.timeout.ms transaction.two.phase.commit.enable",
        "Ferry names its own transactions; `ferry.transaction.timeout.ms` bounds them",
    ),
    _rule(
        Fate.GONE,
        "delivery.timeout.ms timeout.ms",
        "a write that fails loses nothing here, so the client's own default counts",
    ),
    _rule(
        Fate.GONE,
        "producer.type queue.time queue.size queue.buffering.max.ms queue.buffering.max.messages batch.num.messages"
        " batch.size linger.ms buffer.memory",
        "batches are copied as they were written at the source: nothing is queued to form new ones",
    ),
    _rule(
        Fate.GONE,
        "compression.codec compression.type compressed.topics compression.gzip.level compression.lz4.level"
        " compression.zstd.level",
        "batches keep the compression they have at the source; `producer.compression.type` would transcode them",
    ),
    _rule(
        Fate.GONE,
        "serializer.class key.serializer.class key.serializer value.serializer",
        _SERIALIZERS,
    ),
    _rule(
        Fate.LOOK,
        "partitioner.class",
        "Ferry keeps each record's partition number, so that order is kept; make sure that consumers of the target do"
        " not rely on this class",
    ),
    _rule(
        Fate.GONE,
        "partitioner.ignore.keys partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms",
        "Ferry keeps each record's partition number",
    ),
    _rule(
        Fate.LOOK,
        "callback.handler event.handler",
        "Ferry copies records as they are and calls no handler; do without it",
    ),
    _rule(Fate.GONE, "callback.handler.props event.handler.props", "it belongs to the handler"),
    _rule(
        Fate.GONE,
        "reconnect.interval reconnect.time.interval.ms topic.metadata.refresh.interval.ms metadata.max.idle.ms",
        "Ferry connects by its own rules; `metadata.max.age.ms` remains",
    ),
    _RETRIES,
    _METRICS,
    _PROVIDERS,
    _INTERCEPTORS,
)
