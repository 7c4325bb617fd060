"""A cluster that permits less than a run needs: what is missing is named, the rest is copied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ferry.dev import ClusterSpec, Listener, RunningCluster, down, up
from ferry.errors import Refused
from ferry.features.doctor.acts.cluster import look_at_flow
from ferry.kafka.produce.writer import Writer
from ferry.lane.connections import FlowConnections
from ferry.ledger.report import RunState
from ferry.model import RefusalKind
from ferry.model.finding import Finding, Grade
from ferry.plan.rules.permissions import Acl, Resource, required_acls
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, send
from tests.kafka.run.test_topic_changes import configure
from tests.said import facts_in, of_code
from tests.tiers import ANSWER_S

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ferry" password="{}";'
GUARDED = ClusterSpec(
    name="guarded",
    listeners=(
        Listener(name="PLAINTEXT", protocol="PLAINTEXT"),
        Listener(name="CLIENTS", protocol="SASL_PLAINTEXT"),
    ),
    properties={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": LOGIN.format("secret").replace(
            ";", ' user_ferry="secret" user_least="secret";'
        ),
    },
)


@pytest.fixture(scope="module")
def guarded(cluster_home: Path) -> Iterator[RunningCluster]:
    """A broker whose second listener asks for a login and permits what ACLs say; each module has one without ACLs."""
    try:
        yield up(GUARDED, home=cluster_home)
    finally:
        down(cluster_home, [GUARDED.name], delete=True)


def lab_with(
    source: RunningCluster, target: RunningCluster, topics: str, password: str = "secret", *, at_source: bool = False
) -> Lab:
    """A flow that logs in at the target, or at the source, as User:ferry."""
    alias = new_alias()
    side, guarded = (alias, source) if at_source else (f"t{alias}", target)
    login = logged_in(side, guarded, LOGIN.format(password))
    return Lab(source=source, target=target, alias=alias, topics=(topics,), settings=login)


def logged_in(alias: str, cluster: RunningCluster, login: str) -> dict[str, str]:
    """How to reach the listener that asks for a login."""
    return {
        f"{alias}.bootstrap.servers": cluster.bootstrap_of("CLIENTS"),
        f"{alias}.security.protocol": "SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism": "PLAIN",
        f"{alias}.sasl.jaas.config": login,
    }


def permit(
    cluster: RunningCluster,
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> None:
    """One ACL for User:ferry, as the super user."""
    binding = AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ferry", "*", operation, permission)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_acls([binding])[binding].result(ANSWER_S)


def permit_all(cluster: RunningCluster) -> None:
    """Everything on every resource for User:ferry."""
    for kind, name in (
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.BROKER, "kafka-cluster"),
    ):
        permit(cluster, kind, name, AclOperation.ALL)


def test_a_wrong_password_is_said_without_showing_it(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    lab = lab_with(source_cluster, guarded, topic, password="hunter2")
    with pytest.raises(Refused, match=f"t{lab.alias} .*credentials") as caught:
        lab.micro_run()
    assert "hunter2" not in str(caught.value)


def test_nothing_permitted_is_refused_before_anything_is_written(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    with pytest.raises(Refused, match=r"ferry-ledger\..*(created|allowed)"):
        lab_with(source_cluster, guarded, topic).micro_run()


def test_a_source_that_hides_the_topics_of_a_pattern_is_refused_and_says_what_to_grant(
    guarded: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """A broker leaves out of a list what may not be seen, so that a missing permission looks like an empty cluster."""
    create_topic(guarded, topic)
    alias = new_alias()
    login = logged_in(alias, guarded, LOGIN.format("secret").replace('"ferry"', '"least"'))
    lab = Lab(source=guarded, target=target_cluster, alias=alias, topics=(f"{topic}.*",), settings=login)
    report = lab.micro_run()
    (refusal,) = report.refusals
    assert (report.state, refusal.topic, refusal.kind) == (RunState.FAILED, "", RefusalKind.TOPICS_NONE)
    assert refusal.code in ("topics.none.shown", "topics.none.matched")


def open_and_closed(source: RunningCluster, guarded: RunningCluster, topic: str) -> tuple[Lab, str]:
    """A flow of two topics with 100 records each, all permitted; and the target of the one that is to be closed."""
    for name in ("open", "closed"):
        create_topic(source, f"{topic}-{name}", 2)
        send(producer(source), f"{topic}-{name}", numbered(100, partitions=2))
    lab = lab_with(source, guarded, f"{topic}-.*")
    permit_all(guarded)
    return lab, lab.target_topic(f"{topic}-closed")


def test_one_topic_that_may_not_be_created_leaves_the_others_alone(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    lab, closed = open_and_closed(source_cluster, guarded, topic)
    # Who may create on the whole cluster may create any topic; ACLs of the topic then count for nothing.
    permit(guarded, ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, AclPermissionType.DENY)
    permit(guarded, ResourceType.TOPIC, closed, AclOperation.CREATE, AclPermissionType.DENY)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 100)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (f"{topic}-closed", None, RefusalKind.NOT_AUTHORIZED)
    why = str(dict(refusal.facts)["why"])
    assert all(named in why for named in (closed, f"cluster t{lab.alias}", "CREATE"))


def test_dead_letters_that_may_have_no_topic_refuse_those_that_need_it_when_the_run_is_planned(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    lab, _ = open_and_closed(source_cluster, guarded, topic)
    letters = f"ferry-dead-letters.{lab.alias}.internal"
    masked = {"topics": f"{topic}-closed", "where": "TRUE", "poison": "skip"}
    lines = {f"ferry.transform.masked.{part}": text for part, text in masked.items()}
    lab = replace(lab, settings={**lab.settings, "ferry.transforms": "masked", **lines})
    permit(guarded, ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, AclPermissionType.DENY)
    permit(guarded, ResourceType.TOPIC, letters, AclOperation.CREATE, AclPermissionType.DENY)
    with lab.runs() as runs:
        wanted = of_code("letters.topic-wanted", runs.preview().notes)
        assert [facts_in(note) for note in wanted] == [{"topic": letters}]
        plan = runs.open_run("r-1", local_origin())
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (f"{topic}-closed", None, RefusalKind.NOT_AUTHORIZED)
    facts = dict(refusal.facts)
    assert (refusal.code, facts["letters"], facts["transform"]) == ("letters.no-topic", letters, "masked")
    assert all(named in str(facts["why"]) for named in (letters, f"cluster t{lab.alias}", "CREATE"))
    assert {piece.source.topic for piece in plan.slices} == {f"{topic}-open"}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("operation", ["WRITE", "READ"])
def test_one_topic_that_may_not_be_written_leaves_the_others_alone(
    source_cluster: RunningCluster,
    guarded: RunningCluster,
    topic: str,
    operation: str,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """READ is what TxnOffsetCommit asks for; with transactions of version 1 AddPartitionsToTxn asks for WRITE."""
    if version == 1:  # as an older client speaks; the broker answers it so, whatever its own version is
        monkeypatch.setattr(Writer, "joins_by_producing", False)
    lab, closed = open_and_closed(source_cluster, guarded, topic)
    permit(guarded, ResourceType.TOPIC, closed, AclOperation[operation], AclPermissionType.DENY)
    report = lab.micro_run()
    assert report.state is RunState.PARTIAL
    assert {(r.topic, r.kind) for r in report.refusals} == {(f"{topic}-closed", RefusalKind.NOT_AUTHORIZED)}
    assert {(refusal.code, dict(refusal.facts)["grant"]) for refusal in report.refusals} == {
        ("target.not-authorized", operation)
    }
    assert report.records == 100


def test_one_source_topic_whose_settings_may_not_be_read_leaves_the_others_alone(
    guarded: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    for name in ("open", "closed"):
        create_topic(guarded, f"{topic}-{name}", 2)
        send(producer(guarded), f"{topic}-{name}", numbered(100, partitions=2))
    permit_all(guarded)
    closed = f"{topic}-closed"
    permit(guarded, ResourceType.TOPIC, closed, AclOperation.DESCRIBE_CONFIGS, AclPermissionType.DENY)
    lab = lab_with(guarded, target_cluster, f"{topic}-.*", at_source=True)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 100)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == (closed, None, RefusalKind.NOT_AUTHORIZED)
    assert (refusal.code, dict(refusal.facts)["cluster"]) == ("source.settings-hidden", lab.alias)

    create_topic(target_cluster, lab.target_topic(closed), 2)  # by hand: then nobody needs the source's settings
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == 200


MERGED = {
    "replication.policy.class": "IdentityReplicationPolicy",
    "ferry.merge.topics": ".*",
}


def test_a_merged_topic_needs_to_see_the_other_flows_ledgers(
    source_cluster: RunningCluster, target_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    for source in (source_cluster, target_cluster):
        create_topic(source, topic, 2)
        send(producer(source), topic, numbered(100, partitions=2))
    other = Lab(source=target_cluster, target=guarded, alias=new_alias(), topics=(topic,), settings=MERGED)
    assert other.micro_run().records == 100

    alias = new_alias()
    login = logged_in(f"t{alias}", guarded, LOGIN.replace("ferry", "least").format("secret"))
    lab = Lab(source=source_cluster, target=guarded, alias=alias, topics=(topic,), settings={**MERGED, **login})
    needed = [acl for acl in required_acls(lab.flow) if acl.side == "target" and not acl.optional]
    ledgers = [acl for acl in needed if acl.resource == Resource(kind="topic", name="ferry-ledger.", prefixed=True)]
    assert [acl.operation for acl in ledgers] == ["Read"]
    grant(guarded, [acl for acl in needed if acl not in ledgers])
    report = lab.micro_run()
    assert {(r.partition, r.kind) for r in report.refusals} == {
        (number, RefusalKind.FOREIGN_WRITER) for number in range(2)
    }
    assert report.records == 0
    assert all("READ on topics ferry-ledger.*" in refusal.message for refusal in report.refusals)
    grant(guarded, ledgers)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 100)
    assert other.micro_run().state is RunState.SUCCESS, "and the other way round"


def grant(cluster: RunningCluster, acls: list[Acl]) -> None:
    """Just these for User:least, as the super user."""
    bindings = [
        AclBinding(
            ResourceType[KINDS.get(acl.resource.kind, acl.resource.kind.replace("-", "_").upper())],
            acl.resource.name,
            ResourcePatternType.PREFIXED if acl.resource.prefixed else ResourcePatternType.LITERAL,
            "User:least",
            "*",
            AclOperation[OPERATIONS.get(acl.operation, acl.operation.upper())],
            AclPermissionType.ALLOW,
        )
        for acl in acls
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for done in admin.create_acls(bindings).values():
        done.result(ANSWER_S)


KINDS = {"cluster": "BROKER"}
OPERATIONS = {"DescribeConfigs": "DESCRIBE_CONFIGS", "AlterConfigs": "ALTER_CONFIGS"}


def test_settings_that_may_not_be_altered_and_topics_that_may_not_be_seen_are_told_apart_from_missing_ones(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    lab, closed = open_and_closed(source_cluster, guarded, topic)
    assert lab.micro_run().state is RunState.SUCCESS
    configure(source_cluster, f"{topic}-closed", retention_ms="86400000")
    permit(guarded, ResourceType.TOPIC, closed, AclOperation.ALTER_CONFIGS, AclPermissionType.DENY)
    report = lab.micro_run()
    assert (report.state, report.plan.changes) == (RunState.SUCCESS, ())
    (note,) = (note for note in report.plan.notes if closed in note)
    assert re.search(r"ALTER_CONFIGS .* sync\.topic\.configs\.enabled = false", note)

    gone = lab.target_topic(f"{topic}-open")
    ids = {receipt.target.topic: receipt.target_topic_id for receipt in lab.receipts()}
    permit(guarded, ResourceType.TOPIC, closed, AclOperation.DESCRIBE, AclPermissionType.DENY)
    delete_topic(guarded, gone)
    with FlowConnections.of(lab.flow) as connections:
        deleted = connections.run(lambda: connections.target.deleted(ids))
        listed = connections.run(lambda: connections.target.refresh(None))
    assert set(ids) & set(listed) == set(), "a list of all has neither"
    assert deleted == {gone}


def test_the_doctor_names_the_acls_that_are_missing_and_is_content_when_they_are_there(
    source_cluster: RunningCluster, guarded: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    alias = new_alias()
    login = logged_in(f"t{alias}", guarded, LOGIN.replace('"ferry"', '"least"').format("secret"))
    lab = Lab(source=source_cluster, target=guarded, alias=alias, topics=(topic,), settings=login)

    def found() -> dict[str, Finding]:
        return {one.check: one for one in look_at_flow(lab.flow, patience_s=ANSWER_S)}

    assert found()["target ACLs"].grade is Grade.UNKNOWN, "it may not even see them"
    cluster = Resource(kind="cluster", name="kafka-cluster")
    grant(guarded, [Acl(side="target", resource=cluster, operation="Describe", why="to see the ACLs")])
    bare = found()
    assert (bare["target ACLs"].grade, bare["source ACLs"].grade) == (Grade.WARN, Grade.PASS)
    assert f"Write on topic {lab.target_topic(topic)}" in bare["target ACLs"].message
    grant(guarded, [acl for acl in required_acls(lab.flow, [topic]) if acl.side == "target"])
    whole = found()
    assert whole["target ACLs"].grade is Grade.PASS, whole["target ACLs"].message
    assert whole["refusals"].grade is Grade.PASS
