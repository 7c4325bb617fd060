"""Topics and their settings: describe, create, grow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTransactionsRequest,
)

from ferry.errors import FerryError, Refused, Retryable
from ferry.model import TopicPartition
from ferry.net import codes
from ferry.net.cluster import TRANSACTION, Cluster

_TOPIC_RESOURCE = 2
_DYNAMIC_TOPIC_CONFIG = 1
_CONFIG_REQUEST_TOPICS = 500
_REQUEST_PARTITIONS = 1_000
_TIMEOUT_MS = 30_000
_TRANSIENT = frozenset({codes.NOT_CONTROLLER, codes.REQUEST_TIMED_OUT, codes.NOT_ENOUGH_REPLICAS})


class NotPermitted(Refused):
    """The cluster's ACLs stand against it: an ALLOW must be added."""


class TooFewBrokers(Refused):
    """The cluster has not as many brokers as replicas were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; a replication factor of -1 is the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


async def create_topic(cluster: Cluster, topic: NewTopic) -> None:
    """Create a topic; that it exists already is no error.

    Raises NotPermitted, TooFewBrokers, and Refused with the broker's own reason otherwise.
    """
    for error in (await create_topics(cluster, [topic])).values():
        raise error


async def create_topics(cluster: Cluster, topics: Iterable[NewTopic]) -> dict[str, Refused]:
    """Create topics, many in a request; by name what stands against those that were not, as `create_topic` raises."""
    kind = CreateTopicsRequest.CreatableTopic
    entries = [
        kind(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=[],
            configs=[
                kind.CreatableTopicConfig(name=name, value=value) for name, value in sorted(topic.configs.items())
            ],
        )
        for topic in topics
    ]

    async def ask(part: list[Any]) -> Any:
        request = CreateTopicsRequest(topics=part, timeout_ms=_TIMEOUT_MS, validate_only=False)
        return (await cluster.ask(request)).topics

    def judge(outcome: Any) -> None:
        if outcome.error_code not in (codes.NONE, codes.TOPIC_ALREADY_EXISTS):
            _raise(f"topic {outcome.name} on cluster {cluster.alias} was not created", outcome, "CREATE")

    return await _in_portions(cluster, entries, lambda entry: max(1, entry.num_partitions), ask, judge)


async def grow_topics(cluster: Cluster, counts: Mapping[str, int]) -> dict[str, Refused]:
    """Raise topics to so many partitions, many in a request; by name what stands against those that were not."""
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    entries = [kind(name=name, count=count, assignments=None) for name, count in counts.items()]

    async def ask(part: list[Any]) -> Any:
        request = CreatePartitionsRequest(topics=part, timeout_ms=_TIMEOUT_MS, validate_only=False)
        outcomes = (await cluster.ask(request)).results
        failed = [outcome.name for outcome in outcomes if outcome.error_code]
        grown = await cluster.refresh(failed) if failed else {}  # by an earlier try, or by somebody else
        return [
            outcome
            for outcome in outcomes
            if outcome.name not in grown or len(grown[outcome.name].partitions) < counts[outcome.name]
        ]

    def judge(outcome: Any) -> None:
        if outcome.error_code:
            what = f"topic {outcome.name} on cluster {cluster.alias} was not grown to {counts[outcome.name]} partitions"
            _raise(what, outcome, "ALTER")

    return await _in_portions(cluster, entries, lambda entry: entry.count, ask, judge)


async def _in_portions(
    cluster: Cluster,
    entries: Sequence[Any],
    partitions: Callable[[Any], int],
    ask: Callable[[list[Any]], Awaitable[Any]],
    judge: Callable[[Any], None],
) -> dict[str, Refused]:
    """Ask for named entries, some partitions at a time: a controller refuses a request for too many.

    What may pass is asked for again; what is refused is kept by name, and the others go on.
    """
    failed: dict[str, Refused] = {}
    left = list(entries)
    while left:
        sums = accumulate(map(partitions, left))
        portion = [entry for entry, size in zip(left, sums, strict=True) if size <= _REQUEST_PARTITIONS] or left[:1]
        left = left[len(portion) :]

        async def action(waiting: dict[str, Any]) -> None:
            trouble: Retryable | None = None
            for outcome in await ask(list(waiting.values())):
                try:
                    judge(outcome)
                except Refused as error:
                    failed[outcome.name] = error
                except Retryable as error:
                    trouble = error
                    continue
                del waiting[outcome.name]
            if trouble is not None:
                raise trouble

        await cluster.retrying(partial(action, {entry.name: entry for entry in portion}))
    return failed


def _raise(what: str, outcome: Any, operation: str) -> None:
    code, said = outcome.error_code, (outcome.error_message or "").rstrip(" .")
    if code in codes.UNAUTHORIZED:
        raise NotPermitted(f"{what}, {codes.describe(code)}: grant {operation} on it")
    error: type[FerryError] = Retryable if code in _TRANSIENT else Refused
    if code == codes.INVALID_REPLICATION_FACTOR:
        error = TooFewBrokers
    raise error(f"{what}: {codes.advised(code, said)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedConfigs:
    """Settings per topic, and the topics whose settings this login may not see; vanished ones are in neither."""

    found: dict[str, dict[str, str]]
    denied: frozenset[str]


async def topic_configs(cluster: Cluster, topic: str) -> dict[str, str]:
    """All settings of one topic in force; Unreachable when the cluster does not show them, or NotPermitted."""

    async def action() -> dict[str, str]:
        listed = await all_topic_configs(cluster, [topic], own_only=False)
        if topic in listed.denied:
            raise NotPermitted(
                f"not allowed to read the settings of topic {topic} on cluster {cluster.alias}: grant DESCRIBE_CONFIGS "
                "on it"
            )
        if topic not in listed.found:
            raise Retryable(f"cluster {cluster.alias} does not show the settings of topic {topic}")
        return listed.found[topic]

    return await cluster.retrying(action)


async def all_topic_configs(
    cluster: Cluster, topics: Sequence[str], *, own_only: bool = True, names: Sequence[str] | None = None
) -> ListedConfigs:
    """Settings per topic, all or those of `names`; with `own_only` just those set on the topic itself."""
    found: dict[str, dict[str, str]] = {}
    denied: frozenset[str] = frozenset()
    for at in range(0, len(topics), _CONFIG_REQUEST_TOPICS):
        part = topics[at : at + _CONFIG_REQUEST_TOPICS]
        resource = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[
                resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=names) for name in part
            ],
            include_synonyms=False,
            include_documentation=False,
            min_version=1,  # since Kafka 1.1; before, an answer does not tell a topic's own settings from defaults
        )
        listed = await cluster.retrying(partial(_configs, cluster, request, own_only))
        found |= listed.found
        denied |= listed.denied
    return ListedConfigs(found=found, denied=denied)


async def _configs(cluster: Cluster, request: Any, own_only: bool) -> ListedConfigs:
    found: dict[str, dict[str, str]] = {}
    denied = set()
    for result in (await cluster.ask(request)).results:
        if result.error_code in codes.UNAUTHORIZED:
            denied.add(str(result.resource_name))
            continue
        if result.error_code in (codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC):
            continue
        if result.error_code:
            # Without its settings a topic would be created with the target's, and its old records deleted.
            raise Retryable(
                f"settings of topic {result.resource_name} on cluster {cluster.alias}: "
                f"{codes.describe(result.error_code)}"
            )
        found[result.resource_name] = {
            entry.name: entry.value
            for entry in result.configs
            if entry.value is not None and (not own_only or entry.config_source == _DYNAMIC_TOPIC_CONFIG)
        }
    return ListedConfigs(found=found, denied=frozenset(denied))


async def log_sizes(cluster: Cluster) -> dict[TopicPartition, int]:
    """Bytes on disk per partition (the largest replica), as DescribeLogDirs reports them.

    They serve estimates only, so a broker that is down or that does not permit the request is left out.
    """
    sizes: dict[TopicPartition, int] = {}
    for node in cluster.brokers:
        try:
            answer = await cluster.ask(DescribeLogDirsRequest(topics=None), node)
        except Retryable:
            continue
        for directory in answer.results:
            for topic in directory.topics or ():
                for part in topic.partitions:
                    place = TopicPartition(topic=topic.name, partition=part.partition_index)
                    sizes[place] = max(sizes.get(place, 0), part.partition_size)
    return sizes


async def transaction_state(cluster: Cluster, transactional_id: str) -> str:
    """State and partitions of a transactional id for an error message; what could not be learned is said."""
    try:
        node = await cluster.coordinator(TRANSACTION, transactional_id)
        answer = await cluster.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]), node)
        state = answer.transaction_states[0]
    except FerryError as error:
        return f"state unknown ({error})"
    places = [f"{topic.topic}-{part}" for topic in state.topics for part in topic.partitions]
    return f"state {state.transaction_state}, partitions {', '.join(places) or 'none'}"
