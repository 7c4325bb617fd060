"""ACLs that deny WRITE on the new cluster: which a switch deletes, and which it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ferry.kafka.connect import codes
from tests.golden import Golden
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world
from tests.pure.scripted.faults import Fault

OVER = "failover", "a->b", "--id", "f-1", "--leave-unknown", "--no-smoke"
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE = 2, 3, 4
DENY, ALLOW = 2, 3


def acl(topic: str, operation: int = WRITE, pattern: int = LITERAL, permission: int = DENY) -> dict[str, Any]:
    """An ACL of all principals, by Kafka's numbers."""
    return {
        "resource_type": 2,
        "resource_name": topic,
        "pattern_type": pattern,
        "principal": "User:*",
        "operation": operation,
        "permission_type": permission,
    }


DELETED = (acl("users"), acl("a.users"))
LEFT = (acl("*"), acl("us", pattern=PREFIXED), acl("a.users", ALL))
BESIDE = (acl("users", READ), acl("other"), acl("use", WRITE), acl("x", ALL, PREFIXED), acl("*", WRITE, LITERAL, ALLOW))


@contextmanager
def blocked(folder: Path, *acls: dict[str, Any]) -> Iterator[World]:
    with world(folder) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        made.b.acls = [*acls]
        yield made


def promoted(body: Any) -> Any:
    return next(step["facts"] for step in body["steps"] if step["step"] == "promote")


def checked(rows: Any) -> list[tuple[bool, bool, bool]]:
    return [(row["ok"], row["known"], row["warns"]) for row in rows if row["name"] == "write-block"]


def test_a_switch_names_the_denials_that_it_does_not_delete(tmp_path: Path, golden: Golden) -> None:
    with blocked(tmp_path, *DELETED, *LEFT, *BESIDE) as made:
        dry = made.ask(*OVER, "--dry-run", "--remove-write-block")
        done = made.ask(*OVER, "--approve-by", "bob", "--remove-write-block")
        assert made.b.acls == [*LEFT, *BESIDE]
    assert checked(dry.body["readiness"]["checks"]) == [(True, True, True)]
    assert checked(done.body["steps"][0]["rows"]) == [(True, True, True)]
    facts = promoted(done.body)
    assert (len(facts["removed_acls"]), len(facts["left_acls"])) == (len(DELETED), len(LEFT))
    assert {*facts["left_acls"]}.isdisjoint(facts["removed_acls"])
    golden(next(row["message"] for row in done.body["steps"][0]["rows"] if row["name"] == "write-block"), "check")
    golden(next(step["sentence"] for step in done.body["steps"] if step["step"] == "promote"), "step")


@pytest.mark.slow
def test_without_other_denials_nothing_is_named(tmp_path: Path) -> None:
    with blocked(tmp_path, *DELETED, *BESIDE) as made:
        done = made.ask(*OVER, "--approve-by", "bob", "--remove-write-block")
    assert checked(done.body["steps"][0]["rows"]) == [(True, True, False)]
    assert promoted(done.body)["left_acls"] == []


@pytest.mark.slow
def test_acls_are_looked_at_only_if_that_is_asked_for(tmp_path: Path) -> None:
    with blocked(tmp_path, *DELETED, *LEFT) as made:
        done = made.ask(*OVER, "--approve-by", "bob")
        assert made.b.acls == [*DELETED, *LEFT]
    assert checked(done.body["steps"][0]["rows"]) == []
    assert "left_acls" not in promoted(done.body)


@pytest.mark.slow
def test_a_cluster_without_an_authorizer_denies_nothing(tmp_path: Path) -> None:
    with blocked(tmp_path) as made:
        made.b.authorizer = False
        done = made.ask(*OVER, "--approve-by", "bob", "--remove-write-block")
    assert checked(done.body["steps"][0]["rows"]) == [(True, True, False)]
    assert promoted(done.body)["left_acls"] == []


@pytest.mark.slow
def test_acls_that_cannot_be_read_stop_the_switch_before_it_begins(tmp_path: Path) -> None:
    with blocked(tmp_path, *DELETED) as made:
        made.b.faults.append(Fault(api="DescribeAcls", code=codes.CLUSTER_AUTHORIZATION_FAILED, times=99))
        dry = made.ask(*OVER, "--dry-run", "--remove-write-block")
        begun_too = made.ask(*OVER, "--approve-by", "bob", "--remove-write-block")
        known = made.ask("switches", "list", "a->b")
        assert made.b.acls == [*DELETED]
    assert checked(dry.body["readiness"]["checks"]) == [(False, True, False)]
    assert "error" in begun_too.body
    assert known.body["switches"] == []


@pytest.mark.slow
def test_a_failback_looks_at_the_topics_of_the_switch_before(tmp_path: Path) -> None:
    with blocked(tmp_path) as made:
        made.ask(*OVER, "--approve-by", "bob", "--no-reverse")
        made.a.acls = [acl("us", pattern=PREFIXED)]
        back = made.ask("failback", "a->b", "--id", "f-2", "--dry-run", "--remove-write-block")
    assert checked(back.body["readiness"]["checks"]) == [(True, True, True)]


def test_the_ledger_alone_removes_no_write_block(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        made.produce(made.a, "users", 0, 3)
        over = "switchover", "a->b", "--id", "s-1"
        waits = "--approve-by", "bob", "--quiet-seconds", "5", "--quiet-timeout", "0"
        stopped = made.ask(*over, *waits, "--remove-write-block")
        refused = made.ask(*over)
        again = made.ask(*over, "--remove-write-block")
    assert "was begun with --remove-write-block" in json.dumps(refused.body)
    assert (again.code, "was begun with" in json.dumps(again.body)) == (stopped.code, False)
