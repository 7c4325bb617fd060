"""A failback to a primary that was rebuilt or cut is refused. Where a guard accepts that, its report has the loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from ferry.model import Record, TopicPartition
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import HEARTBEATS, IDENTITY
from tests.pure.answers.world import BEGAN_MS, Answer, World, world_after
from tests.pure.answers.world import FILE as FILE_NAME
from tests.pure.scripted.batches import led_in
from tests.tiers import share

pytestmark = pytest.mark.slow
FILE = ("topics = users", "groups = billing.*", "b->a.enabled = true", *HEARTBEATS)
USERS = TopicPartition("users", 0)
FAILOVER = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-smoke"
BACK = "failback", "a->b", "--id", "s-1", "--approve-by", "bob", "--no-smoke", "--quiet-seconds", "0"

Change = Callable[[World], None]


def cut_and_written(made: World) -> None:
    made.a.lose(USERS, 5, made.a.leaders[USERS])
    made.produce(made.a, "users", 0, 3)


def cut_and_filled(made: World) -> None:
    made.a.lose(USERS, 5, made.a.leaders[USERS])
    made.produce(made.a, "users", 0, 9)  # it ends after what was copied


def cut(made: World) -> None:
    made.a.lose(USERS, 6, made.a.leaders[USERS])


def shorter(made: World) -> None:
    """Leader epochs do not show it."""
    del made.a.log("users", 0).entries[6:]


def created_again(made: World) -> None:
    made.a.delete("users")
    made.a.topic("users", 1)
    made.a.ids["users"] = UUID(int=77)
    made.produce(made.a, "users", 0, 6)


def created_longer(made: World) -> None:
    created_again(made)
    made.produce(made.a, "users", 0, 8)


def gone(made: World) -> None:
    made.a.delete("users")


def rebuilt(made: World) -> None:
    created_again(made)
    made.a.alias = "another"


CHANGES: dict[Change, tuple[str, str]] = {
    cut_and_written: ("source.truncated", "restart"),
    cut_and_filled: ("source.truncated", "skip"),
    cut: ("source.truncated", "restart"),
    shorter: ("source.truncated", "skip"),
    created_again: ("topic.recreated", "restart"),
    created_longer: ("topic.recreated", "restart"),
    gone: ("topic.gone", "skip"),
    rebuilt: ("cluster.changed", "restart"),
}


def failed_over(made: World, *policy: str) -> None:
    """Ten records are copied, a is lost and clients are on b; the group has read nine of them there."""
    made.write(*FILE, *policy)
    made.a.topic("users", 1)
    rows = [Record(key=b"k%d" % at, value=b"v") for at in range(10)]
    made.a.append("users", led_in(build_batch(rows, BEGAN_MS, ProducerIdentity()), 0), 0)
    made.commit(made.a, "billing", users_0=4)
    if policy:
        assert made.ask("pause", "b->a", "--reason", "standby").code == 0
    assert made.ask("run", "a->b").code == 0
    made.lost = made.a
    assert made.ask(*FAILOVER).code == 0
    made.lost = None
    made.produce(made.b, "users", 0, 3)
    made.commit(made.b, "billing", **({"users_0": 9} if policy else {"a.users_0": 9, "users_0": 1}))


def failed_over_with_names(made: World) -> None:
    failed_over(made, IDENTITY)


@pytest.fixture(params=[failed_over, failed_over_with_names], ids=["default", "identity"])
def made(request: pytest.FixtureRequest) -> Iterator[World]:
    with world_after(request.param) as made:
        yield made


def keeps(made: World) -> bool:
    """Whether copies have the names of their sources."""
    return IDENTITY in (made.folder / FILE_NAME).read_text()


def write(made: World, *lines: str) -> None:
    """Write the file, with the policy of the world."""
    made.write(*FILE, *([IDENTITY] if keeps(made) else []), *lines)


def failed_checks(answer: Answer) -> list[str]:
    return [one["name"] for one in answer.body["readiness"]["checks"] if not one["ok"]]


def shown(made: World) -> dict[str, Any]:
    """The steps of the failback, by name."""
    return {one["step"]: one for one in made.ask("switches", "show", "a->b", "s-1").body["steps"]}


def lines(made: World) -> list[int]:
    """The offsets of the records in the file of stranded ones."""
    path = made.folder / "ferry-stranded-s-1.jsonl"
    return [json.loads(line)["offset"] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_primary_that_holds_all_gets_its_clients_back(made: World) -> None:
    assert failed_checks(made.ask(*BACK[:4], "--dry-run")) == []
    assert made.ask(*BACK).code == 0
    report = made.ask("reports", "switch", "a->b", "s-1").body
    assert (report["outcome"], report["rpo"]["records"], report["notes"]) == ("success", 0, [])


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_it_is_refused_before_anything_is_done(made: World, change: Change) -> None:
    change(made)
    before = {name: len(log.entries) for name, log in made.a.target.logs.items()}
    back = made.ask(*BACK)
    error = back.body["error"]
    assert (back.code, error["code"], error["facts"]["check"]) == (2, "switch.not-ready", "copied")
    assert {name: len(log.entries) for name, log in made.a.target.logs.items()} == before


LEFT: dict[Change, list[int]] = {
    cut_and_written: [5, 6, 7],
    cut_and_filled: [*range(5, 14)],
    created_again: [*range(6)],
    rebuilt: [*range(6)],
}
LEFT[created_longer] = [*range(14)]
LACKING: dict[Change, int] = {cut_and_written: 5, cut_and_filled: 5, cut: 4}


@pytest.mark.parametrize("change", share(CHANGES, 0, 2), ids=lambda one: one.__name__)
def test_what_a_guard_accepts_is_counted_or_not_known(made: World, change: Change) -> None:
    change(made)
    guard, policy = CHANGES[change]
    write(made, f"a->b.ferry.guard.{guard} = {policy}")
    back = made.ask(*BACK, "--leave-group", "billing")
    assert back.code == 0, back
    steps = shown(made)
    (check,) = [one for one in steps["readiness"]["rows"] if one["name"] == "copied"]
    assert (check["ok"], check["warns"]) == (True, True)
    (lack,) = steps["stranded"]["facts"]["lacks"]
    assert (lack["topic"], lack["end"], lack["why"]) == ("users", 10, guard.replace(".", "-"))
    assert lines(made) == LEFT.get(change, [])
    report = made.ask("reports", "switch", "a->b", "s-1").body
    assert (report["outcome"], report["rpo"]["records"]) == ("deviations", LACKING.get(change))
    assert any("users-0" in one for one in report["deviations"])


@pytest.mark.parametrize(
    "change", share([cut_and_written, cut, shorter, created_longer, rebuilt], 1, 2), ids=lambda one: one.__name__
)
def test_a_group_is_not_led_to_what_is_not_there(made: World, change: Change) -> None:
    change(made)
    guard, policy = CHANGES[change]
    write(made, f"a->b.ferry.guard.{guard} = {policy}")
    before = made.a.groups["billing"].get(USERS)
    back = made.ask(*BACK)
    assert (back.code, back.body["error"]["code"]) == (4, "switch.groups-stay")
    assert made.a.groups["billing"].get(USERS) == before


def test_a_group_before_the_cut_moves(made: World) -> None:
    cut(made)
    write(made, "a->b.ferry.guard.source.truncated = restart")
    place = "users_0" if keeps(made) else "a.users_0"
    made.commit(made.b, "billing", **{place: 5})
    assert made.ask(*BACK).code == 0
    assert made.a.groups["billing"][USERS][0] == 5


def test_a_topic_that_was_deleted_with_its_copy_lacks_nothing(made: World) -> None:
    copy = "users" if keeps(made) else "a.users"
    gone(made)
    made.b.delete(copy)
    assert "copied" not in failed_checks(made.ask(*BACK[:4], "--dry-run"))
