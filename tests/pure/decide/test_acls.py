"""Which ACLs of the source become which ACLs of the target, and which of those are ever deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.acls import AclSync, principal_mapping
from ferry.features.acls.rules.acls import (
    AclDiff,
    AclFacts,
    AclRules,
    decide_acls,
    remarks,
    unmapped_sentence,
    wide_sentence,
)
from ferry.features.acls.rules.compared import compared, not_permitted
from ferry.ledger.acl_codec import (
    OwnAcl,
    acl_change_json,
    forgotten_acl_record,
    own_acl_record,
    parse_acl_change,
    synced_record,
)
from ferry.ledger.ledger import UNREAD, fold
from ferry.ledger.own_acls import due_in_ms, own_acls
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.run_codec import run_record
from ferry.ledger.runs import sealed_plan
from ferry.messages.catalogue import sentence
from ferry.model import AclBinding, AclChange, code_of
from ferry.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    RoutedPolicy,
)
from tests.golden import Golden
from tests.pure.decide.acl_values import (
    EVERYTHING,
    FACTS,
    FULL,
    IDENTITY,
    OWN_POLICY,
    READ,
    acl,
)
from tests.pure.decide.values import FLOW, LANE, PLAN, lying, run_of
from tests.said import codes, facts_in

PERMISSIONS = ("allow", "deny")


def reach_of(rules: AclRules, *source: str) -> tuple[str, ...]:
    """For which other topics of the target the created ACLs hold as well."""
    others = frozenset({"orders-old", "ordinary", "a.orders-lost", "b.orders", "ferry-ledger.a.internal"})
    return decide_acls(rules, replace(FACTS, source=frozenset(map(acl, source)), others=others)).others


@pytest.mark.parametrize(
    ("rules", "source", "others"),
    [
        (IDENTITY, "allow User:x Read on topic orders*", ("orders-old",)),
        (IDENTITY, "deny User:x Read on topic ord*", ("orders-old", "ordinary")),
        (
            IDENTITY,
            "allow User:x Read on topic *",
            ("a.orders-lost", "b.orders", "ferry-ledger.a.internal", "orders-old", "ordinary"),
        ),
        (FULL, "allow User:x Read on topic *", ("a.orders-lost",)),
        (FULL, "allow User:x Read on topic users*", ()),
        (IDENTITY, "allow User:x Read on topic orders", ()),
        (EVERYTHING, "allow User:x Read on group *", ()),
    ],
)
def test_what_else_a_prefix_holds_for_on_the_target_is_told_before(
    rules: AclRules, source: str, others: tuple[str, ...]
) -> None:
    assert reach_of(rules, source) == others
    given = frozenset({acl(source)})
    facts = replace(FACTS, source=given, others=frozenset(others))
    diff = decide_acls(rules, facts)
    said = [remark for remark in remarks(rules, diff) if facts_in(remark).get("count") == len(others)]
    assert bool(said) is bool(others)
    assert wide_sentence(FLOW, decide_acls(rules, replace(facts, target=given))) is None or rules is FULL, (
        "once, not in every run"
    )


def diff_of(rules: AclRules, *source: str) -> AclDiff:
    return decide_acls(rules, replace(FACTS, source=frozenset(map(acl, source))))


TAKEN = [
    # As MirrorMaker 2: the read side of single topics, by their copies' names; hosts stay.
    (READ, "allow User:x Read on topic orders", "allow User:x Read on topic a.orders"),
    (READ, "allow User:x Read on topic orders from 10.0.0.7", "allow User:x Read on topic a.orders from 10.0.0.7"),
    (READ, "allow User:x Describe on topic orders", "allow User:x Describe on topic a.orders"),
    (READ, "allow User:x DescribeConfigs on topic orders", "allow User:x DescribeConfigs on topic a.orders"),
    (READ, "allow User:x All on topic orders", "allow User:x Read on topic a.orders"),
    (READ, "deny User:x Read on topic orders", "deny User:x Read on topic a.orders"),
    (READ, "deny User:* Read on topic orders", "deny User:* Read on topic a.orders"),
    (READ, "allow User:x Write on topic orders", None),
    (READ, "allow User:x Alter on topic orders", None),
    (READ, "deny User:* Write on topic orders", None),
    (READ, "allow User:x Read on topic payments", None),
    (READ, "allow User:x Read on topic orders*", None),
    (READ, "allow User:x Read on topic *", None),
    (READ, "allow User:x Read on group app", None),
    (READ, "allow User:x Write on transactional-id t", None),
    (READ, "allow User:x All on cluster kafka-cluster", None),
    # All of it, where the file says so.
    (FULL, "allow User:x All on topic orders", "allow User:x All on topic a.orders"),
    (FULL, "deny User:x All on topic orders", "deny User:x All on topic a.orders"),
    (FULL, "allow User:x Write on topic orders", "allow User:x Write on topic a.orders"),
    (FULL, "deny User:x Write on topic orders", "deny User:x Write on topic a.orders"),
    (FULL, "allow User:x Read on topic orders*", "allow User:x Read on topic a.orders*"),
    (FULL, "allow User:x Read on topic ord*", "allow User:x Read on topic a.ord*"),
    (FULL, "allow User:x Read on topic pay*", None),
    (FULL, "allow User:x Read on topic *", "allow User:x Read on topic a.*"),
    (FULL, "allow User:x Read on topic payments", None),
    (FULL, "allow User:x Read on topic no/topic", None),
    (FULL, "allow User:x Read on group app", "allow User:x Read on group app"),
    (FULL, "allow User:x Read on group app-*", "allow User:x Read on group app-*"),
    (FULL, "allow User:x Read on group ap*", None),
    (FULL, "allow User:x Read on group *", None),
    (FULL, "allow User:x Read on group other", None),
    (FULL, "allow User:x Write on transactional-id t*", "allow User:x Write on transactional-id t*"),
    (FULL, "allow User:x Alter on cluster kafka-cluster", "allow User:x Alter on cluster kafka-cluster"),
    (FULL, "allow User:x All on delegation-token t", None),
    (FULL, "allow User:x number-99 on topic orders", None),
    # What stops everybody from writing would stop Ferry, too; one host, or one principal, is another matter.
    (FULL, "deny User:* Write on topic orders", None),
    (FULL, "deny User:* ClusterAction on cluster kafka-cluster", None),
    (FULL, "deny User:* All on cluster kafka-cluster", None),
    (FULL, "deny User:* All on transactional-id *", None),
    (FULL, "deny User:* All on topic payments", None),
    (FULL, "deny User:x All on transactional-id t", "deny User:x All on transactional-id t"),
    (FULL, "deny User:* Write on topic orders from 10.0.0.7", "deny User:* Write on topic a.orders from 10.0.0.7"),
    (FULL, "deny User:* Read on topic orders", "deny User:* Read on topic a.orders"),
    # Other flows of Ferry's are no business of this one.
    (EVERYTHING, "allow User:ferry Write on transactional-id ferry.b->a.live.*", None),
    (EVERYTHING, "allow User:ferry Read on group ferry.b->a.live", None),
    (EVERYTHING, "allow User:ferry Read on topic ferry-ledger.*", None),
    (EVERYTHING, "allow User:x Read on group *", "allow User:x Read on group *"),
    # Names by policy.
    (IDENTITY, "allow User:x Read on topic orders*", "allow User:x Read on topic orders*"),
    (IDENTITY, "allow User:x Read on topic *", "allow User:x Read on topic *"),
    (OWN_POLICY, "allow User:x Read on topic orders", "allow User:x Read on topic orders_a"),
    (OWN_POLICY, "allow User:x Read on topic orders*", None),
    (OWN_POLICY, "allow User:x Read on topic *", None),
]


@pytest.mark.parametrize(("rules", "source", "target"), TAKEN)
def test_what_becomes_of_an_acl(rules: AclRules, source: str, target: str | None) -> None:
    diff = diff_of(rules, source)
    made = [AclChange(kind="create", binding=acl(target), source=acl(source))] if target is not None else []
    assert list(diff.changes) == made
    assert [out.binding for out in diff.left_out] == ([] if target is not None else [acl(source)])
    assert all(out.why and out.why[-1] != "." for out in diff.left_out)


@pytest.mark.parametrize("identity", [False, True])
def test_an_acl_of_a_prefix_is_about_copies_that_a_transform_names_as_well(identity: bool) -> None:
    base: ReplicationPolicy = IdentityReplicationPolicy(source_alias="a") if identity else DefaultReplicationPolicy()
    names = {"orders-eu": "eu", "users": "people"}
    routed = RoutedPolicy(base=base, route=names.get)
    own = "" if identity else "a."

    def made(rules: AclRules, text: str) -> set[str]:
        return {str(change.binding) for change in diff_of(rules, text).changes}

    def wanted(*texts: str) -> set[str]:
        return {str(acl(f"deny User:x Read on topic {text}")) for text in texts}

    rules = replace(FULL, policy=routed, takes_topic=lambda _: True)
    assert made(rules, "deny User:x Read on topic orders*") == wanted(f"{own}orders*", "eu")
    assert made(rules, "deny User:x Read on topic users") == wanted("people")
    assert made(rules, "deny User:x Read on topic *") == (wanted("*") if identity else wanted("a.*", "eu", "people"))


@pytest.mark.parametrize(
    ("rules", "who", "source", "copy"),
    [
        (READ, "User:x", "topic orders", "topic a.orders"),
        (READ, "User:*", "topic orders", "topic a.orders"),
        (FULL, "User:*", "topic orders", "topic a.orders"),
        (FULL, "User:*", "topic *", "topic a.*"),
        (FULL, "User:*", "topic orders*", "topic a.orders*"),
        (FULL, "User:*", "group app", "group app"),
    ],
)
def test_what_forbids_everything_forbids_no_more_than_reading_on_the_copy(
    rules: AclRules, who: str, source: str, copy: str
) -> None:
    """A denial of writing stops the replicator (ADR 17.4), by whatever word it comes."""
    diff = diff_of(rules, f"deny {who} All on {source}")
    made = [acl(f"deny {who} {operation} on {copy}") for operation in ("Describe", "DescribeConfigs", "Read")]
    assert [change.binding for change in diff.created] == made
    there = replace(
        FACTS,
        target=frozenset(made),
        own={change.binding: OwnAcl(source=change.source, source_cluster_id="cluster-a") for change in diff.created},
    )
    if not copy.endswith("*"):
        assert len(decide_acls(rules, there).deleted) == 3, "one ACL of the source went, and so do its copies"


def test_what_forbids_is_created_first_and_deleted_last() -> None:
    texts = [f"{word} User:{name} Read on topic orders" for word in PERMISSIONS for name in "xy"]
    created = decide_acls(READ, replace(FACTS, source=frozenset(map(acl, texts)))).created
    assert [change.binding.permission for change in created] == ["deny", "deny", "allow", "allow"]
    own = {change.binding: OwnAcl(source=change.source, source_cluster_id="cluster-a") for change in created}
    left = frozenset({acl("allow User:z Read on topic orders")})
    gone = decide_acls(READ, replace(FACTS, source=left, target=frozenset(own), own=own))
    assert [change.binding.permission for change in gone.deleted] == ["allow", "allow", "deny", "deny"]


def test_what_one_host_is_forbidden_stays_whole() -> None:
    (made,) = diff_of(FULL, "deny User:* All on topic orders from 10.0.0.7").created
    assert (made.binding.operation, made.binding.host) == ("All", "10.0.0.7")


@pytest.mark.parametrize("resource", ["cluster kafka-cluster", "transactional-id *"])
def test_a_left_out_denial_of_everything_is_said(resource: str) -> None:
    (said,) = remarks(FULL, diff_of(FULL, f"deny User:* All on {resource}", "allow User:x Read on topic pay"))
    assert code_of(said) == "acls.left-out"


def test_the_left_out_denial_that_would_stop_ferry_is_said_in_every_sync(golden: Golden) -> None:
    (said,) = remarks(FULL, diff_of(FULL, "deny User:* Write on topic orders", "allow User:x Read on topic pay"))
    golden(said)


def test_what_forbids_ferry_s_own_principal_is_left_out_and_said(golden: Golden) -> None:
    own = replace(MAPPED, own_principal="User:ann")
    texts = (f"{word} User:CN=ann,O=us Read on topic orders" for word in PERMISSIONS)
    diff = diff_of(own, *texts)
    assert [str(change.binding) for change in diff.created] == ["allow User:ann Read on topic a.orders"]
    (said,) = remarks(own, diff)
    golden(said)


def test_a_refused_topic_gets_no_acls() -> None:
    source = frozenset({acl("allow User:x Read on topic orders"), acl("allow User:x Read on topic users")})
    diff = decide_acls(READ, replace(FACTS, source=source, refused=frozenset({"users"})))
    assert [change.binding for change in diff.changes] == [acl("allow User:x Read on topic a.orders")]


MAPPED = replace(
    READ, sync=AclSync(mapping=principal_mapping(r"User:CN=(\w+),O=us => User:$1; User:old => ; Group:.* => $0"))
)


def test_principals_are_mapped_left_out_or_named(golden: Golden) -> None:
    diff = diff_of(
        MAPPED,
        "allow User:CN=ann,O=us Read on topic orders",
        "allow Group:g Read on topic orders",
        "allow User:* Describe on topic orders",
        "allow User:old Read on topic orders",
        "allow User:new Read on topic orders",
        "allow User:odd Read on topic elsewhere",
    )
    assert [str(change.binding) for change in diff.created] == [
        "allow Group:g Read on topic a.orders",
        "allow User:* Describe on topic a.orders",
        "allow User:ann Read on topic a.orders",
    ]
    assert diff.unmapped == ("User:new",)
    said = unmapped_sentence(diff)
    assert said is not None
    golden(said)
    assert unmapped_sentence(diff_of(MAPPED, "allow Group:g Read on topic orders")) is None


ORDERS = acl("allow User:x Read on topic orders")
COPY = acl("allow User:x Read on topic a.orders")
MADE = {COPY: OwnAcl(source=ORDERS, source_cluster_id="cluster-a")}
THERE = replace(FACTS, source=frozenset({ORDERS}), target=frozenset({COPY}), own=MADE)
GONE = replace(THERE, source=frozenset())


@pytest.mark.parametrize(
    ("rules", "facts", "created", "deleted", "kept", "forgotten"),
    [
        (READ, THERE, 0, 0, 0, 0),
        (READ, GONE, 0, 1, 0, 0),
        (READ, replace(GONE, own={}), 0, 0, 0, 0),  # somebody else's
        (READ, replace(THERE, own={}), 0, 0, 0, 0),
        (READ, replace(THERE, target=frozenset()), 1, 0, 0, 0),  # drift: made again
        (READ, replace(GONE, target=frozenset()), 0, 0, 0, 1),
        (READ, replace(GONE, source_cluster_id="cluster-c"), 0, 0, 1, 0),  # another cluster lost nothing
        (replace(READ, takes_topic=lambda _: False), THERE, 0, 0, 1, 0),
        (MAPPED, THERE, 0, 0, 1, 0),
    ],
)
def test_only_what_ferry_made_and_the_source_lost_is_deleted(
    rules: AclRules, facts: AclFacts, created: int, deleted: int, kept: int, forgotten: int
) -> None:
    diff = decide_acls(rules, facts)
    assert (len(diff.created), len(diff.deleted), len(diff.kept), len(diff.forgotten)) == (
        created,
        deleted,
        kept,
        forgotten,
    )
    assert all(change.binding == COPY and change.source == ORDERS for change in diff.changes)


def test_what_was_made_again_or_kept_is_said(golden: Golden) -> None:
    (again,) = remarks(READ, decide_acls(READ, replace(THERE, target=frozenset())))
    golden(again, "made again")
    unwanted = replace(READ, takes_topic=lambda _: False)
    (kept,) = remarks(unwanted, decide_acls(unwanted, THERE))
    golden(kept, "kept")


DENIAL = acl("deny User:y Read on topic users")
BOTH = replace(
    FACTS,
    target=frozenset({COPY, acl("deny User:y Read on topic a.users")}),
    own={**MADE, acl("deny User:y Read on topic a.users"): OwnAcl(source=DENIAL, source_cluster_id="cluster-a")},
)


def test_nothing_is_deleted_when_all_that_was_taken_over_is_gone_at_once() -> None:
    elsewhere = acl("allow User:x Read on topic payments")
    for source in (frozenset[AclBinding](), frozenset({elsewhere})):
        diff = decide_acls(READ, replace(BOTH, source=source))
        assert (diff.changes, diff.kept, set(diff.bereft)) == ((), (), set(BOTH.own))
        (note,) = remarks(READ, diff)
        assert codes([note]) == ["acls.bereft"]


def test_one_that_is_left_or_came_shows_that_the_others_were_taken_away() -> None:
    another = acl("allow User:z Read on topic orders")
    for source, deleted in ((DENIAL, 1), (another, 2)):
        diff = decide_acls(READ, replace(BOTH, source=frozenset({source})))
        assert (len(diff.deleted), diff.bereft) == (deleted, ())


def test_an_acl_that_two_ask_for_stays_until_both_are_gone() -> None:
    both = acl("allow User:x All on topic orders")
    two = replace(THERE, source=frozenset({ORDERS, both}))
    assert not decide_acls(READ, two).changes
    one = decide_acls(READ, replace(two, source=frozenset({both})))
    assert (one.changes, [change.source for change in one.moved]) == ((), [both])
    moved = replace(two, own={COPY: OwnAcl(source=both, source_cluster_id="cluster-a")})
    assert len(decide_acls(READ, replace(moved, source=frozenset())).deleted) == 1


# Any course of events

principals = st.sampled_from(["User:x", "User:y", "User:*"])
operations = st.sampled_from(["Read", "Describe", "Write", "All"])
resources = st.sampled_from(
    [("topic", "orders"), ("topic", "users"), ("topic", "*"), ("group", "app"), ("cluster", "kafka-cluster")]
)
bindings = st.builds(
    lambda resource, pattern_type, principal, host, operation, permission: AclBinding(
        resource_type=resource[0],
        resource_name=resource[1],
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
    ),
    resources,
    st.sampled_from(["literal", "prefixed"]),
    principals,
    st.sampled_from(["*", "10.0.0.7"]),
    operations,
    st.sampled_from(PERMISSIONS),
)
sides = st.frozensets(bindings, max_size=8)
deeds = st.lists(
    st.tuples(sides, sides, sides, st.sampled_from([READ, FULL, EVERYTHING, MAPPED]), st.integers(0, 99)), max_size=6
)


@pytest.mark.slow
@given(deeds)
def test_whatever_happens_nothing_of_others_is_deleted_and_a_second_sync_finds_nothing_to_do(
    deeds: list[tuple[frozenset[AclBinding], frozenset[AclBinding], frozenset[AclBinding], AclRules, int]],
) -> None:
    """Each deed: the source's ACLs from now on, what others add and delete on the target, and where a sync dies."""
    target: set[AclBinding] = set()
    others: set[AclBinding] = set()  # what others made, and Ferry did not mean to make when they did
    own: dict[AclBinding, OwnAcl] = {}
    for source, added, deleted, rules, dies_after in deeds:
        target = target - deleted | added
        others = others - deleted | (added - own.keys())
        facts = replace(FACTS, source=source, target=frozenset(target), own=dict(own))
        diff = decide_acls(rules, facts)
        assert not {change.binding for change in diff.deleted} & others
        assert all(change.source not in source for change in diff.deleted)
        for step in steps(diff, own, target)[:dies_after]:
            step()
        if dies_after >= len(steps(diff, {}, set())):
            again = decide_acls(rules, replace(facts, target=frozenset(target), own=dict(own)))
            assert (again.changes, again.forgotten, again.moved) == ((), (), ())
        # Whatever is there and nobody else made, is remembered: a crash leaves nothing behind that nobody knows.
        assert target <= others | own.keys()


