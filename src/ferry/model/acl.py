"""ACLs of a cluster as values, in the words of kafka-acls, and a run's changes to those of the target."""

from __future__ import annotations

from dataclasses import dataclass

EVERYBODY = "User:*"
"""The principal that means all principals (`StandardAuthorizer.WILDCARD_PRINCIPAL`)."""

WILDCARD = "*"
"""The literal name that means all resources of a type, and the host that means all hosts."""

UNKNOWN = "number-"
"""The prefix of a word of a newer Kafka, of which Ferry knows only the number."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AclBinding:
    """One ACL of a cluster (Kafka's `AclBinding`, KIP-290).

    `resource_type` is `topic`, `group`, `transactional-id`, `cluster`, or a type that Ferry leaves alone.
    `pattern_type` is `literal` or `prefixed`; `permission` is `allow` or `deny`. Operations have the spelling of
    kafka-acls: `Read`.
    """

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str

    @property
    def prefixed(self) -> bool:
        """Whether it holds for all names that begin with `resource_name`."""
        return self.pattern_type == "prefixed"

    @property
    def is_known(self) -> bool:
        """Whether Ferry knows the words for it."""
        words = (self.resource_type, self.pattern_type, self.operation, self.permission)
        return not any(word.startswith(UNKNOWN) for word in words)

    @property
    def allows(self) -> bool:
        """Whether it permits; otherwise it forbids."""
        return self.permission == "allow"

    def is_about_topic(self, topic: str) -> bool:
        """Whether it holds for this topic: by its name, by a prefix of it, or for all topics."""
        if self.resource_type != "topic":
            return False
        return topic.startswith(self.resource_name) if self.prefixed else self.resource_name in (topic, WILDCARD)

    def __str__(self) -> str:
        name = f"{self.resource_name}*" if self.prefixed else self.resource_name
        where = "" if self.host == WILDCARD else f" from host {self.host}"
        return f"{self.permission} {self.principal} {self.operation} on {self.resource_type} {name}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclChange:
    """An ACL to create or delete on the target, and the ACL of the source that it was made from.

    `again`: Ferry had made it before, and another client deleted it.
    """

    kind: str  # "create" | "delete"
    binding: AclBinding
    source: AclBinding
    again: bool = False
