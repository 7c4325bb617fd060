"""One Kafka cluster as seen by one process: connections, metadata, coordinators.

kafka-python's `kafka.net` and `kafka.protocol` carry the connections, TLS, SASL and every message. This module adds
what a replicator needs in addition: waits for throttling, a cache of leaders and coordinators, errors of Ferry's own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.manager import ConnectionManager, Selector
from ferry.kafka.connect.refusal import LoginDelayed, refusal
from ferry.kafka.connect.reliance import check_installed
from ferry.model import TopicPartition, sentence_of, topic_id_of, topic_id_text, with_text

log = logging.getLogger(__name__)

GROUP = 0
TRANSACTION = 1
SECOND_WORD_S = 5.0
"""How long each other broker is asked for a topic that the first one does not know any more."""
_ANSWERED = codes.UNAUTHORIZED | {
    codes.NONE,
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.UNKNOWN_TOPIC_ID,
    codes.INVALID_TOPIC,
}
"""The codes of a topic's metadata that show whether the topic is there, or is hidden."""

T = TypeVar("T")

Options = dict[str, Any]
"""Keyword arguments of kafka-python's connection manager, made by `ferry.config.flow.clients`."""


def event_loop() -> NetworkSelector:
    """Make kafka-python's event loop; one serves all clusters of a process.

    Raises Refused when the installed kafka-python lacks what Ferry needs of it.
    """
    check_installed()
    return NetworkSelector(slow_task_threshold_secs=0, selector=Selector)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """Leader (-1: none), its epoch and the replicas of one partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic as the metadata describes it; `topic_id` is None on brokers without topic ids."""

    name: str
    topic_id: Any
    partitions: dict[int, PartitionInfo]
    internal: bool

    @property
    def id_text(self) -> str:
        """The topic id as Kafka's tools print it; empty when the broker has none."""
        return topic_id_text(self.topic_id)


class _NoMetadata(Retryable):
    """A broker's answer has an error in the place of what was asked."""


class TooOld(Refused):
    """The brokers support no version of a request that can express what is needed."""