def steps(diff: AclDiff, own: dict[AclBinding, OwnAcl], target: set[AclBinding]) -> list[Callable[[], object]]:
    """What a sync does, in its order: remember, create, delete, forget."""
    found: list[Callable[[], object]] = []
    for change in (*diff.created, *diff.moved):
        entry = OwnAcl(source=change.source, source_cluster_id="cluster-a")
        found.append(partial(own.__setitem__, change.binding, entry))
    found += [partial(target.add, change.binding) for change in diff.created]
    found += [partial(target.discard, change.binding) for change in diff.deleted]
    gone = [*diff.forgotten, *(change.binding for change in diff.deleted)]
    return found + [partial(own.pop, binding, None) for binding in gone]


# The ledger

changes = st.builds(
    AclChange, kind=st.sampled_from(["create", "delete"]), binding=bindings, source=bindings, again=st.booleans()
)


@given(st.lists(changes, max_size=5, unique_by=lambda change: change.binding))
def test_the_ledger_remembers_what_was_made_until_it_is_taken_back(made: list[AclChange]) -> None:
    records = [own_acl_record(LANE, change, source_cluster_id="c", run="r", at_ms=1) for change in made]
    copied = AclChange(kind="create", binding=COPY, source=ORDERS)
    elsewhere = own_acl_record("drill", copied, source_cluster_id="c", run="r", at_ms=1)
    view = fold(lying(*records, elsewhere), 99)
    assert own_acls(view, LANE) == {
        change.binding: OwnAcl(source=change.source, source_cluster_id="c") for change in made
    }
    taken_back = [forgotten_acl_record(LANE, change.binding) for change in made]
    assert own_acls(fold(lying(*records, elsewhere, *taken_back), 99), LANE) == {}


