"""What is taken over without a word in the file, against MirrorMaker 2's own connector."""

from __future__ import annotations

import re
from dataclasses import replace

from ferry.config.flow.acls import AclSync
from ferry.features.acls.rules.acls import READ_SIDE, AclFacts, AclRules, decide_acls
from ferry.model import AclBinding, Flow
from ferry.policy import DefaultReplicationPolicy
from tests.kafka.config.java_oracle import ask, decoded, encoded

OPERATIONS = (
    "All",
    "Read",
    "Write",
    "Create",
    "Delete",
    "Alter",
    "Describe",
    "ClusterAction",
    "DescribeConfigs",
    "AlterConfigs",
    "IdempotentWrite",
)
RULES = AclRules(
    flow=Flow(source="a", target="b"),
    policy=DefaultReplicationPolicy(),
    sync=AclSync(),
    takes_topic=lambda _: True,
    takes_group=lambda _: True,
)
PLAIN = AclBinding(
    resource_type="topic",
    resource_name="orders",
    pattern_type="literal",
    principal="User:x",
    host="*",
    operation="Read",
    permission="allow",
)
CASES = [
    replace(PLAIN, operation=operation, permission=permission)
    for operation in OPERATIONS
    for permission in ("allow", "deny")
]


def in_java(operation: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()


def test_nothing_is_handed_out_that_mirror_maker_does_not_and_the_read_side_is_equal() -> None:
    questions = [f"acl {encoded(one.resource_name)} {in_java(one.operation)} {one.permission.upper()}" for one in CASES]
    answers = [tuple(decoded(word) for word in answer.split(" ")[1:]) for answer in ask(questions)]
    ours = []
    for one in CASES:
        facts = AclFacts(
            source_cluster_id="", source=frozenset({one}), target=frozenset(), own={}, topics=frozenset({"orders"})
        )
        made = [change.binding for change in decide_acls(RULES, facts).created]
        ours.append([(acl.resource_name, in_java(acl.operation), acl.permission.upper()) for acl in made])
    theirs = [[answer] if answer else [] for answer in answers]
    for one, mine, other in zip(CASES, ours, theirs, strict=True):
        # What MirrorMaker 2 takes besides lets others change the copies, or forbids Ferry to.
        if (one.operation, one.permission) == ("All", "deny"):
            assert other == [("a.orders", "ALL", "DENY")]
            assert mine == [("a.orders", in_java(operation), "DENY") for operation in sorted(READ_SIDE)]
            continue
        about_reading = one.operation in READ_SIDE | {"All"}
        assert mine == (other if about_reading else []), one
    assert [one for one, other in zip(CASES, theirs, strict=True) if not other] == [replace(PLAIN, operation="Write")]
