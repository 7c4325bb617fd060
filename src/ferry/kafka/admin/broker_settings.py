"""Settings of brokers, asked of each broker itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from ferry.errors import Retryable
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster

_BROKER = 4
"""The number of Kafka's `ConfigResource.Type.BROKER`."""


async def broker_settings(cluster: Cluster, names: Sequence[str]) -> dict[int, dict[str, str]]:
    """Return by broker the settings of `names` that it has.

    Raises NotPermitted when this login may not see them, and Unreachable when a broker keeps answering with errors.
    """
    return {node: await cluster.retrying(partial(settings_of_broker, cluster, node, names)) for node in cluster.brokers}


async def settings_of_broker(cluster: Cluster, node: int, names: Sequence[str]) -> dict[str, str]:
    """Return the settings of `names` that one broker has.

    Raises NotPermitted when this login may not see them, and Retryable when the broker answers with an error.
    """
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request: Any = DescribeConfigsRequest(
        resources=[resource(resource_type=_BROKER, resource_name=str(node), configuration_keys=list(names))],
        include_synonyms=False,
        include_documentation=False,
        min_version=1,
    )
    (result,) = (await cluster.ask(request, node)).results
    if result.error_code in codes.UNAUTHORIZED:
        raise NotPermitted(
            f"not allowed to read the settings of broker {node} of cluster {cluster.alias}: grant DESCRIBE_CONFIGS on "
            "the cluster"
        )
    if result.error_code:
        raise Retryable(f"settings of broker {node} of cluster {cluster.alias}: {codes.describe(result.error_code)}")
    return {entry.name: entry.value for entry in result.configs if entry.name in names and entry.value is not None}
