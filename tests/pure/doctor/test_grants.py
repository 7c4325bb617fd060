"""Which of the ACLs that a flow needs are there: Kafka's rules, one row each."""

from __future__ import annotations

import pytest

from ferry.features.acls.rules.grants import is_granted, of_grants
from ferry.model import AclBinding
from ferry.model.finding import Grade
from ferry.plan.rules.permissions import EVERY, Acl, Resource

ME = "User:ferry"
ORDERS = Resource(kind="topic", name="orders")
OURS = Resource(kind="topic", name="our-", prefixed=True)
ALL = Resource(kind="topic", name=EVERY)
CLUSTER = Resource(kind="cluster", name="kafka-cluster")


def wanted(operation: str, resource: Resource = ORDERS, *, optional: bool = False) -> Acl:
    return Acl(side="source", resource=resource, operation=operation, why="to copy", optional=optional)


def acl(operation: str, name: str = "orders", **changes: str) -> AclBinding:
    given = {"resource_type": "topic", "pattern_type": "literal", "principal": ME, "host": "*", "permission": "allow"}
    return AclBinding(operation=operation, resource_name=name, **(given | changes))


PREFIXED = {"pattern_type": "prefixed"}


@pytest.mark.parametrize(
    ("asked", "acls", "granted"),
    [
        (wanted("Read"), [acl("Read")], True),
        (wanted("Read"), [acl("All")], True),
        (wanted("Read"), [acl("Write")], False),
        (wanted("Read"), [acl("Read", principal="User:other")], False),
        (wanted("Read"), [acl("Read", principal="User:*")], True),
        (wanted("Read"), [acl("Read", "*")], True),
        (wanted("Read"), [acl("Read", "ord", **PREFIXED)], True),
        (wanted("Read"), [acl("Read", "ord")], False),
        (wanted("Read"), [acl("Read", resource_type="group")], False),
        (wanted("Read"), [acl("Read"), acl("Read", permission="deny")], False),
        (wanted("Read"), [acl("Read"), acl("All", permission="deny", principal="User:*")], False),
        (wanted("Read"), [acl("Read"), acl("Read", permission="deny", host="10.0.0.9")], True),
        (wanted("Describe"), [acl("Alter")], True),
        (wanted("Describe"), [acl("DescribeConfigs")], False),
        (wanted("DescribeConfigs"), [acl("AlterConfigs")], True),
        (wanted("Read", OURS), [acl("Read", "our-", **PREFIXED)], True),
        (wanted("Read", OURS), [acl("Read", "ou", **PREFIXED)], True),
        (wanted("Read", OURS), [acl("Read", "our-orders", **PREFIXED)], False),
        (wanted("Read", OURS), [acl("Read", "our-")], False),
        (wanted("Read", ALL), [acl("Read", "*")], True),
        (wanted("Read", ALL), [acl("Read", "a", **PREFIXED)], False),
        (wanted("Create"), [acl("Create", "kafka-cluster", resource_type="cluster")], True),
        (wanted("Write"), [acl("All", "kafka-cluster", resource_type="cluster")], False),
    ],
)
def test_an_acl_is_there_or_not_as_kafka_decides(asked: Acl, acls: list[AclBinding], granted: bool) -> None:
    assert is_granted(asked, acls, ME) is granted


def test_what_is_missing_is_named_and_only_the_other_side_is_left_alone() -> None:
    needed = [wanted("Read"), wanted("Describe", CLUSTER, optional=True)]
    found = of_grants("a->b", "source", needed, [], ME, "")
    assert (found.grade, found.check) == (Grade.WARN, "source ACLs")
    assert "Read on topic orders" in found.message
    assert of_grants("a->b", "target", needed, [], ME, "").grade is Grade.PASS


def test_optional_ones_that_are_missing_do_not_warn() -> None:
    found = of_grants("a->b", "source", [wanted("Read", optional=True)], [], ME, "")
    assert found.grade is Grade.PASS
    assert "Read on topic orders" in found.message


def test_without_a_principal_nothing_is_claimed() -> None:
    found = of_grants("a->b", "source", [wanted("Read")], [acl("Read")], None, "the token decides")
    assert found.grade is Grade.UNKNOWN
    assert "the token decides" in found.message
