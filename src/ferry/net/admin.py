"""Topics and their settings: describe, create, grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
_TIMEOUT_MS = 30_000
_TRANSIENT = frozenset({codes.NOT_CONTROLLER, codes.REQUEST_TIMED_OUT, codes.NOT_ENOUGH_REPLICAS})


class NotPermitted(Refused):
    """The cluster's ACLs stand against it: an ALLOW must be added."""


class TooFewBrokers(Refused):
    """The cluster has not as many brokers as replicas were asked for."""


async def create_topic(
    cluster: Cluster, topic: str, *, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> None:
    """Create a topic; that it exists already is no error.

    Raises NotPermitted, TooFewBrokers, and Refused with the broker's own reason otherwise.
    """
    wanted = CreateTopicsRequest.CreatableTopic
    request_topic = wanted(
        name=topic,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[wanted.CreatableTopicConfig(name=name, value=value) for name, value in sorted(configs.items())],
    )

    async def action() -> None:
        answer = await cluster.ask(
            CreateTopicsRequest(topics=[request_topic], timeout_ms=_TIMEOUT_MS, validate_only=False),
        )
        outcome = answer.topics[0]
        if outcome.error_code in (codes.NONE, codes.TOPIC_ALREADY_EXISTS):
            return
        _raise(f"topic {topic} on cluster {cluster.alias} was not created", outcome, "CREATE")

    await cluster.retrying(action)


async def grow_topic(cluster: Cluster, topic: str, partitions: int) -> None:
    """Raise the number of partitions to `partitions`; raises as `create_topic`."""

    async def action() -> None:
        answer = await cluster.ask(
            CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=partitions, assignments=None)],
                timeout_ms=_TIMEOUT_MS,
                validate_only=False,
            )
        )
        outcome = answer.results[0]
        if outcome.error_code:
            info = (await cluster.refresh([topic])).get(topic)
            if info is not None and len(info.partitions) >= partitions:
                return
            _raise(
                f"topic {topic} on cluster {cluster.alias} was not grown to {partitions} partitions", outcome, "ALTER"
            )

    await cluster.retrying(action)


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
