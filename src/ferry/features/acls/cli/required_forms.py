"""The ACLs of `ferry acls required` as JSON: a contract, described in docs/json.md with a schema."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind
from ferry.plan.rules.permissions import Acl


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredAcl:
    """An ACL with the principal that it is for."""

    acl: Acl
    principal: str


_PATTERN_TYPE = Kind(
    lambda prefixed: "prefixed" if prefixed else "literal",
    schema=lambda: {"enum": ["literal", "prefixed"]},
)

REQUIRED = Form(
    RequiredAcl,
    F("side", "acl.side"),
    F("principal", says="the name under which the brokers of that side know Ferry"),
    F("resource_type", "acl.resource.kind"),
    F("resource_name", "acl.resource.name"),
    F("pattern_type", "acl.resource.prefixed", _PATTERN_TYPE),
    F("operation", "acl.operation", says="in the spelling of kafka-acls"),
    F("optional", "acl.optional", says="whether the flow works without it"),
    F("why", "acl.why"),
    name="acl",
)
