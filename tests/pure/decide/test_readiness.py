"""Readiness: all is well, and each check fails for its own reason alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ferry.features.acls.rules.acls import AclDiff, LeftOut
from ferry.features.acls.rules.compared import compared
from ferry.features.doctor.rules.findings import of_readiness
from ferry.features.switch.cli.forms import READINESS
from ferry.features.switch.rules.readiness import Looked, Readiness, Rpo, readiness_of
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.writers import LedgerWriters, writers_sentence
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import (
    AclBinding,
    AclChange,
    ChangeKind,
    Left,
    OpenedRun,
    Origin,
    Pause,
    Refusal,
    RefusalKind,
    RunRecord,
    TopicChange,
    TopicPartition,
    Why,
    code_of,
)
from ferry.model.check import Check
from ferry.model.finding import Grade
from ferry.model.observed import OpenTransaction
from ferry.model.switch import (
    SwitchEnd,
    SwitchOutcome,
)
from ferry.model.topic_settings import Inherited, SettingOrigin, TopicSettings
from ferry.plan.rules.blocking_transactions import HANGING_MS
from ferry.plan.rules.lag import PartitionLag, lag_of, with_ages
from ferry.policy import DefaultReplicationPolicy
from tests.golden import Golden
from tests.pure.decide.switched import switched
from tests.pure.decide.values import FACTS, FLOW, LANE, PLAN, RECEIPT, facts_with, part, place, target, topic
from tests.said import facts_in

POLICY = DefaultReplicationPolicy()
KEPT = {"retention.ms": "1000", "retention.bytes": "-1"}
STARTED_MS = 900
RUN = PastRun(
    opened=OpenedRun(
        record=RunRecord(
            flow=FLOW, lane=LANE, run="run-1", slots=2, config_digest="", started_ms=STARTED_MS, origin=Origin()
        ),
        generation=3,
    ),
    state=PastState.SUCCESS,
    report=None,
)
SOURCE = topic("orders", part(end=43), configs=KEPT)
COPY = target("a.orders", 41, configs=KEPT)
LAST = replace(RECEIPT, end=40)


WELL = Looked(
    facts=facts_with(
        FACTS,
        now_ms=5_000,
        source={"topics": {"orders": SOURCE}},
        target={"topics": {"a.orders": COPY}},
        lane={"receipts": {LAST.target: LAST}},
    ),
    plan=PLAN,
    lags=(),
    last_run=RUN,
    stamped_ms=STARTED_MS + 3,
    groups=(),
    behind_groups=1,
    back=True,
    features=(compared(None),),
)
ACL = AclBinding(
    resource_type="topic",
    resource_name="a.orders",
    pattern_type="literal",
    principal="User:ann",
    host="*",
    operation="Read",
    permission="allow",
)


def left(why: Why) -> tuple[Left, ...]:
    """A group that a sync would leave."""
    return (Left(group="billing", place=None, why=why, message="group billing is Stable on b"),)


def changed(kind: ChangeKind) -> TopicChange:
    """Something that a run would do to the copy."""
    return TopicChange(kind=kind, topic="a.orders", source_topic="orders", partitions=1, replication_factor=0)


def differing() -> AclDiff:
    """One ACL is missing on the target."""
    change = AclChange(kind="create", binding=ACL, source=ACL)
    return AclDiff(changes=(change,), left_out=(), kept=(), forgotten=(), moved=(), unmapped=(), in_step=0)


def failed(looked: Looked, rpo: Rpo) -> list[tuple[str, str]]:
    """The checks that fail, with their sentences."""
    lags = with_ages(lag_of(looked.facts, POLICY, "a"), {place("orders"): 1_000}, looked.facts.now_ms)
    found = readiness_of(replace(looked, lags=lags), POLICY, "a", rpo)
    assert found.ready is (not found.failed)
    return [(check.name, check.message) for check in found.failed]


def test_a_flow_that_is_well_is_ready() -> None:
    for state in (PastState.SUCCESS, PastState.OPEN, PastState.UNPLANNED):
        assert failed(replace(WELL, last_run=replace(RUN, state=state)), Rpo(records=3, seconds=4)) == []


def test_of_a_flow_that_never_ran_nothing_is_well_that_nobody_has_seen() -> None:
    never = replace(WELL, last_run=None, facts=facts_with(WELL.facts, target={"topics": {}}, lane={"receipts": {}}))
    found = dict(failed(never, Rpo()))
    assert {"replication", "topics", "target"} <= found.keys()
    assert all("ferry run 'a->b'" in found[name] for name in ("replication", "topics", "target"))


def test_what_a_killed_run_left_blocks_no_switch_that_drains(golden: Golden) -> None:
    facts = replace(WELL.facts, now_ms=STARTED_MS + 901_000)
    for state, blocks in ((PastState.OPEN, False), (PastState.UNPLANNED, True)):
        looked = replace(WELL, facts=facts, last_run=replace(RUN, state=state), planned=True)
        assert [name for name, _ in failed(looked, Rpo())] == (["replication"] if blocks else [])
        golden(check_of(looked, "replication").message, state)


FAULTS: list[tuple[str, str, Callable[[Looked], Looked]]] = [
    (
        "source",
        "orders-1",
        lambda one: replace(
            one,
            facts=facts_with(one.facts, source={"topics": {"orders": replace(SOURCE, leaderless=(1,))}}),
        ),
    ),
    (
        "replication",
        "paused by ann",
        lambda one: replace(
            one,
            facts=facts_with(one.facts, lane={"pauses": {"": Pause(topic="", who="ann", why="holiday", since_ms=0)}}),
        ),
    ),
    ("replication", "is failed", lambda one: replace(one, last_run=replace(RUN, state=PastState.FAILED))),
    (
        "refusals",
        "somebody else wrote",
        lambda one: replace(
            one,
            plan=replace(
                PLAN,
                refusals=(
                    Refusal(
                        topic="orders", partition=0, kind=RefusalKind.FOREIGN_WRITER, message="somebody else wrote"
                    ),
                ),
            ),
        ),
    ),
    (
        "topics",
        "other settings",
        lambda one: replace(one, plan=replace(PLAN, changes=(changed(ChangeKind.CONFIGURE),))),
    ),
    ("topics", "too small", lambda one: replace(one, plan=replace(PLAN, drift=(changed(ChangeKind.GROW),)))),
    (
        "target",
        "a.orders-0",
        lambda one: replace(
            one,
            facts=facts_with(one.facts, target={"topics": {"a.orders": replace(COPY, replicas={0: (0, 1)})}}),
        ),
    ),
    (
        "retention",
        "retention.ms",
        lambda one: replace(
            one,
            facts=facts_with(
                one.facts,
                target={"topics": {"a.orders": target("a.orders", 41, configs=KEPT | {"retention.ms": "999"})}},
            ),
        ),
    ),
    (
        "retention",
        "retention.bytes",
        lambda one: replace(
            one,
            facts=facts_with(
                one.facts,
                target={"topics": {"a.orders": target("a.orders", 41, configs=KEPT | {"retention.bytes": "1"})}},
            ),
        ),
    ),
    ("groups", "1 has members", lambda one: replace(one, groups=left(Why.ACTIVE))),
    ("groups", "could not be moved", lambda one: replace(one, groups=left(Why.PENDING))),
    ("groups", "moved (billing)", lambda one: replace(one, groups=left(Why.MERGED))),
    ("acls", "1 ACL", lambda one: replace(one, features=(compared(differing()),))),
    ("clock", "were 400 s apart", lambda one: replace(one, stamped_ms=STARTED_MS + 400_000)),
    ("clock", "not known", lambda one: replace(one, stamped_ms=None)),
    (
        "retention",
        "the settings of a.orders",
        lambda one: replace(
            one, facts=facts_with(one.facts, target={"topics": {"a.orders": replace(COPY, settings=None)}})
        ),
    ),
    (
        "retention",
        "the settings of orders",
        lambda one: replace(
            one, facts=facts_with(one.facts, source={"topics": {"orders": replace(SOURCE, settings=None)}})
        ),
    ),
    (
        "replication",
        "no sealed plan",
        lambda one: replace(
            one,
            facts=replace(one.facts, now_ms=STARTED_MS + 901_000),
            last_run=replace(RUN, state=PastState.UNPLANNED),
        ),
    ),
    (
        "replication",
        "has not ended",
        lambda one: replace(
            one,
            facts=replace(one.facts, now_ms=STARTED_MS + 901_000),
            last_run=replace(RUN, state=PastState.OPEN),
        ),
    ),
    ("reverse", "add b->a.enabled = true", lambda one: replace(one, back=False)),
]


@pytest.mark.parametrize(("name", "said", "fault"), FAULTS, ids=[f"{name}: {said}" for name, said, _ in FAULTS])
def test_each_check_fails_for_its_own_reason(
    name: str, said: str, fault: Callable[[Looked], Looked], golden: Golden
) -> None:
    ((found, message),) = failed(fault(WELL), Rpo())
    assert found == name
    assert said in message
    golden(message)


@pytest.mark.parametrize("rpo", [Rpo(records=2), Rpo(seconds=3.9)])
def test_a_lag_over_the_rpo_is_told(rpo: Rpo) -> None:
    ((name, message),) = failed(WELL, rpo)
    assert name == "lag"
    assert "orders-0 (3 records)" in message


def test_the_age_of_a_lag_is_not_known_where_one_partition_has_none(golden: Golden) -> None:
    """A record of it may be stamped later than now."""
    (lag,) = with_ages(lag_of(WELL.facts, POLICY, "a"), {place("orders"): 1_000}, 5_000)
    unaged = replace(lag, source=place("orders", 1), seconds=None)
    ready = readiness_of(replace(WELL, lags=[lag, unaged]), POLICY, "a", Rpo())
    assert (ready.seconds, ready.records) == (None, 6)
    golden(next(check.message for check in ready.checks if check.name == "lag"))
    (late,) = readiness_of(replace(WELL, lags=[lag, unaged]), POLICY, "a", Rpo(seconds=60)).failed
    assert late.name == "lag"


def test_without_a_limit_it_is_not_known_whether_a_lag_is_too_much() -> None:
    (lag,) = with_ages(lag_of(WELL.facts, POLICY, "a"), {place("orders"): 1_000}, 5_000)
    none = replace(lag, records=0, seconds=0.0)

    def known(rpo: Rpo, *lags: PartitionLag) -> tuple[bool, bool]:
        checks = readiness_of(replace(WELL, lags=lags), POLICY, "a", rpo).checks
        return next((check.ok, check.known) for check in checks if check.name == "lag")

    assert known(Rpo(), lag) == (True, False)
    assert known(Rpo(), none) == (True, True), "nothing is left to copy"
    assert known(Rpo(records=3), lag) == known(Rpo(seconds=4), lag) == (True, True)


def test_a_lag_that_is_not_known_is_not_taken_for_none() -> None:
    lags = lag_of(WELL.facts, POLICY, "a")
    silent = replace(WELL, lags=[replace(lag, records=None, seconds=None) for lag in lags])
    (check,) = readiness_of(silent, POLICY, "a", Rpo()).failed
    assert (check.name, "orders-0" in check.message) == ("lag", True)


@pytest.mark.parametrize(
    ("name", "change", "unsaid"),
    [
        pytest.param(
            "reverse",
            {"back": False, "wants_back": False},
            "has the reverse flow",
            id="no reverse flow",
        ),
        pytest.param("reverse", {}, "no reverse flow", id="a reverse flow"),
        pytest.param(
            "acls",
            {"features": (compared(None, "b has no authorizer"),)},
            "not synced",
            id="no authorizer",
        ),
        pytest.param("acls", {}, "differ from the source", id="ACLs"),
        pytest.param("clock", {"last_run": None}, "ms apart", id="no run yet"),
        pytest.param(
            "target",
            {
                "facts": facts_with(
                    WELL.facts, source={"topics": {"orders": SOURCE, "late": topic("late", part(end=0))}}
                )
            },
            "nothing is copied",
            id="a topic without records",
        ),
    ],
)
def test_a_check_says_what_was_found_and_nothing_that_was_not(
    name: str, change: dict[str, Any], golden: Golden, unsaid: str
) -> None:
    (check,) = [one for one in readiness_of(replace(WELL, **change), POLICY, "a", Rpo()).checks if one.name == name]
    assert check.ok
    golden(check.message)
    assert unsaid not in check.message


def check_of(looked: Looked, name: str) -> Check:
    """One of the checks."""
    (check,) = [one for one in readiness_of(looked, POLICY, "a", Rpo()).checks if one.name == name]
    return check


@pytest.mark.parametrize(
    ("why", "named"),
    [
        (Why.MOVED, ()),
        (Why.DELETED, ()),
        (Why.NOT_COPIED, ("groups", "checkpoints")),
        (Why.KIND, ("groups",)),
    ],
    ids=["moved", "deleted", "not copied", "kind"],
)
def test_what_a_switch_can_do_without_does_not_stand_against_it_and_is_named(
    why: Why, named: tuple[str, ...], golden: Golden
) -> None:
    looked = replace(WELL, groups=(*left(why), *left(why)))
    assert failed(looked, Rpo()) == []
    for name in ("groups", "checkpoints"):
        message = check_of(looked, name).message
        golden(message, name)
        assert ("1 group" in message and "(billing)" in message) is (name in named)
        assert ("every other group" in message) is (name in named)


@pytest.mark.parametrize("planned", [False, True], ids=["at any time", "planned"])
def test_groups_that_the_switch_is_to_leave_are_not_among_every_group(planned: bool, golden: Golden) -> None:
    looked = replace(WELL, excepted={"audit", "billing"}, planned=planned)
    for name in ("groups", "checkpoints"):
        check = check_of(looked, name)
        assert check.ok
        assert "every other group" in check.message
        assert "2 groups" in check.message
        assert "(audit, billing)" in check.message
        golden(check.message, name)
    lacking = check_of(replace(looked, without_checkpoint={"late": "sync it"}), "checkpoints")
    assert lacking.ok is planned


@pytest.mark.parametrize(
    ("lacking", "planned", "ok"),
    [({"billing": "sync it"}, False, False), ({"billing": "sync it"}, True, True), ({}, False, True), ({}, True, True)],
    ids=["a group", "a group, planned", "none", "none, planned"],
)
def test_a_flow_that_writes_no_offsets_of_groups_is_ready_only_if_none_is_lost(
    lacking: dict[str, str], planned: bool, ok: bool, golden: Golden
) -> None:
    looked = replace(WELL, unsynced="sync.group.offsets.enabled is false", without_checkpoint=lacking, planned=planned)
    check = check_of(looked, "checkpoints")
    assert check.ok is ok
    golden(check.message)
    assert "sync.group.offsets.enabled is false" in check.message
    assert ("(billing)" in check.message) is bool(lacking)
    moved = check_of(looked, "groups")
    assert moved.ok
    assert "would write" not in moved.message
    golden(moved.message, "groups")


def settings(own: dict[str, str], **inherited: str) -> TopicSettings:
    there = {
        name.replace("_", "."): Inherited(value=value, origin=SettingOrigin.FILE) for name, value in inherited.items()
    }
    return TopicSettings(own=own, inherited=there)


@pytest.mark.parametrize(
    ("here", "there", "counts"),
    [
        pytest.param(settings(KEPT), settings(KEPT), [], id="all alike"),
        pytest.param(settings(KEPT), None, ["1 topic"], id="the copy's may not be read"),
        pytest.param(None, settings(KEPT), ["1 topic"], id="the source's may not be read"),
        pytest.param(
            settings({**KEPT, "min.insync.replicas": "2"}),
            settings(KEPT, min_insync_replicas="1"),
            ["1 setting"],
            id="one is left out",
        ),
        pytest.param(
            settings(KEPT, segment_bytes="5", segment_ms="6"),
            settings({**KEPT, "segment.bytes": "4"}, segment_ms="7"),
            ["2 settings"],
            id="the brokers have others",
        ),
        pytest.param(settings(KEPT, remote_storage="x"), settings(KEPT), [], id="unknown at the target"),
    ],
)
def test_settings_that_were_not_compared_are_not_as_at_the_source(
    here: TopicSettings | None, there: TopicSettings | None, counts: list[str], golden: Golden
) -> None:
    facts = facts_with(
        WELL.facts,
        source={"topics": {"orders": replace(SOURCE, settings=here)}},
        target={"topics": {"a.orders": replace(COPY, settings=there)}},
    )
    check = check_of(replace(WELL, facts=facts), "topics")
    assert check.ok
    golden(check.message)
    assert all(count in check.message for count in counts)


@pytest.mark.parametrize(
    ("left_out", "unmapped", "says"),
    [
        ((), (), "ACLs are as"),
        ((LeftOut(binding=ACL, why="it is no topic's"),), (), "1 ACL"),
        ((), ("User:eve",), "User:eve"),
    ],
    ids=["all", "left out", "no mapping"],
)
def test_acls_that_are_not_synced_are_not_as_at_the_source(
    left_out: tuple[LeftOut, ...], unmapped: tuple[str, ...], says: str, golden: Golden
) -> None:
    diff = replace(differing(), changes=(), left_out=left_out, unmapped=unmapped)
    check = check_of(replace(WELL, features=(compared(diff),)), "acls")
    assert check.ok
    golden(check.message)
    assert says in check.message


@pytest.mark.parametrize(
    ("diff", "warns"),
    [
        (replace(differing(), changes=(), kept=(ACL,)), False),
        (replace(differing(), changes=(), foreign=(ACL,)), False),
        (replace(differing(), changes=(), bereft=(ACL,)), True),
    ],
    ids=["kept", "foreign", "bereft"],
)
def test_acls_that_ferry_made_and_the_source_does_not_have_are_not_as_at_the_source(
    diff: AclDiff, warns: bool, golden: Golden
) -> None:
    check = check_of(replace(WELL, features=(compared(diff),)), "acls")
    assert (check.ok, check.known, check.warns) == (True, True, warns)
    golden(check.message)
    assert "1 ACL" in check.message


LEDGER = "ferry-ledger.a.internal"


@pytest.mark.parametrize(
    ("last_ms", "ok"), [(STARTED_MS + 1, True), (STARTED_MS, False), (-1, False)], ids=["new", "old", "unknown"]
)
def test_a_transaction_on_the_ledger_is_judged_where_its_age_is_known(last_ms: int, ok: bool, golden: Golden) -> None:
    begun = OpenTransaction(producer_id=7, start=17, last_ms=last_ms)
    facts = facts_with(
        WELL.facts,
        now_ms=STARTED_MS + HANGING_MS,
        lane={"open_on_ledger": {TopicPartition(topic=LEDGER, partition=0): begun}},
    )
    check = check_of(replace(WELL, facts=facts), "ledger")
    assert check.ok is ok
    golden(check.message)


WRITERS = LedgerWriters(topic=LEDGER, own="User:ferry", acls=())


def acl(principal: str, name: str = LEDGER, **other: str) -> AclBinding:
    return replace(ACL, **{"principal": principal, "resource_name": name, "operation": "Write", **other})


@pytest.mark.parametrize(
    "acls",
    [
        pytest.param((acl("User:ferry"), acl("User:bob", operation="Read")), id="another reads"),
        pytest.param((acl("User:bob"), acl("User:ferry")), id="another writes"),
        pytest.param((acl("User:bob", operation="All"),), id="another may do all"),
        pytest.param((acl("User:*", "*"),), id="all may, of all topics"),
        pytest.param((acl("User:bob", "ferry-", pattern_type="prefixed"),), id="by a prefix"),
        pytest.param((acl("User:bob"), acl("User:bob", "*", permission="deny")), id="denied for all topics"),
        pytest.param(
            (acl("User:bob"), acl("User:bob", permission="deny", host="h")),
            id="denied on one host",
        ),
        pytest.param((acl("User:bob"), acl("User:*", permission="deny")), id="denied to all"),
        pytest.param(
            (acl("User:bob", "other"), acl("User:bob", "other", pattern_type="prefixed")),
            id="of another topic",
        ),
        pytest.param((acl("User:bob", resource_type="group"),), id="of a group"),
    ],
)
def test_who_else_may_write_to_the_ledger_is_named(acls: tuple[AclBinding, ...], golden: Golden) -> None:
    looked = replace(WELL, writers=replace(WRITERS, acls=acls))
    (check,) = [one for one in readiness_of(looked, POLICY, "a", Rpo()).checks if one.name == "writers"]
    assert check.ok, "it stands against no switch"
    golden(check.message)
    assert LEDGER in check.message
    assert check.warns is ("may write to" in check.message)
    assert check.outcome == ("warning" if check.warns else "ok")


def test_the_check_of_refusals_has_the_code_of_the_first_one() -> None:
    gone = refused("source.gone", "orders", partitions=3, cluster="a")
    check = check_of(replace(WELL, plan=replace(PLAN, refusals=(gone, gone))), "refusals")
    assert (check.ok, code_of(check.message)) == (False, "source.gone")
    assert facts_in(check.message) == {"topic": "orders", "partitions": 3, "cluster": "a"}
    assert gone.message in check.message


def test_an_open_ledger_is_a_warning_and_one_that_is_not_known_is_not_known() -> None:
    for is_open, outcome in ((True, "warning"), (False, "not known")):
        why = sentence("acls.no-authorizer", cluster="b")
        looked = replace(WELL, writers=replace(WRITERS, acls=None, is_open=is_open, why=why))
        (check,) = [one for one in readiness_of(looked, POLICY, "a", Rpo()).checks if one.name == "writers"]
        assert (check.ok, check.outcome) == (True, outcome)
        assert code_of(check.message) == ("ledger.writers.all" if is_open else "ledger.writers.not-known")
        assert facts_in(check.message) == {"topic": LEDGER, "why": why, "of": why.code, "cluster": "b"}
        (said,) = READINESS.dump(Readiness(checks=(check,)))["checks"]
        assert (said["message"], said["code"], said["facts"]) == (
            check.message,
            code_of(check.message),
            facts_in(check.message),
        )


def test_where_it_is_not_known_who_may_write_to_the_ledger_that_is_said(golden: Golden) -> None:
    silent = replace(WRITERS, acls=None, why="not allowed to read ACLs: grant DESCRIBE on the cluster")
    golden(writers_sentence(silent), "the cluster does not say")
    nobody = replace(WRITERS, acls=None, is_open=True, why="cluster b has no authorizer")
    golden(writers_sentence(nobody), "no authorizer")
    unnamed = replace(WRITERS, own=None, acls=(acl("User:ferry"),))
    golden(writers_sentence(unnamed), "Ferry's own name is not known")


@pytest.mark.parametrize(("ended", "name"), [(True, "standby"), (False, "replication")])
def test_a_flow_that_a_switch_stopped_is_not_to_be_resumed(ended: bool, name: str) -> None:
    state = switched()
    end = SwitchEnd(outcome=SwitchOutcome.FINISHED, who="ann", why="", at_ms=1) if ended else None
    pause = Pause(topic="", who="ann", why=f"{state.switch.id}: to backup", since_ms=0)
    looked = replace(
        WELL, facts=facts_with(WELL.facts, lane={"pauses": {"": pause}}), stopped_by=replace(state, end=end)
    )
    check = readiness_of(looked, POLICY, "a", Rpo()).checks[1]
    assert (check.name, check.ok, state.switch.id in check.message) == (name, False, True)
    assert "ferry resume" not in check.message
    assert [one.grade for one in of_readiness("a->b", [check])] == [Grade.PASS if ended else Grade.FAIL]
