"""The numbers of client quotas and SCRAM users of a cluster. They are not copied, only counted for the report."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DescribeClientQuotasRequest, DescribeUserScramCredentialsRequest

from ferry.errors import FerryError
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.model.observed import Counted


async def client_quotas(cluster: Cluster) -> Counted:
    """Count the entities with a quota (KIP-546; DESCRIBE_CONFIGS on the cluster)."""
    request = DescribeClientQuotasRequest(components=[], strict=False)
    return await _counted(cluster, request, "entries", "DESCRIBE_CONFIGS")


async def scram_users(cluster: Cluster) -> Counted:
    """Count the users with SCRAM credentials (KIP-554; DESCRIBE on the cluster)."""
    # No users means all of them. With null, which means the same, a login without the right gets no answer at all.
    return await _counted(cluster, DescribeUserScramCredentialsRequest(users=[]), "results", "DESCRIBE")


async def _counted(cluster: Cluster, request: Any, what: str, operation: str) -> Counted:
    try:
        answer = await cluster.ask(request)
    except TooOld:
        return Counted(count=None, why="its brokers are too old to be asked")
    except FerryError as error:
        return Counted(count=None, why=str(error))
    if answer.error_code in codes.UNAUTHORIZED:
        return Counted(count=None, why=f"grant {operation} on the cluster")
    if answer.error_code:
        return Counted(count=None, why=codes.describe(answer.error_code))
    return Counted(count=len(getattr(answer, what) or ()))
