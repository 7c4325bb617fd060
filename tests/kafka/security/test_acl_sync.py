"""ACLs of the source on the target, on brokers with an authorizer; read and written beside Ferry by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from ferry import model
from ferry.dev import RunningCluster
from ferry.features.acls.acts.diff import acl_diff
from ferry.kafka.admin.acls import NoAuthorizer, create_acls
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.report import Report, RunState
from ferry.model import Fact, RefusalKind
from ferry.plan.rules.permissions import Acl, Resource
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.kafka.security.clusters import ACL_SECONDS, Secured
from tests.kafka.security.conftest import Pair
from tests.kafka.security.test_logins import RECORDS, fill, flow, permit, plain, scram512
from tests.program import warm_ferry as ferry
from tests.said import codes, facts_in, of_code
from tests.tiers import ANSWER_S

TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
EVERY_SYNC = {"sync.topic.acls.interval.seconds": "1"}


def acl(text: str) -> AclBinding:
    """`allow User:x READ on topic orders*`; what is behind ` from ` is the host."""
    permission, principal, operation, _, resource_type, name, *host = text.split(" ")
    return AclBinding(
        TYPES[resource_type],
        name.removesuffix("*"),
        ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL,
        principal,
        host[1] if host else "*",
        AclOperation[operation],
        AclPermissionType[permission.upper()],
    )


def text(binding: AclBinding) -> str:
    """Inverse of `acl`."""
    kinds = {kind: word for word, kind in TYPES.items()}
    star = "*" if binding.resource_pattern_type is ResourcePatternType.PREFIXED else ""
    host = "" if binding.host == "*" else f" from {binding.host}"
    permission, operation, kind = binding.permission_type, binding.operation, binding.restype
    assert isinstance(permission, AclPermissionType)
    assert isinstance(operation, AclOperation)
    assert isinstance(kind, ResourceType)
    return f"{permission.name.lower()} {binding.principal} {operation.name} on {kinds[kind]} {binding.name}{star}{host}"


def acls_of(side: Secured, marked: str) -> set[str]:
    """The cluster's ACLs whose principals are this test's."""
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # any, which its types forget
        ResourcePatternType.ANY,
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = side.admin()  # held: its answers die with it
    found = admin.describe_acls(everything).result(ANSWER_S)
    return {text(binding) for binding in found if marked in binding.principal}


def add(side: Secured, marked: str, texts: Iterable[str]) -> None:
    """Create ACLs, and wait until the broker knows them."""
    wanted, admin = set(texts), side.admin()
    for future in admin.create_acls([acl(one) for one in wanted]).values():
        future.result(ANSWER_S)
    wait_until(lambda: wanted <= acls_of(side, marked), "ACLs that the broker knows", ACL_SECONDS)


def remove(side: Secured, marked: str, one: str) -> None:
    """Delete an ACL, and wait until the broker has."""
    binding, admin = acl(one), side.admin()
    exactly = AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )
    for future in admin.delete_acls([exactly]).values():
        assert len(future.result(ANSWER_S)) == 1
    wait_until(lambda: one not in acls_of(side, marked), "an ACL that the broker has deleted", ACL_SECONDS)


def synced_run(lab: Lab) -> Report:
    """A micro-run, once the last sync is long enough ago for another."""

    def due() -> bool:
        with lab.runs() as runs:
            return acl_diff(runs)[1] == 0

    wait_until(due, "a sync of ACLs that is due", ACL_SECONDS)
    return lab.micro_run()


def about_acls(report: Report) -> list[str]:
    """The plan's notes about ACLs, without those about topics."""
    return [note for note in report.plan.notes if "ACL" in note]


def changed(report: Report) -> list[tuple[str, str]]:
    return sorted((change.kind, change.binding.principal) for change in report.plan.acls)


