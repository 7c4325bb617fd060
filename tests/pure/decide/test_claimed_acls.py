"""What only the ledger says is Ferry's: an ACL is deleted where the source's ACLs and names show it, too."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.features.acls.acts.sync import AclSyncer
from ferry.features.acls.rules.acls import AclDiff, AclRules, decide_acls, remarks
from ferry.ledger.acl_codec import OwnAcl
from ferry.ledger.codec import claim_record
from ferry.ledger.ledger import fold
from ferry.policy import DefaultReplicationPolicy, RoutedPolicy
from tests.golden import Golden
from tests.pure.decide.acl_values import ANY, ANY_IDENTITY, EVERYTHING, FACTS, FULL, IDENTITY, OWN_POLICY, READ, acl
from tests.pure.decide.values import FLOW, LANE, lying


def named_as_ours(rules: AclRules, made: str, source: str, **facts: object) -> AclDiff:
    """The decision where the ledger names an ACL of the target as Ferry's, made from one that is gone."""
    own = {acl(made): OwnAcl(source=acl(source), source_cluster_id="cluster-a")}
    # Another one is asked for, so that not all is gone at once.
    kept = frozenset({acl("allow User:x Read on topic orders")})
    target = frozenset({acl(made)})
    return decide_acls(rules, replace(FACTS, source=kept, target=target, own=own, **facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "made", "source", "others"),
    [
        (READ, "deny User:contractor Read on topic payroll", "deny User:contractor Read on topic payroll", ()),
        (READ, "deny User:contractor Read on topic payroll", "deny User:contractor Read on topic orders", ()),
        (FULL, "deny User:contractor Read on topic payroll", "deny User:contractor Read on topic payroll", ()),
        (FULL, "deny User:contractor Read on topic pay*", "deny User:contractor Read on topic pay*", ()),
        (IDENTITY, "deny User:x Read on topic payroll", "deny User:x Read on topic payroll", ()),
        (
            replace(IDENTITY, takes_topic=lambda _: True),
            "deny User:x Read on topic payroll",
            "deny User:x Read on topic payroll",
            ("payroll",),
        ),
        (READ, "deny User:x Read on group app-1", "deny User:x Read on group app-1", ()),
        (FULL, "deny User:x Read on group other", "deny User:x Read on group other", ()),
        (READ, "deny User:x Alter on cluster kafka-cluster", "deny User:x Alter on cluster kafka-cluster", ()),
        (FULL, "deny User:x Alter on cluster kafka-cluster", "deny User:x Alter on cluster kafka-cluster", ()),
        (IDENTITY, "deny User:x Alter on cluster kafka-cluster", "deny User:x Alter on cluster kafka-cluster", ()),
        (FULL, "deny User:x Write on transactional-id pay", "deny User:x Write on transactional-id pay", ()),
        (EVERYTHING, "deny User:x Write on transactional-id *", "deny User:x Write on transactional-id *", ()),
        # A prefix of groups, and all of them: whose they are, too, no filter says.
        (FULL, "deny User:x Read on group app-*", "deny User:x Read on group app-*", ()),
        (EVERYTHING, "deny User:x Read on group *", "deny User:x Read on group *", ()),
        # What a prefix holds for, of topics that keep their names.
        (IDENTITY, "deny User:x Read on topic payroll*", "deny User:x Read on topic payroll*", ("payroll",)),
        (IDENTITY, "deny User:x Read on topic payroll*", "deny User:x Read on topic payroll*", ()),
        (IDENTITY, "deny User:x Read on topic *", "deny User:x Read on topic *", ("payroll",)),
        (IDENTITY, "deny User:x Read on topic ord*", "deny User:x Read on topic ord*", ("ordinary",)),
        (ANY_IDENTITY, "deny User:x Read on topic payroll*", "deny User:x Read on topic payroll*", ("payroll",)),
        (ANY_IDENTITY, "deny User:x Read on topic payroll*", "deny User:x Read on topic payroll*", ()),
        (FULL, "deny User:x Read on topic a.pay*", "deny User:x Read on topic pay*", ()),
        (FULL, "deny User:x Read on topic a.*", "deny User:x Read on topic *", ("a.orders-lost",)),
        # No topic of the source is called so, and the name on the target does not say whose it is.
        (ANY_IDENTITY, "deny User:x Read on topic payroll", "deny User:x Read on topic payroll", ()),
    ],
)
def test_a_forged_ledger_record_deletes_no_acl_of_what_is_no_copy(
    rules: AclRules, made: str, source: str, others: tuple[str, ...]
) -> None:
    diff = named_as_ours(rules, made, source, others=frozenset(others))
    assert (diff.deleted, diff.foreign) == ((), (acl(made),))
    assert any(str(acl(made)) in sentence for sentence in remarks(rules, diff))


