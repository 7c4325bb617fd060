"""Asks each broker of a cluster whether it answers, and what it shows of the cluster. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.errors import UnrecognizedBrokerVersion
from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.features.doctor.rules.clusters import BrokerFacts, ClusterFacts, Steering, Version, written_level
from ferry.kafka.admin.broker_settings import settings_of_broker
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster

_METADATA_LOG = "__cluster_metadata"
_PROTOCOL = "inter.broker.protocol.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What brokers answered; `requests` are the kinds of requests that one of them supports, by their numbers."""

    facts: ClusterFacts
    requests: frozenset[int] = field(default_factory=frozenset)


async def ask_brokers(cluster: Cluster) -> Asked:
    """Ask all brokers that the metadata of an open cluster lists, at the same time.

    Each may take the cluster's patience, its connection and its login included.
    """
    asked = [(node, cluster.loop.call_soon_with_future(partial(_versions, cluster, node))) for node in cluster.brokers]
    addresses = dict(zip(cluster.brokers, cluster.addresses, strict=True))
    racks = dict(zip(cluster.brokers, cluster.racks, strict=True))
    brokers: list[BrokerFacts] = []
    newest: tuple[int, dict[str, int]] = (-1, {})
    requests: frozenset[int] = frozenset()
    for node, answer in asked:
        versions, why = await answer
        keys = {one.api_key: (one.min_version, one.max_version) for one in versions.api_keys} if versions else {}
        if versions is not None:
            newest = max(newest, (versions.finalized_features_epoch, _features(versions)), key=lambda one: one[0])
            requests |= keys.keys()
        brokers.append(
            BrokerFacts(
                id=node,
                address=addresses.get(node, ""),
                rack=racks.get(node, ""),
                version=_version(keys) if keys else None,
                why=why,
            )
        )
    facts = ClusterFacts(alias=cluster.alias, cluster_id=cluster.cluster_id, brokers=tuple(brokers), features=newest[1])
    return Asked(facts=facts, requests=requests)


async def _versions(cluster: Cluster, node: int) -> tuple[Any, str]:
    """Return what a broker supports, or None and why it did not answer."""
    request = ApiVersionsRequest(max_version=3, client_software_name="ferry", client_software_version="1")
    try:
        return await cluster.within(cluster.patience_s, partial(cluster.ask, request, node)), ""
    except Unreachable:
        return None, f"it does not answer within {cluster.patience_s:g} s"
    except FerryError as error:
        return None, str(error)


def _features(versions: Any) -> dict[str, int]:
    return {one.name: int(one.max_version_level) for one in versions.finalized_features or ()}


def _version(keys: Mapping[int, tuple[int, int]]) -> Version | None:
    try:
        found: Version = BrokerVersionData(api_versions=dict(keys)).broker_version
    except UnrecognizedBrokerVersion:
        return None
    return found


async def ask_steering(cluster: Cluster, asked: Asked) -> Steering:
    """Ask for the active controller, and for the version that the brokers agreed on."""
    not_known: list[str] = []
    controller = await _controller(cluster, asked, not_known)
    level = asked.facts.features.get("metadata.version")
    protocol = f"metadata.version {written_level(level)}" if level else await _protocol(cluster, asked, not_known)
    return Steering(controller=controller, protocol=protocol, not_known=tuple(not_known))


async def _controller(cluster: Cluster, asked: Asked, not_known: list[str]) -> int | None:
    if not asked.requests:  # the metadata of KRaft names any broker
        not_known.append("The controller is not known: no broker answers.")
        return None
    if DescribeQuorumRequest.API_KEY not in asked.requests:  # by ZooKeeper, or no Kafka: the metadata names it
        if cluster.controller is None:
            not_known.append("The controller is not known: the metadata names none.")
        return cluster.controller
    try:
        return await cluster.within(cluster.patience_s, partial(_quorum_leader, cluster))
    except FerryError as error:
        not_known.append(f"The controller is not known: {error}.")
        return None


async def _quorum_leader(cluster: Cluster) -> int:
    """Return the leader of KRaft's quorum. Raises Refused without the permission, and Retryable without a leader."""
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topic(topic_name=_METADATA_LOG, partitions=[topic.PartitionData(partition_index=0)])]
    )
    answer = await cluster.ask(request)
    parts = [part for one in answer.topics for part in one.partitions]
    code = answer.error_code or next((part.error_code for part in parts if part.error_code), codes.NONE)
    if code in codes.UNAUTHORIZED:
        raise Refused(f"not allowed to describe the quorum of cluster {cluster.alias}: grant DESCRIBE on the cluster")
    if code or not parts or parts[0].leader_id < 0:
        raise Retryable(f"the quorum of cluster {cluster.alias} has no leader now ({codes.describe(code)})")
    return int(parts[0].leader_id)


async def _protocol(cluster: Cluster, asked: Asked, not_known: list[str]) -> str:
    """Return the setting of the first broker that answers; empty if it is not known."""
    node = next((one.id for one in asked.facts.brokers if one.answers), None)
    why = "no broker answers"
    if node is not None:
        try:
            found = await cluster.within(cluster.patience_s, partial(settings_of_broker, cluster, node, [_PROTOCOL]))
        except FerryError as error:
            why = str(error)
        else:
            if _PROTOCOL in found:
                return f"{_PROTOCOL} {found[_PROTOCOL]}"
            why = f"broker {node} has no {_PROTOCOL}, and no finalized metadata.version"
    not_known.append(f"The version that the brokers agreed on is not known: {why}.")
    return ""
