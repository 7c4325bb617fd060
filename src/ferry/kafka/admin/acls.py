"""ACLs of a cluster: describe, create, delete (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest, DescribeClusterRequest

from ferry.errors import Refused, Retryable
from ferry.kafka.admin.portions import settle
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.messages.catalogue import sentence
from ferry.model import AclBinding, Fact, sentence_of
from ferry.model.acl import UNKNOWN

_ANY = 1
_ALTER = 7
_PORTION = 500
"""ACLs in one request. A controller takes 10,000 records at once (`QuorumController.MAX_RECORDS_PER_USER_OP`)."""
_TRANSIENT = frozenset({codes.NOT_CONTROLLER, codes.REQUEST_TIMED_OUT})
_DECIDED = codes.UNAUTHORIZED | {
    codes.INVALID_REQUEST,
    codes.POLICY_VIOLATION,
    codes.SECURITY_DISABLED,
    codes.UNSUPPORTED_VERSION,
}
"""Errors that are found before anything is changed."""

# Kafka's `ResourceType`, `PatternType`, `AclOperation` and `AclPermissionType`.
TYPES = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
PATTERNS = {3: "literal", 4: "prefixed"}
OPERATIONS = {
    2: "All",
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
    15: "TwoPhaseCommit",
}
PERMISSIONS = {2: "deny", 3: "allow"}


class NoAuthorizer(Refused):
    """The cluster has no authorizer, so it has no ACLs either (SECURITY_DISABLED)."""

    def __init__(self, alias: str) -> None:
        super().__init__(sentence("acls.no-authorizer", cluster=alias))
        self.alias = alias


class AclInDoubt(Refused):
    """A broker answered a change of an ACL with an error that does not show whether the ACL was changed."""


async def described_acls(cluster: Cluster) -> frozenset[AclBinding]:
    """Return all ACLs of the cluster. Raises NoAuthorizer; NotPermitted, which names what to grant; Unreachable.

    Brokers before 2.0 have literal ACLs only, and their answers mean literal ones. A word that a newer Kafka has and
    Ferry does not know is named by its number, and no part of Ferry uses it.
    """
    request = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )

    answer = await _answered(cluster, request, "acls.unread")
    return frozenset(
        AclBinding(
            resource_type=word_of(TYPES, resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=word_of(PATTERNS, resource.pattern_type),
            principal=acl.principal,
            host=acl.host,
            operation=word_of(OPERATIONS, acl.operation),
            permission=word_of(PERMISSIONS, acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    )


async def may_alter_cluster(cluster: Cluster) -> bool:
    """Return whether the brokers permit this login to create and delete ACLs, and to write markers (KIP-430).

    True also when the broker does not report its permissions: it will refuse each of them. Raises Refused if the
    brokers are older than Kafka 2.8, or do not permit the question.
    """
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    answer = await _answered(cluster, request, "acls.permissions-unread")
    operations = answer.authorized_operations
    return operations is None or _ALTER in operations


async def _answered(cluster: Cluster, request: Any, code: str) -> Any:
    """Return the answer. Raises the errors of `_check`, with the sentence of this code."""

    async def action() -> Any:
        answer = await cluster.ask(request)
        _check(cluster, answer, code, "DESCRIBE")
        return answer

    return await cluster.retrying(action)


async def create_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, Refused]:
    """Create ACLs, many in a request; return the refusal of each ACL that was not created.

    It is AclInDoubt if the ACL may have been created. An ACL that exists already is not an error.
    """
    kind = CreateAclsRequest.AclCreation

    async def ask(part: Sequence[AclBinding]) -> Any:
        creations = [
            kind(
                resource_type=_code(TYPES, binding.resource_type),
                resource_name=binding.resource_name,
                resource_pattern_type=_code(PATTERNS, binding.pattern_type),
                principal=binding.principal,
                host=binding.host,
                operation=_code(OPERATIONS, binding.operation),
                permission_type=_code(PERMISSIONS, binding.permission),
            )
            for binding in part
        ]
        return (await cluster.ask(CreateAclsRequest(creations=creations))).results

    return await _in_portions(cluster, bindings, ask, "created")


async def delete_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, Refused]:
    """Delete exactly these ACLs; return the refusal of each ACL that was not deleted.

    It is AclInDoubt if the ACL may have been deleted. An ACL that is gone already is not an error.
    """
    kind = DeleteAclsRequest.DeleteAclsFilter

    async def ask(part: Sequence[AclBinding]) -> Any:
        filters = [
            kind(
                resource_type_filter=_code(TYPES, binding.resource_type),
                resource_name_filter=binding.resource_name,
                pattern_type_filter=_code(PATTERNS, binding.pattern_type),
                principal_filter=binding.principal,
                host_filter=binding.host,
                operation=_code(OPERATIONS, binding.operation),
                permission_type=_code(PERMISSIONS, binding.permission),
            )
            for binding in part
        ]
        results = (await cluster.ask(DeleteAclsRequest(filters=filters))).filter_results
        return [next((one for one in result.matching_acls if one.error_code), result) for result in results]

    return await _in_portions(cluster, bindings, ask, "deleted")


async def _in_portions(
    cluster: Cluster,
    bindings: Sequence[AclBinding],
    answers: Callable[[Sequence[AclBinding]], Awaitable[Any]],
    done: str,
) -> dict[AclBinding, Refused]:
    failed: dict[AclBinding, Refused] = {}
    tried: set[AclBinding] = set()
    """ACLs whose earlier request may have been carried out: it had no answer, or one that does not show it."""

    async def ask(part: list[AclBinding]) -> Iterable[tuple[AclBinding, Any]]:
        try:
            return zip(part, await answers(part), strict=True)
        except Retryable:
            tried.update(part)
            raise

    def judge(binding: AclBinding, outcome: Any) -> None:
        decided = outcome.error_code in _DECIDED and binding not in tried
        code = "acls.not-changed" if decided else "acls.in-doubt"
        try:
            _check(cluster, outcome, code, "ALTER", acl=str(binding), done=done)
        except Retryable:
            tried.add(binding)
            raise
        except Refused as error:
            raise error if decided else AclInDoubt(sentence_of(error)) from None

    for at in range(0, len(bindings), _PORTION):
        portion = bindings[at : at + _PORTION]
        await settle(cluster, dict(zip(portion, portion, strict=True)), failed, ask, judge)
    return failed


def _check(cluster: Cluster, outcome: Any, code: str, operation: str, **facts: Fact) -> None:
    """Raise what an answer with an error means; the sentence is that of `code`, with `facts`, the cluster and why."""
    error, words = outcome.error_code, (outcome.error_message or "").rstrip(" .")
    if error == codes.NONE:
        return
    if error == codes.SECURITY_DISABLED:
        raise NoAuthorizer(cluster.alias)
    made = partial(sentence, code, cluster=cluster.alias, **facts)
    if error in codes.UNAUTHORIZED:
        raise NotPermitted(made(why=f"grant {operation} on the cluster (ferry acls required)"))
    if error in _TRANSIENT:
        raise Retryable(made(why=codes.advised(error, words)))
    raise Refused(made(why=codes.advised(error, words)))


def word_of(words: dict[int, str], code: int) -> str:
    """Return the word of a code of Kafka's; for a code that is not known, its number."""
    return words.get(code, f"{UNKNOWN}{code}")


def _code(words: dict[int, str], word: str) -> int:
    return next(code for code, known in words.items() if known == word)