def test_acls_are_added_and_those_of_ferry_removed_in_full(secured: Pair, topic: str, tmp_path: Path) -> None:
    fill(secured, topic)
    alias = new_alias()
    lab = Lab(
        source=secured.source.cluster,
        target=secured.target.cluster,
        alias=alias,
        topics=(f"{topic}.*",),
        settings={
            **EVERY_SYNC,
            "ferry.sync.acls.policy": "full",
            # Principals with commas; those of the session's other tests have nothing behind their arrow.
            "ferry.sync.acls.principal.mapping": rf"User:CN=(\\w+),OU={topic},O=us => User:$1-{topic}; .* =>",
        },
    )
    ann, bob = (f"User:CN={name},OU={topic},O=us" for name in ("ann", "bob"))
    at_source = [
        f"allow {ann} ALL on topic {topic}",
        f"deny {bob} READ on topic {topic} from 10.0.0.7",
        f"allow {bob} DESCRIBE on topic {topic}-*",
        f"allow {ann} READ on group {topic}",
        f"allow {ann} WRITE on transactional-id {topic}*",
        f"allow {bob} DESCRIBE_CONFIGS on cluster kafka-cluster",
        f"allow {bob} READ on topic elsewhere-{topic}",
    ]
    add(secured.source, topic, at_source)
    expected = {
        f"allow User:ann-{topic} ALL on topic {alias}.{topic}",
        f"deny User:bob-{topic} READ on topic {alias}.{topic} from 10.0.0.7",
        f"allow User:bob-{topic} DESCRIBE on topic {alias}.{topic}-*",
        f"allow User:ann-{topic} READ on group {topic}",
        f"allow User:ann-{topic} WRITE on transactional-id {topic}*",
        f"allow User:bob-{topic} DESCRIBE_CONFIGS on cluster kafka-cluster",
    }
    # What somebody made on the target is his: one that the source has, too, and one that it has not.
    operators = {
        f"allow User:ann-{topic} READ on group {topic}",
        f"allow User:zoe-{topic} READ on topic {alias}.{topic}",
    }
    add(secured.target, topic, operators)

    planned = ferry("plan", "--json", config=lab.write(tmp_path)).json("plan")
    assert [change["kind"] for change in planned["acls"]] == ["create"] * 5
    assert acls_of(secured.target, topic) == operators, "a plan changes nothing"
    first = lab.micro_run()
    assert (first.state, len(first.plan.acls)) == (RunState.SUCCESS, 5)
    assert acls_of(secured.target, topic) == expected | operators

    # The second sync finds nothing to do; the diff says why something is left out.
    assert synced_run(lab).plan.acls == ()
    answer = ferry("acls", "diff", "--json", config=lab.write(tmp_path))
    body = answer.json("acls-diff")
    assert (answer.code, body["changes"], body["in_step"], body["kept"]) == (0, [], 6, [])
    (elsewhere,) = [row for row in body["left_out"] if row["resource_name"] == f"elsewhere-{topic}"]
    assert "not copy that topic" in elsewhere["why"]

    # Both of one name and the group's go at the source, the prefix's goes on the target; another one comes.
    remove(secured.source, topic, at_source[0])
    remove(secured.source, topic, f"allow {ann} READ on group {topic}")
    remove(secured.target, topic, f"allow User:bob-{topic} DESCRIBE on topic {alias}.{topic}-*")
    add(secured.source, topic, [f"allow {bob} WRITE on topic {topic}"])
    third = synced_run(lab)
    assert changed(third) == [
        ("create", f"User:bob-{topic}"),
        ("create", f"User:bob-{topic}"),
        ("delete", f"User:ann-{topic}"),
    ]
    assert of_code("acls.made-again", third.plan.notes)
    assert acls_of(secured.target, topic) == operators | expected - {
        f"allow User:ann-{topic} ALL on topic {alias}.{topic}"
    } | {f"allow User:bob-{topic} WRITE on topic {alias}.{topic}"}
    assert third.state is RunState.SUCCESS


