"""What scripted brokers answer about ACLs, and about what a login may do on the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from kafka.protocol import admin

from ferry.kafka.connect import codes
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Asked

_ANY = 1
"""Kafka's number in filters for any type of resource, pattern, operation or permission."""
_ALLOW = 3
_ALL = {5, 7, 8, 9, 10, 11, 12}
"""What can be done on a cluster, by Kafka's numbers."""
_RESOURCE = "resource_type", "resource_name", "pattern_type"
_ENTRY = "principal", "host", "operation", "permission_type"
_NO_AUTHORIZER = "No Authorizer is configured."


@dataclass(kw_only=True)
class AclBrokers(Brokers):
    """A cluster with ACLs, which nothing checks."""

    STATE: ClassVar[tuple[str, ...]] = (*Brokers.STATE, "acls")

    acls: list[Mapping[str, Any]] = field(default_factory=list)
    """Each ACL with the names of Kafka's protocol; without a host and a permission it allows something to all hosts."""
    authorizer: bool = True
    seen: set[str] | None = None
    """The groups that the login may describe, if it may not describe the cluster; None: it may."""

    def _DescribeAcls(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
        kind = admin.DescribeAclsResponse
        if not self.authorizer:
            return kind(error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, resources=[])
        found = sorted(
            (one for one in map(_whole, self.acls) if _matches(asked.request, one)),
            key=_resource,
        )
        resource = kind.DescribeAclsResource
        return kind(
            resources=[
                resource(
                    **dict(zip(_RESOURCE, each, strict=True)),
                    acls=[resource.AclDescription(**{name: one[name] for name in _ENTRY}) for one in of_each],
                )
                for each, of_each in groupby(found, _resource)
            ]
        )

    def _CreateAcls(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.CreateAclsResponse
        results = []
        for one in asked.request.creations:
            code, message = 0, ""
            if not self.authorizer:
                code, message = codes.SECURITY_DISABLED, _NO_AUTHORIZER
            elif not one.resource_name or ":" not in one.principal:
                code, message = codes.INVALID_REQUEST, "Invalid empty resource name, or no type of a principal"
            else:
                made = {name: getattr(one, name) for name in (*_RESOURCE[:2], *_ENTRY)}
                made["pattern_type"] = one.resource_pattern_type
                if made not in map(_whole, self.acls):
                    self.acls.append(made)
            results.append(kind.AclCreationResult(error_code=code, error_message=message))
        return kind(results=results)

    def _DeleteAcls(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DeleteAclsResponse
        result = kind.DeleteAclsFilterResult
        results = []
        for each in asked.request.filters:
            if not self.authorizer:
                results.append(
                    result(error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, matching_acls=[])
                )
                continue
            gone = [one for one in map(_whole, self.acls) if _matches(each, one)]
            self.acls = [one for one in self.acls if _whole(one) not in gone]
            matching = [result.DeleteAclsMatchingAcl(error_code=0, error_message=None, **one) for one in gone]
            results.append(result(error_code=0, error_message=None, matching_acls=matching))
        return kind(filter_results=results)

    def _DescribeCluster(self, asked: Asked) -> Any:  # noqa: N802
        operations = _ALL if self.seen is None else set()
        asks = asked.request.include_cluster_authorized_operations
        return admin.DescribeClusterResponse(
            cluster_id=self.alias, controller_id=1, brokers=[], authorized_operations=operations if asks else None
        )


def _whole(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"host": "*", "permission_type": _ALLOW, **one}


def _resource(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(one[name] for name in _RESOURCE)


def _matches(asked: Any, one: Mapping[str, Any]) -> bool:
    """Whether a filter has this ACL: it names each of its fields, or any."""
    names = {name: f"{name}_filter" for name in ("principal", "host", *_RESOURCE)}
    wanted = {name: getattr(asked, names.get(name, name)) for name in (*_RESOURCE, *_ENTRY)}
    return all(value in {None, _ANY, one[name]} for name, value in wanted.items())
