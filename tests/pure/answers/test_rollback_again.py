"""A rollback of groups that ends before its commit, or right after it: what the ledger holds of the group is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ferry.errors import Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.groups.offsets import commit_offsets
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.codec import encode
from ferry.model import Record
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world
from tests.pure.scripted.faults import At, Fault

pytestmark = pytest.mark.slow
COMMIT = "ferry.features.groups.acts.snapshots.commit_offsets"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """The runs r1, r2 and r3 have written the group's offset: 3, then 5, then 7."""
    with world(tmp_path) as made:
        begun(made, topics={"users": 1})
        for number, offset in enumerate((3, 5, 7), 1):
            made.commit(made.a, "billing", users_0=offset)
            made.ask("run", "a->b", "--id", f"r{number}")
        assert at(made) == 7
        yield made


def at(made: World) -> int:
    ((offset, _),) = made.b.groups["billing"].values()
    return int(offset)


def rollback(made: World, snapshot: str) -> Answer:
    return made.ask("groups", "rollback", "a->b", "--snapshot", snapshot)


def run_on(made: World) -> int:
    """Where the group is after it has moved at the source, and after a run."""
    made.commit(made.a, "billing", users_0=8)
    assert made.ask("run", "a->b", "--id", "r4").code == 0
    return at(made)


async def unreachable(*_: Any, **__: Any) -> Any:
    raise Unreachable("cluster b does not answer")


def failed(made: World, monkeypatch: pytest.MonkeyPatch, snapshot: str) -> None:
    """A rollback that ends before its commit."""
    with monkeypatch.context() as patch:
        patch.setattr(COMMIT, unreachable)
        assert rollback(made, snapshot).body["error"]["kind"] == "unreachable"
    assert at(made) == 7


@pytest.mark.parametrize("snapshot", ["r2", "r3"])
def test_a_rollback_that_failed_can_be_repeated(made: World, monkeypatch: pytest.MonkeyPatch, snapshot: str) -> None:
    failed(made, monkeypatch, snapshot)
    again = rollback(made, snapshot)
    assert (again.code, again.body["left"]) == (0, []), again
    before = {"r2": 3, "r3": 5}[snapshot]
    assert at(made) == before
    assert run_on(made) == before, "runs leave it from then on"


def test_a_group_that_was_not_rolled_back_is_followed(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failed(made, monkeypatch, "r2")
    assert run_on(made) == 8


def test_a_rollback_that_dies_after_its_commit_is_not_undone(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = LedgerTopic.append_each, iter(range(9))

    async def append_each(self: LedgerTopic, records: Sequence[Record]) -> list[int]:
        if next(calls):
            raise Unreachable("cluster b does not answer")
        return await real(self, records)

    with monkeypatch.context() as patch:
        patch.setattr(LedgerTopic, "append_each", append_each)
        assert rollback(made, "r3").code != 0
    assert at(made) == 5
    assert run_on(made) == 5


def test_after_a_rollback_no_offset_there_is_of_ferry(made: World) -> None:
    assert rollback(made, "r2").code == 0
    made.commit(made.b, "billing", **{"a.users_0": 7})
    assert run_on(made) == 7


def test_after_a_rollback_runs_move_no_part_of_the_group(tmp_path: Path) -> None:
    """Of its partitions one is written back, one has the snapshot's offset, and the snapshot lacks one."""
    with world(tmp_path) as made:
        begun(made, topics={"orders": 3})
        made.commit(made.a, "billing", orders_0=4, orders_1=6)
        assert made.ask("run", "a->b", "--id", "r1").code == 0
        assert made.ask("groups", "snapshot", "a->b", "--snapshot", "before").code == 0
        made.commit(made.a, "billing", orders_0=9, orders_2=3)
        assert made.ask("groups", "sync", "a->b").code == 0
        assert rollback(made, "before").code == 0
        there = {place: at for place, (at, _) in made.b.groups["billing"].items()}
        assert sorted(there.values()) == [3, 4, 6]
        made.commit(made.a, "billing", orders_0=10, orders_1=8, orders_2=6)
        left = made.ask("groups", "sync", "a->b").body["left"]
        assert {one["why"] for one in left} == {"moved"}
        assert {place: at for place, (at, _) in made.b.groups["billing"].items()} == there
        assert made.ask("groups", "sync", "a->b", "--force").code == 0
        assert all(at > there[place] for place, (at, _) in made.b.groups["billing"].items())


@pytest.mark.parametrize(
    ("code", "where", "why"),
    [
        (codes.GROUP_AUTHORIZATION_FAILED, At.LISTED, "failed"),
        (codes.TOPIC_AUTHORIZATION_FAILED, At.INNER, "failed"),
        (codes.UNSTABLE_OFFSET_COMMIT, At.INNER, "pending"),
    ],
)
def test_a_group_that_cannot_be_read_is_not_called_different(made: World, code: int, where: At, why: str) -> None:
    made.b.faults.append(Fault(api="OffsetFetch", code=code, at=where, times=10**6))
    found = made.ask("groups", "diff", "a->b", "--snapshot", "r3")
    assert (found.code, found.body["differences"]) == (1, [])
    assert [(one["group"], one["why"]) for one in found.body["not_compared"]] == [("billing", why)]
    assert "billing" in made.ask("groups", "diff", "a->b", "--snapshot", "r3", output="table").out
    back = made.ask("groups", "rollback", "a->b", "--snapshot", "r3", "--dry-run")
    assert (back.body["writes"], [one["why"] for one in back.body["left"]]) == ([], [why])


def test_a_rollback_ends_when_another_process_writes_the_group(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Record(key=encode(["group", "live", "billing"]), value=None)

    async def late(*words: Any, **more: Any) -> Any:
        made.b.append(ledger_topic("a"), build_batch([other], made.now_ms, ProducerIdentity()), 0)
        return await commit_offsets(*words, **more)

    monkeypatch.setattr(COMMIT, late)
    refused = rollback(made, "r2")
    assert (refused.body["error"]["kind"], at(made)) == ("refused", 7)