def test_a_run_that_dies_or_meets_a_refused_acl_leaves_the_rest_to_the_next(
    secured: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(secured, topic)

    def lab(mapped: str) -> Lab:
        rules = rf"User:(bad)-{topic} => {mapped}; User:good-{topic} => $0; .* =>"
        settings = {"ferry.sync.acls.policy": "full", "ferry.sync.acls.principal.mapping": rules}
        cluster = secured.source.cluster, secured.target.cluster
        return Lab(source=cluster[0], target=cluster[1], alias=alias, topics=(topic,), settings=settings)

    alias = new_alias()
    good, bad = (f"User:{name}-{topic} READ on" for name in ("good", "bad"))
    add(secured.source, topic, [f"allow {who} topic {topic}" for who in (good, bad)])

    both = {f"allow {who} topic {alias}.{topic}" for who in (good, bad)}
    with monkeypatch.context() as patched:
        patched.setattr("ferry.features.acls.acts.sync.create_acls", created_and_dead)
        with pytest.raises(Died):
            lab(f"User:$1-{topic}").micro_run()
    wait_until(lambda: acls_of(secured.target, topic) == both, "both ACLs at the broker", ACL_SECONDS)

    # A principal without its type is none: the broker says so of that ACL alone.
    second = lab("$1").micro_run()
    (refusal,) = second.refusals
    assert (second.state, second.records, refusal.topic) == (RunState.PARTIAL, RECORDS, "")
    facts = dict(refusal.facts)
    assert refusal.code in ("acls.not-changed", "acls.in-doubt")
    assert facts["cluster"] == f"t{alias}"
    assert str(facts["acl"]).split()[1::4] == ["bad", f"{alias}.{topic}"]

    # It is due again at once. What the dead run created is known as Ferry's, and goes when its source goes.
    third = lab(f"User:$1-{topic}").micro_run()
    assert (third.state, third.plan.acls, acls_of(secured.target, topic)) == (RunState.SUCCESS, (), both)
    remove(secured.source, topic, f"allow {good} topic {topic}")
    with lab(f"User:$1-{topic}").runs() as runs:
        diff, _ = acl_diff(runs)
    assert [str(change.binding) for change in diff.deleted] == [
        f"allow User:good-{topic} Read on topic {alias}.{topic}"
    ]
    assert (diff.created, diff.forgotten, diff.kept) == ((), (), ())


class Died(Exception):
    """The run's process ends here."""


async def created_and_dead(cluster: Cluster, bindings: Sequence[model.AclBinding]) -> None:
    await create_acls(cluster, bindings)
    raise Died


def test_what_is_not_permitted_is_a_note_and_the_data_are_copied(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, **EVERY_SYNC)
    permit(secured, lab, scram512(secured.source), plain(secured.target))
    reader = f"User:reader-{topic}"
    add(secured.source, topic, [f"allow {reader} ALL on topic {topic}", f"allow {reader} WRITE on topic {topic}"])

    def not_synced(report: Report) -> tuple[Fact, Fact]:
        """Why: its code and the cluster."""
        assert (report.state, report.plan.acls) == (RunState.SUCCESS, ())
        (note,) = about_acls(report)
        assert codes([note]) == ["acls.not-synced"]
        facts = facts_in(note)
        return facts["of"], facts["cluster"]

    cluster = Resource(kind="cluster", name="kafka-cluster")
    first = lab.micro_run()
    assert first.records == RECORDS
    assert not_synced(first) == ("acls.unread", lab.alias)
    describe = Acl(side="source", resource=cluster, operation="Describe", why="")
    secured.source.grant("User:scram512", [describe])
    try:
        assert not_synced(lab.micro_run()) == ("acls.unread", f"t{lab.alias}")
        secured.target.grant("User:plain", [Acl(side="target", resource=cluster, operation="Describe", why="")])
        assert not_synced(lab.micro_run()) == ("acls.not-permitted", f"t{lab.alias}")
        assert acls_of(secured.target, topic) == set()
        secured.target.grant("User:plain", [Acl(side="target", resource=cluster, operation="Alter", why="")])
        report = lab.micro_run()
        assert (report.state, about_acls(report)) == (RunState.SUCCESS, [])
        assert acls_of(secured.target, topic) == {f"allow {reader} READ on topic {lab.alias}.{topic}"}
    finally:  # the session's other tests show what happens without
        remove(secured.source, "scram512", "allow User:scram512 DESCRIBE on cluster kafka-cluster")
        for operation in ("DESCRIBE", "ALTER"):
            if f"allow User:plain {operation} on cluster kafka-cluster" in acls_of(secured.target, "plain"):
                remove(secured.target, "plain", f"allow User:plain {operation} on cluster kafka-cluster")


@pytest.mark.parametrize("policy", ["read", "full"])
def test_without_an_authorizer_data_are_copied_and_a_full_copy_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, policy: str
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(20))
    settings = {"ferry.sync.acls.policy": policy}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    report = lab.micro_run()
    assert (report.records, report.plan.acls, about_acls(report)) == (20, (), [])
    if policy == "read":
        assert (report.state, report.refusals) == (RunState.SUCCESS, ())
        asking = replace(lab, settings={**settings, "sync.topic.acls.enabled": "true"})
        for one in (lab, asking):
            with one.runs() as runs:
                assert runs.preview().notes == (), "where neither side has ACLs none are missed"
        assert asking.micro_run().plan.notes == ()
        with lab.runs() as runs, pytest.raises(NoAuthorizer):
            acl_diff(runs)
        return
    (refusal,) = report.refusals
    assert (report.state, refusal.topic, refusal.kind) == (RunState.PARTIAL, "", RefusalKind.NOT_AUTHORIZED)
    facts = dict(refusal.facts)
    assert (refusal.code, facts["of"], facts["cluster"]) == ("acls.not-synced", "acls.no-authorizer", lab.alias)


def test_a_target_without_an_authorizer_is_a_note(secured: Pair, target_cluster: RunningCluster, topic: str) -> None:
    fill(secured, topic)
    add(secured.source, topic, [f"allow User:reader-{topic} READ on topic {topic}"])
    lab = Lab(source=secured.source.cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, RECORDS)
    (note,) = about_acls(report)
    facts = facts_in(note)
    assert (facts["of"], facts["cluster"]) == ("acls.no-authorizer", f"t{lab.alias}")