@given(st.lists(changes, max_size=4))
def test_a_plan_keeps_its_changes_of_acls(made: list[AclChange]) -> None:
    assert [parse_acl_change(acl_change_json(change)) for change in made] == made
    plan = replace(PLAN, acls=tuple(made))
    found = sealed_plan(fold(lying(run_record(run_of("run-1")), *plan_records(plan)), 99), LANE, "run-1", 3)
    assert found is not None
    assert found[0].acls == tuple(made)


@pytest.mark.parametrize(
    ("now_ms", "settings", "due"),
    [(60_000, "s", 540_000), (600_000, "s", 0), (60_000, "other", 0), (-5_000, "s", 0)],
)
def test_a_sync_is_due_after_its_interval_or_when_the_settings_changed(now_ms: int, settings: str, due: int) -> None:
    view = fold(lying(synced_record(LANE, run="r", settings="s", at_ms=0)), 99)
    assert due_in_ms(view, LANE, interval_s=600, settings=settings, now_ms=now_ms) == due
    assert due_in_ms(view, "drill", interval_s=600, settings=settings, now_ms=now_ms) == 0
    assert due_in_ms(UNREAD, LANE, interval_s=600, settings=settings, now_ms=now_ms) == 0


def test_acls_that_cannot_be_compared_are_shown_with_the_code_of_the_reason() -> None:
    none = compared(None, sentence("acls.no-authorizer", cluster="b"))
    assert (none.ok, code_of(none.message)) == (True, "acls.none-to-compare")
    assert (facts_in(none.message)["of"], facts_in(none.message)["cluster"]) == ("acls.no-authorizer", "b")
    unread = not_permitted(sentence("acls.unread", cluster="a", why="grant DESCRIBE"))
    assert (unread.ok, code_of(unread.message)) == (False, "acls.not-compared")
    assert (facts_in(unread.message)["of"], facts_in(unread.message)["cluster"]) == ("acls.unread", "a")
