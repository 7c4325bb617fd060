"""Which ACLs are taken over, and for whom, as the file says it."""

from __future__ import annotations

import pytest

from ferry.config.flow.acls import AclPolicy, AclSync, principal_mapping
from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from ferry.config.text.problem import BadValue, Severity
from tests.golden import Golden

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"


@pytest.mark.parametrize(
    ("rules", "principal", "mapped"),
    [
        ("", "User:CN=ann,O=us", "User:CN=ann,O=us"),
        ("User:CN=ann,O=us => User:ann", "User:CN=ann,O=us", "User:ann"),
        ("User:CN=ann,O=us => User:ann", "User:CN=ann,O=us,C=de", None),  # the whole principal
        ("User:CN=ann,O=us => User:ann", "User:bob", None),
        (r"User:CN=(\w+),.* => User:$1-eu", "User:CN=ann,O=us", "User:ann-eu"),
        (r"(\w+):(.*) => $1:x.$2", "Group:g", "Group:x.g"),
        (".* => $0", "User:bob", "User:bob"),
        ("User:bob => ; .* => $0", "User:bob", ""),
        (".* => User:one; User:bob => User:two", "User:bob", "User:one"),  # the first one counts
        (r"User:a\;b => User:c", "User:a;b", "User:c"),
        (r"User:bob => User:\$1", "User:bob", "User:$1"),
        ("User:(a)?bob => User:x$1", "User:bob", "User:x"),
        ("User:bob => User:ann", "User:*", "User:*"),  # everybody is nobody's name
        (" ; User:bob=>User:ann ;", "User:bob", "User:ann"),
    ],
)
def test_a_principal_of_the_source_is_one_of_the_target(rules: str, principal: str, mapped: str | None) -> None:
    assert principal_mapping(rules).of(principal) == mapped


@pytest.mark.parametrize(
    "rules",
    [
        "User:bob",
        " => User:bob",
        "User:a => User:b => User:c",
        "User:bob => ann",
        "User:(bob => User:ann",
        "User:(.*) => User:$2",
    ],
)
def test_a_rule_that_cannot_be_read_is_one_sentence_with_the_remedy(rules: str, golden: Golden) -> None:
    with pytest.raises(BadValue) as caught:
        principal_mapping(rules)
    golden(caught.value)
    (problem,) = examine(f"{BASE}ferry.sync.acls.principal.mapping = {rules}\n", "f").problems
    assert (problem.line, problem.key) == (5, "ferry.sync.acls.principal.mapping")


def test_the_file_says_it_for_a_flow_and_the_digest_knows_when_it_does(golden: Golden) -> None:
    plain = parse_settings(BASE, "f").flows[0]
    assert (plain.acls.rules, plain.syncs_acls) == (AclSync(), True)
    lines = "ferry.sync.acls.policy = read\na->b.ferry.sync.acls.policy = full\n"
    full = parse_settings(f"{BASE}{lines}ferry.sync.acls.principal.mapping = .* => $0\n", "f").flows[0]
    assert (full.acls.rules.policy, full.acls.rules.mapping.of("User:x")) == (AclPolicy.FULL, "User:x")
    same = parse_settings(BASE + "ferry.sync.acls.policy = read\n", "f").flows[0]
    assert plain.digest() == same.digest() != full.digest()
    off = "sync.topic.acls.enabled = false\nferry.sync.acls.policy = full\n"
    (problem,) = examine(BASE + off, "f").problems
    assert (problem.line, problem.severity) == (6, Severity.WARNING)
    golden(problem.message, "no effect")
    for line in ("sync.topic.acls.enabled = false\n", "sync.topic.acls.interval.seconds = -1\n"):
        assert not parse_settings(BASE + line, "f").flows[0].syncs_acls
    (problem,) = examine(BASE + "ferry.sync.acls.policy = all\n", "f").problems
    golden(problem.message, "neither read nor full")
