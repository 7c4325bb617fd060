"""`ferry acls required`: names, prefixes and commands. That they are enough is shown in tests/kafka/security."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.config.settings import parse_settings
from ferry.features.acls.cli.diff import show_diff
from ferry.features.acls.rules.acls import AclDiff, LeftOut
from ferry.model import AclBinding, AclChange
from ferry.plan.rules.permissions import Resource, required_acls
from tests.golden import Golden, brief
from tests.program import warm_ferry as ferry

FILE = """
clusters = a, b
a.bootstrap.servers = h1:9092, h2:9092
b.bootstrap.servers = h3:9092
a->b.enabled = true
a->b.topics = {topics}
heartbeats.replication.enabled = {heartbeats}
"""


def write(folder: Path, topics: str) -> Path:
    path = folder / "flow.properties"
    path.write_text(FILE.format(topics=topics, heartbeats="false"))
    return path


PLAIN_INTERNAL = "replication.policy.internal.topic.separator.enabled = false\n"


def test_the_commands_are_those_of_kafka_acls(tmp_path: Path, golden: Golden) -> None:
    principals = ("--source-principal", "User:CN=me, O=us", "--target-principal", "User:ferry")
    said = ferry("acls", "required", *principals, config=write(tmp_path, "orders"))
    assert (said.code, said.out.count("--bootstrap-server h3:9092")) == (0, 11), "commands at the target"
    golden(said.out)


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", ["a.checkpoints.internal", "mm2-offset-syncs.a.internal", "heartbeats"]),
        ("emit.offset-syncs.enabled = false\n", ["a.checkpoints.internal", "heartbeats"]),
        ("a->b.emit.heartbeats.interval.seconds = -1\n", ["a.checkpoints.internal", "mm2-offset-syncs.a.internal"]),
        (
            "emit.checkpoints.enabled = false\nreplication.policy.separator = -\n",
            ["mm2-offset-syncs-a-internal", "heartbeats"],
        ),
        (
            f"emit.checkpoints.enabled = false\nreplication.policy.separator = -\n{PLAIN_INTERNAL}",
            ["mm2-offset-syncs.a.internal", "heartbeats"],
        ),
        (
            "replication.policy.class = tests.pure.config.policies.Suffixed\n",
            ["a.checkpoints.internal", "mm2-offset-syncs.a.internal", "heartbeats"],
        ),
        (
            "a->b.offset-syncs.topic.location = source\n",
            ["a.checkpoints.internal", "source: mm2-offset-syncs.b.internal", "heartbeats"],
        ),
        (
            "b->a.emit.heartbeats.enabled = true\nemit.offset-syncs.enabled = false\n",
            ["a.checkpoints.internal", "heartbeats", "source: heartbeats"],
        ),
        (
            "b->a.emit.heartbeats.enabled = true\nb->a.enabled = true\nemit.offset-syncs.enabled = false\n",
            ["a.checkpoints.internal", "heartbeats"],
        ),
        (
            "emit.heartbeats.enabled = true\nemit.offset-syncs.enabled = false\n",
            ["a.checkpoints.internal", "heartbeats"],
        ),
    ],
)
def test_what_mirror_makers_topics_take(more: str, names: list[str]) -> None:
    """Each is optional, and nothing is written to the source unless a line of the file says so itself."""
    flow = parse_settings(FILE.format(topics="orders", heartbeats="true") + more, "flow.properties").flow("a->b")
    found = [acl for acl in required_acls(flow) if "MirrorMaker" in acl.why]
    assert all(acl.optional for acl in found)
    assert [(acl.side, acl.resource.name, acl.operation) for acl in found] == [
        ("source" if name.startswith("source: ") else "target", name.removeprefix("source: "), operation)
        for name in names
        for operation in ("Create", "Write")
    ]
    at_source = [acl for acl in required_acls(flow) if acl.side == "source" and acl not in found]
    assert {acl.operation for acl in at_source} <= {"Read", "Describe", "DescribeConfigs"}


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", {"group *"}),
        (r"groups = app, team\..*, .*-x, audit-.+", {"group app", "group team.*", "group audit-*", "group *"}),
        ("groups = app\nsync.group.offsets.enabled = false\nemit.checkpoints.enabled = false\n", set()),
    ],
)
def test_who_translates_groups_needs_to_see_and_to_write_them(more: str, names: set[str]) -> None:
    settings = parse_settings(FILE.format(topics="orders", heartbeats="false") + more, "flow.properties")
    found = [acl for acl in required_acls(settings.flows[0]) if "consumer groups" in acl.why]
    for side, operation in (("source", "Describe"), ("target", "Read")):
        assert {(str(acl.resource), acl.operation) for acl in found if acl.side == side} == {
            (name, operation) for name in names
        }


def test_who_writes_checkpoints_alone_needs_to_see_groups() -> None:
    more = "groups = app\nsync.group.offsets.enabled = false\n"
    settings = parse_settings(FILE.format(topics="orders", heartbeats="false") + more, "flow.properties")
    found = [acl for acl in required_acls(settings.flows[0]) if acl.resource == Resource(kind="group", name="app")]
    assert [(acl.side, acl.operation, acl.optional) for acl in found] == [("source", "Describe", True)]
    assert all(acl.optional for acl in found)


@pytest.mark.parametrize(
    ("more", "cluster"),
    [
        ("", {("source", "Describe", True), ("target", "Alter", True)}),
        ("ferry.sync.acls.policy = full\n", {("source", "Describe", False), ("target", "Alter", False)}),
        ("sync.topic.acls.enabled = false\nferry.sync.acls.policy = full\n", set()),
        ("sync.topic.acls.interval.seconds = -1\n", set()),
    ],
)
def test_who_takes_acls_over_needs_to_read_and_to_alter_them(more: str, cluster: set[tuple[str, str, bool]]) -> None:
    settings = parse_settings(FILE.format(topics="orders", heartbeats="false") + more, "flow.properties")
    found = [acl for acl in required_acls(settings.flows[0]) if acl.resource.kind == "cluster" and "ACLs" in acl.why]
    assert {(acl.side, acl.operation, acl.optional) for acl in found} == cluster


def test_a_diff_says_what_changes_what_stays_and_what_is_left_out(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (flow,) = parse_settings(FILE.format(topics="orders", heartbeats="false"), "flow.properties").flows
    source, copy = (
        AclBinding(
            resource_type="topic",
            resource_name=name,
            pattern_type="literal",
            principal="User:ann",
            host="*",
            operation=operation,
            permission="allow",
        )
        for name, operation in (("orders", "All"), ("a.orders", "Read"))
    )
    diff = AclDiff(
        changes=(
            AclChange(kind="create", binding=copy, source=source),
            AclChange(kind="delete", binding=replace(copy, host="10.0.0.7"), source=source),
        ),
        left_out=(LeftOut(binding=replace(source, resource_name="x", pattern_type="prefixed"), why="for a reason"),),
        kept=(replace(copy, principal="User:bob"),),
        forgotten=(),
        moved=(),
        unmapped=("User:new",),
        in_step=1,
        bereft=(replace(copy, principal="User:eve"),),
    )
    show_diff(flow, diff, 90_000)
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in shown] == ["+", "-", "kept:", "kept:", "left", "unmapped:", "a->b:"]
    golden("\n".join(shown))


IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


@pytest.mark.parametrize(
    ("topics", "heartbeats", "more", "at_source", "at_target"),
    [
        ("orders", "true", "", {"heartbeats", "orders"}, {"a.heartbeats", "a.orders"}),
        ("orders.*", "false", "", {"orders*"}, {"a.orders*"}),
        ("orders.*, orders, orders-new", "false", "", {"orders*"}, {"a.orders*"}),
        (r"audit\\.eu\\..*, x.y", "false", "", {"audit.eu.*", "x.y"}, {"a.audit.eu.*", "a.x.y"}),
        (".*", "true", "", {"*"}, {"a.*"}),
        (".*", "true", IDENTITY, {"*"}, {"*"}),
        ("orders.*", "true", IDENTITY, {"heartbeats", "orders*"}, {"a.heartbeats", "orders*"}),
    ],
)
def test_patterns_become_names_and_prefixes(
    topics: str, heartbeats: str, more: str, at_source: set[str], at_target: set[str]
) -> None:
    settings = parse_settings(FILE.format(topics=topics, heartbeats=heartbeats) + more, "flow.properties")
    found: dict[str, set[str]] = {"source": set(), "target": set()}
    for acl in required_acls(settings.flows[0]):
        if acl.resource.kind == "topic" and not acl.resource.name.startswith("ferry-ledger.") and not acl.optional:
            found[acl.side].add(str(acl.resource).removeprefix("topic "))
    assert found == {"source": at_source, "target": at_target}


OPTIONAL = {("source", True), ("target", True)}


@pytest.mark.parametrize(
    ("topics", "more", "sides"),
    [
        ("orders", "", set()),
        ("orders", IDENTITY, OPTIONAL),
        ("orders", IDENTITY + "ferry.merge.topics = orders\n", {("source", True), ("target", False)}),
        ("orders", "replication.policy.class = tests.pure.config.policies.Suffixed\n", OPTIONAL),
        (".*", IDENTITY, set()),  # every topic is permitted already
    ],
)
def test_who_reads_other_flows_ledgers_needs_to(topics: str, more: str, sides: set[tuple[str, bool]]) -> None:
    settings = parse_settings(FILE.format(topics=topics, heartbeats="false") + more, "flow.properties")
    found = [acl for acl in required_acls(settings.flows[0]) if acl.resource.name == "ferry-ledger."]
    assert {(acl.side, acl.optional) for acl in found} == sides
    assert all(acl.resource.prefixed and acl.operation == "Read" for acl in found)


def test_the_principal_is_that_of_the_login_and_a_protected_listener_asks_for_a_login_of_yours(
    tmp_path: Path, golden: Golden
) -> None:
    path = write(tmp_path, "orders")
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ferry-src" password="geheim";'
    with path.open("a") as file:
        file.write(f"a.security.protocol = SASL_SSL\na.sasl.mechanism = PLAIN\na.sasl.jaas.config = {login}\n")
    said = ferry("acls", "required", config=path)
    assert (said.code, said.err) == (0, "")
    assert "geheim" not in said.out
    golden(said.out)
    body = ferry("acls", "required", "--json", config=path).json("acls-required")
    assert body["principals"] == {
        "source": {"principal": "User:ferry-src", "known": True, "why": None},
        "target": {"principal": "User:ferry", "known": False, "why": "PLAINTEXT has no login"},
    }
    assert {(acl["side"], acl["principal"]) for acl in body["acls"]} == {
        ("source", "User:ferry-src"),
        ("target", "User:ferry"),
    }
    given = ferry("acls", "required", "--source-principal", "User:x", "--target-principal", "User:y", config=path)
    assert "ferry-src" not in given.out
    assert "is in place of" not in given.out


def test_the_acls_as_json(tmp_path: Path) -> None:
    body = ferry("acls", "required", "--json", config=write(tmp_path, "orders")).json("acls-required")
    assert body["flow"] == "a->b"
    assert {
        "side": "target",
        "principal": "User:ferry",
        "resource_type": "transactional-id",
        "resource_name": "ferry.a->b.live.",
        "pattern_type": "prefixed",
        "operation": "Write",
        "optional": False,
        "why": "to write in transactions",
    } in body["acls"]


def test_a_pattern_that_acls_cannot_say_asks_for_names(tmp_path: Path, golden: Golden) -> None:
    path = write(tmp_path, "(orders|payments)-[0-9]")
    said = ferry("acls", "required", config=path)
    assert (said.code, said.out) == (2, "")
    golden(said.err)
    named = ferry("acls", "required", "--topic", "orders-1", config=path)
    assert named.code == 0
    assert "--topic a.orders-1\n" in named.out
    assert ferry("acls", "required", "--topic", "other", config=path).code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--topic", "a b"],
        ["--source-principal", "ferry"],
        ["--target-principal", ""],
    ],
    ids=brief,
)
def test_what_no_broker_takes_is_refused(words: list[str], golden: Golden, tmp_path: Path) -> None:
    answer = ferry("acls", "required", *words, config=write(tmp_path, ".*"))
    assert (answer.code, answer.out) == (2, "")
    golden(answer.err)