@pytest.mark.parametrize("made", ["deny User:x Read on topic ord*", "deny User:x Read on topic *"])
def test_a_forged_claim_deletes_no_acl_that_is_about_a_copy_and_about_what_is_none(made: str) -> None:
    """`payroll` and `ordinary` are on the target; that the flow brought them is the ledger's word alone."""
    claimed = frozenset({"ordinary", "payroll"})
    for rules in (IDENTITY, ANY_IDENTITY):
        diff = named_as_ours(rules, made, made, claimed=claimed)
        assert (diff.deleted, diff.foreign) == ((), (acl(made),))
        own = "deny User:x Read on topic orders*"
        assert [change.binding for change in named_as_ours(rules, own, own, claimed=claimed).deleted] == [acl(own)]
    # Where names show whose a copy is, they need not show it.
    copies = named_as_ours(FULL, "deny User:x Read on topic a.*", "deny User:x Read on topic *", claimed={"a.gone"})
    assert [change.binding for change in copies.deleted] == [acl("deny User:x Read on topic a.*")]


def test_what_the_flow_created_by_the_ledger_s_word_alone_is_told_from_what_the_source_shows() -> None:
    flow: Any = SimpleNamespace(
        copies_of=lambda name: (name,),
        topics=SimpleNamespace(selection=SimpleNamespace(takes=lambda _: True), policy=IDENTITY.policy),
    )
    source: Any = SimpleNamespace(topics=dict.fromkeys(("orders", "full")))
    names = ("orders", "full", "gone", "payroll", "forged", "__consumer_offsets")
    target: Any = SimpleNamespace(topics=dict.fromkeys(names))
    view = fold(lying(claim_record("gone", FLOW, LANE), claim_record("forged", FLOW, LANE)), 99)
    syncer = AclSyncer(flow=flow, lane=LANE, source=source, target=target)
    assert syncer.not_shown(view, frozenset({"full"})) == (
        frozenset({"payroll"}),
        frozenset({"full", "gone", "forged"}),
    )


@pytest.mark.parametrize("wide", [False, True])
def test_a_refused_topic_is_a_copy_only_where_its_name_says_so(wide: bool) -> None:
    """Refused may be what others had filled before the flow came."""
    name = "users*" if wide else "users"
    text = f"deny User:x Read on topic {name}"
    refused = frozenset({"users"})
    assert named_as_ours(IDENTITY, text, text, refused=refused).foreign == (acl(text),)
    copy = f"deny User:x Read on topic a.{name}"
    assert [change.binding for change in named_as_ours(FULL, copy, text, refused=refused).deleted] == [acl(copy)]


def test_an_acl_of_a_prefix_that_a_transform_gave_a_name_of_its_own_goes_with_its_source() -> None:
    routed = RoutedPolicy(base=DefaultReplicationPolicy(), route={"orders-eu": "eu"}.get)
    rules, made = replace(FULL, policy=routed), "deny User:x Read on topic eu"
    assert [change.binding for change in named_as_ours(rules, made, "deny User:x Read on topic orders*").deleted] == [
        acl(made)
    ]
    left = named_as_ours(rules, made, "deny User:x Read on topic orders*", refused=frozenset({"orders-eu"}))
    assert left.foreign == (acl(made),)


def test_what_stays_because_nothing_but_the_ledger_shows_whose_it_is_is_said(golden: Golden) -> None:
    made = "deny User:x Alter on cluster kafka-cluster"
    (said,) = remarks(FULL, named_as_ours(FULL, made, made))
    golden(said)


@pytest.mark.parametrize(
    ("rules", "made", "source"),
    [
        (READ, "deny User:x Read on topic a.orders", "deny User:x Read on topic orders"),
        (FULL, "deny User:x Read on topic a.orders*", "deny User:x Read on topic orders*"),
        (FULL, "deny User:x Read on topic a.ord*", "deny User:x Read on topic ord*"),
        (FULL, "deny User:x Read on topic a.*", "deny User:x Read on topic *"),
        (IDENTITY, "deny User:x Read on topic orders", "deny User:x Read on topic orders"),
        (IDENTITY, "deny User:x Read on topic orders*", "deny User:x Read on topic orders*"),
        (IDENTITY, "deny User:x Read on topic *", "deny User:x Read on topic *"),
        (OWN_POLICY, "deny User:x Read on topic orders_a", "deny User:x Read on topic orders"),
        # The source has lost the topic, too; whose the copy is, its name says.
        (ANY, "deny User:x Read on topic a.gone", "deny User:x Read on topic gone"),
        (ANY, "deny User:x Read on topic a.gone*", "deny User:x Read on topic gone*"),
        (FULL, "deny User:x Read on group app-1", "deny User:x Read on group app-1"),
    ],
)
def test_what_a_sync_made_of_a_copy_is_deleted_with_its_source(rules: AclRules, made: str, source: str) -> None:
    assert [change.binding for change in named_as_ours(rules, made, source).deleted] == [acl(made)]