class Cluster:
    """Requests to the right broker of one cluster. Not thread-safe; belongs to one event loop."""

    def __init__(self, loop: NetworkSelector, alias: str, options: Options, *, patience_s: float = 60.0) -> None:
        """Take `options`, which `ferry.config.flow.clients` makes.

        `patience_s` bounds every retry before Unreachable.
        """
        self.loop = loop
        self.alias = alias
        self.patience_s = patience_s
        self.topics: dict[str, TopicInfo] = {}
        self.denied: set[str] = set()
        """Topics that this login may not see, whether they exist or not; only what was asked for by name is in it."""
        self.cluster_id = ""
        self.controller: int | None = None
        """The broker that the metadata names as the controller. With KRaft it is any broker, which passes requests on.

        None: the metadata names none.
        """
        self.transaction_version = 0
        self.throttled_s = 0.0
        """Time for which brokers asked for a pause (KIP-219); pauses that overlap count once."""
        self._throttled_until = 0.0
        self._options = options
        self._coordinators: dict[tuple[int, str], int] = {}
        self._manager = ConnectionManager(loop, **options)

    async def open(self) -> Cluster:
        """Connect, and learn the cluster id and the finalized features.

        Raises Unreachable, which names the alias and the addresses, and Refused when a login or a TLS handshake is
        refused.
        """
        try:
            bootstrap = self._manager.bootstrap_async(timeout_ms=self.patience_s * 1000)
            pause_s = 0.001  # a cluster nearby answers in milliseconds, and a switch connects dozens of times
            while not bootstrap.is_done:
                why = refusal(self._where, self._manager.last_failure)
                if why is not None:
                    raise Refused(why)
                await self.loop.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.02)
            await bootstrap
        except (kafka_errors.KafkaError, OSError, ValueError) as error:
            raise self._unreachable(self._manager.last_failure or error) from error
        listing = self.loop.call_soon_with_future(self.refresh, ())
        request = ApiVersionsRequest(version=3, client_software_name="ferry", client_software_version="1")
        versions = await self.retrying(partial(self.ask, request))
        features = {feature.name: feature.max_version_level for feature in versions.finalized_features or ()}
        self.transaction_version = int(features.get("transaction.version", 0))
        await listing
        return self

    def close(self) -> None:
        """Close all connections."""
        self._manager.close()

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers that the metadata lists, ascending."""
        return tuple(sorted(broker.node_id for broker in self._manager.cluster.brokers()))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The brokers' advertised addresses, `host:port`, by broker id."""
        brokers = sorted(self._manager.cluster.brokers(), key=lambda broker: int(broker.node_id))
        return tuple(f"{broker.host}:{broker.port}" for broker in brokers)

    @property
    def racks(self) -> tuple[str, ...]:
        """The brokers' racks, by broker id; empty for a broker without one."""
        brokers = sorted(self._manager.cluster.brokers(), key=lambda broker: int(broker.node_id))
        return tuple(broker.rack or "" for broker in brokers)

    async def submit(
        self,
        request: Any,
        node: int | None = None,
        *,
        timeout_ms: float | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> Future:
        """Put a request on its connection (in call order) and return the future answer.

        Waits while the connection is being made or throttled (KIP-219); raises Retryable when it cannot be made.
        `before` is called right before the request is put there; what it raises is raised, and nothing is sent.
        """
        until = time.monotonic() + self.patience_s
        while True:
            target = node if node is not None else self._manager.least_loaded_node()
            try:
                if target is None:
                    raise kafka_errors.NodeNotReadyError("no broker is known")
                if self._manager.closed:  # a waiting caller must not open a connection again
                    raise Retryable(f"cluster {self.alias}: the connections are closed")
                connection = self._manager.get_connection(target)
                if connection.initializing:
                    await connection
                if not connection.paused:
                    before()
                    answer = connection.send_request(request, request_timeout_ms=timeout_ms)
                    answer.add_callback(self._note_throttling)
                    return answer
                delay = 0.005
            except kafka_errors.NodeNotReadyError:
                delay = max(0.005, self._manager.connection_delay(target) if target is not None else 0.05)
            except kafka_errors.UnknownBrokerIdError as error:
                raise Retryable(f"cluster {self.alias} has no broker {target} in its metadata") from error
            except (kafka_errors.KafkaError, OSError) as error:
                why = refusal(self._where, error)
                if why is not None:
                    raise Refused(why) from error
                raise Retryable(f"cluster {self.alias}, broker {target}: {error}") from error
            if time.monotonic() + delay > until:
                raise Retryable(f"cluster {self.alias}, broker {target}: no connection within {self.patience_s:g} s")
            await self.loop.sleep(delay)

    def _note_throttling(self, answer: Any) -> None:
        pause_ms = getattr(answer, "throttle_time_ms", 0)
        if pause_ms:
            now = time.monotonic()
            until = max(self._throttled_until, now + pause_ms / 1000)
            self.throttled_s += until - max(self._throttled_until, now)
            self._throttled_until = until

    @property
    def pause_s(self) -> float:
        """How long a broker still wants no request of this client, in seconds."""
        return max(0.0, self._throttled_until - time.monotonic())

    def drop_throttled(self) -> None:
        """Continue over new connections, because the paused ones served a request that is abandoned.

        A broker that refuses a change because of its quota pauses the whole connection until the quota allows more,
        which may take minutes (KIP-599). Java's clients have a separate connection for such changes.
        """
        self.throttled_s -= self.pause_s
        self._throttled_until = 0.0
        self._manager.close_throttled()

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        """Send a request and return its answer.

        Any transport failure raises Retryable, and the request's effect is unknown.
        """
        answer = await self.submit(request, node, timeout_ms=timeout_ms)
        return await self.answered(answer)

    async def answered(self, answer: Future) -> Any:
        """Wait for the answer to a submitted request. Any transport failure raises Retryable, its effect unknown."""
        try:
            return await answer
        except kafka_errors.IncompatibleBrokerVersion as error:
            raise TooOld(
                f"cluster {self.alias} is too old ({error}): upgrade it; a target needs Kafka 2.8, a source 1.1 or "
                "newer"
            ) from error
        except kafka_errors.KafkaError as error:  # its text begins with its name
            raise Retryable(f"cluster {self.alias}: {error}") from error
        except OSError as error:
            raise Retryable(f"cluster {self.alias}: {type(error).__name__} {error}") from error

    async def retrying(self, action: Callable[[], Awaitable[T]]) -> T:
        """Repeat `action` while it raises Retryable, with jittered back-off, for `patience_s` at most."""
        begun = time.monotonic()
        try:
            return await action()  # most actions succeed at once, and tenacity costs more than many answers
        except Retryable as error:
            failed = [error]

        async def attempt() -> T:
            if failed:  # the attempt above is tenacity's first, so the pauses are as usual
                raise failed.pop()
            return await action()

        attempts = AsyncRetrying(
            stop=stop_after_delay(self.patience_s - (time.monotonic() - begun)),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            retry=retry_if_exception_type(Retryable),
            sleep=self.loop.sleep,
            reraise=True,
        )
        try:
            return await attempts(attempt)
        except Retryable as error:
            raise self.given_up(error) from error

    def given_up(self, error: Retryable) -> Unreachable:
        """Return the error for what failed until the patience was over, with the remedy."""
        is_login = isinstance(error.__cause__, LoginDelayed)
        remedy = "bring that service back" if is_login else "look at the cluster's health"
        said = f"{error} (given up after {self.patience_s:g} s: {remedy}, then run again)"
        return Unreachable(with_text(sentence_of(error), said))

    async def within(self, seconds: float, action: Callable[[], Awaitable[T]]) -> T:
        """Return what `action` returns, or raise Unreachable after `seconds`; its result is then ignored."""
        try:
            result: T = await self._manager.wait_for(self.loop.call_soon_with_future(action), seconds * 1000)
        except kafka_errors.KafkaTimeoutError as error:
            raise Unreachable(f"cluster {self.alias} does not answer within {round(seconds, 1):g} s") from error
        return result

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        """Ask for the metadata of these topics (None: all) and remember it; unknown topics are left out of the answer.

        A broker that has just started, or has much to do, learns of topics late. So a topic that was known before is
        unknown only when no broker that answers knows it. Raises Unreachable while a broker answers with an error.
        """
        names = None if topics is None else list(topics)
        before = self.topics.keys() if names is None else self.topics.keys() & set(names)
        found, denied = self._remembered(await self.retrying(partial(self._metadata, names)))
        missing = before - found.keys() - denied
        unanswered: _NoMetadata | None = None
        for node in self.brokers if missing else ():
            try:
                answer = await self.within(SECOND_WORD_S, partial(self._metadata, sorted(missing), node))
            except _NoMetadata as error:
                unanswered = error
                continue
            except (Retryable, Unreachable):
                continue
            more, unseen = self._remembered(answer)
            found |= more
            missing -= more.keys() | unseen
            if not missing:
                break
        if missing and unanswered is not None:  # that broker does not say that the topics are gone
            raise Unreachable(str(unanswered)) from unanswered
        for name in missing:
            self.topics.pop(name, None)  # another coroutine may have found the same
        if names is None:
            self.topics = dict(found)
        return found

    async def _metadata(self, names: Iterable[str] | None, node: int | None = None) -> Any:
        kind = MetadataRequest.MetadataRequestTopic
        wanted = None if names is None else [kind(topic_id=None, name=name) for name in names]
        answer = await self.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), node)
        if answer.error_code:
            raise _NoMetadata(f"metadata of cluster {self.alias}: {codes.describe(answer.error_code)}")
        for topic in answer.topics:
            if topic.error_code not in _ANSWERED:  # or it would count as deleted, or as one without partitions
                raise _NoMetadata(
                    f"metadata of topic {topic.name} on cluster {self.alias}: {codes.describe(topic.error_code)}"
                )
        return answer

    def _remembered(self, answer: Any) -> tuple[dict[str, TopicInfo], set[str]]:
        """Remember the topics of an answer. Return them, and the names of those that this login may not see."""
        self._manager.cluster.update_metadata(answer)
        self.cluster_id = answer.cluster_id or ""
        self.controller = answer.controller_id if answer.controller_id in self.brokers else None
        found = {topic.name: _topic_info(topic) for topic in answer.topics if topic.error_code == codes.NONE}
        self.topics |= found
        return found, self._noted_denied(answer)

    def _noted_denied(self, answer: Any) -> set[str]:
        """Remember which topics of an answer this login may not see, and return them."""
        denied = {topic.name for topic in answer.topics if topic.error_code in codes.UNAUTHORIZED}
        self.denied = (self.denied - {topic.name for topic in answer.topics}) | denied
        return denied

    async def hidden(self, topics: Iterable[str]) -> frozenset[str]:
        """Return those of the topics that this principal may not see, whether they exist or not."""
        names = list(topics)
        if not names:
            return frozenset()
        return frozenset(self._noted_denied(await self.retrying(partial(self._metadata, names))))

    async def deleted(self, ids: Mapping[str, str]) -> frozenset[str]:
        """Return those of the topics that no broker knows any more by their ids.

        `ids` are by name, as Kafka's tools print them. A topic that is only hidden from this login is not among them,
        because a broker that is asked by id distinguishes the two. The answer is empty when a broker does not answer,
        or is too old to be asked by id (before Kafka 3.1).
        """
        kind = MetadataRequest.MetadataRequestTopic
        wanted = [kind(topic_id=topic_id_of(text), name=None) for text in ids.values()]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=12)
        left = set(ids.values())
        for node in self.brokers:
            try:
                answer = await self.ask(request, node)
            except (Retryable, Refused):
                return frozenset()
            left &= {
                topic_id_text(each.topic_id) for each in answer.topics if each.error_code == codes.UNKNOWN_TOPIC_ID
            }
        return frozenset(name for name, text in ids.items() if text in left)

    def leader(self, place: TopicPartition) -> int:
        """Return the leader of a partition by the remembered metadata. Raises Retryable when it has none."""
        info = self.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info else None
        if partition is None or partition.leader < 0:
            raise Retryable(f"{place} on cluster {self.alias} has no leader at the moment")
        return partition.leader

    async def coordinator(self, kind: int, key: str) -> int:
        """Return the broker id of the coordinator of a group (GROUP) or a transactional id (TRANSACTION)."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known

        async def action() -> int:
            answer = await self.ask(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code in codes.UNAUTHORIZED:
                what, operation = ("group", "READ") if kind == GROUP else ("transactional id", "WRITE")
                raise Refused(f"not allowed to use {what} {key} on cluster {self.alias}: grant {operation} on it")
            if found.error_code:
                raise Retryable(f"coordinator of {key} on cluster {self.alias}: {codes.describe(found.error_code)}")
            node: int = found.node_id
            if node not in self.brokers:
                await self.refresh(())
            return node

        node = await self.retrying(action)
        self._coordinators[kind, key] = node
        return node

    def forget_coordinator(self, kind: int, key: str) -> None:
        """Have the coordinator requested again next time."""
        self._coordinators.pop((kind, key), None)

    @property
    def _where(self) -> str:
        return f"cluster {self.alias} at {', '.join(self._options['bootstrap_servers'])}"

    def _unreachable(self, error: BaseException) -> FerryError:
        why = refusal(self._where, error)
        if why is not None:
            return Refused(why)
        return Unreachable(
            f"{self._where} does not answer within {self.patience_s:g} s ({error}): "
            "check the address, the port and the security settings"
        )


def _topic_info(topic: Any) -> TopicInfo:
    return TopicInfo(
        name=topic.name,
        topic_id=topic.topic_id,
        internal=bool(topic.is_internal),
        partitions={
            part.partition_index: PartitionInfo(
                partition=part.partition_index,
                leader=part.leader_id,
                leader_epoch=part.leader_epoch,
                replicas=tuple(part.replica_nodes),
                in_sync=tuple(part.isr_nodes),
            )
            for part in topic.partitions
        },
    )
