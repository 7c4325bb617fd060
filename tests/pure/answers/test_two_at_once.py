"""Two operators who write to one ledger at once: what each of them reads is true."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ferry.features.groups.acts import checkpoint, snapshots
from ferry.features.groups.rules.codec import Snapshot, snapshot_record
from ferry.features.groups.rules.concurrent_changes import concurrent_changes
from ferry.features.groups.rules.rollback import decide_rollback
from ferry.features.migrate.acts import adopting, hand_back
from ferry.features.migrate.rules.adoption import adoptions_of
from ferry.features.migrate.rules.hand_back import HANDED_BACK, position_records
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.codec import encode, pause_record
from ferry.ledger.run_codec import run_record
from ferry.model import Flow, Pause, Record, RunRecord
from ferry.model.run import LOCAL
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import World
from tests.pure.decide.values import lying


def other(made: World, *records: Record) -> None:
    """Another process writes to the ledger of a->b."""
    made.b.append(ledger_topic("a"), build_batch(list(records), made.now_ms, ProducerIdentity()), 0)


def test_of_two_snapshots_of_one_name_the_later_is_refused(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    made.ask("run", "a->b", "--id", "r1")
    real, found = LedgerTopic.append, [Snapshot(name="kept", at_ms=1, who="eve@desk-9", groups=1)]

    async def append(self: LedgerTopic, records: Sequence[Record]) -> int:
        if found:
            other(made, snapshot_record("live", found.pop()))
        return await real(self, records)

    monkeypatch.setattr(LedgerTopic, "append", append)
    refused = made.ask("groups", "snapshot", "a->b", "--name", "kept")
    assert (refused.code, "error" in refused.body) == (2, True)
    listed = made.ask("groups", "snapshots", "list")
    assert listed.body == made.ask("groups", "snapshot", "a->b", "--list").body
    assert "kept" in {one["name"] for one in listed.body["snapshots"]}
    assert made.ask("groups", "snapshots", "drop", "kept", "--dry-run").code == 0
    assert made.ask("groups", "snapshots", "drop", "kept").code == 2
    assert made.ask("groups", "snapshots", "drop", "kept", "--yes").code == 0
    assert made.ask("groups", "snapshot", "a->b", "--drop", "kept").code == 2
    assert made.ask("groups", "snapshot", "a->b", "--name", "kept").code == 0


def test_a_rollback_leaves_a_group_that_another_process_writes(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    made.ask("run", "a->b", "--id", "r1")
    made.ask("groups", "snapshot", "a->b", "--name", "kept")
    made.commit(made.a, "billing", orders_0=8)
    made.ask("groups", "sync", "a->b")
    there = dict(made.b.groups["billing"])
    key = encode(["group", "live", "billing"])

    def last(file: str) -> dict[str, Any]:
        made.ask("ledger", "export", "a->b", "--output", file)
        lines = [json.loads(line) for line in (made.folder / file).read_text().splitlines()]
        found: dict[str, Any] = [line for line in lines if line.get("key") == json.loads(key)][-1]["value"]
        return found

    held = last("before.jsonl")

    def slowly(*words: Any, **more: Any) -> Any:
        other(made, Record(key=key, value=encode({**held, "run": "r2"})))
        return decide_rollback(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "decide_rollback", slowly)
        answer = made.ask("groups", "rollback", "a->b", "--snapshot", "kept")
    assert made.b.groups["billing"] == there
    assert "run r2" in json.dumps(answer.body)
    assert last("after.jsonl")["run"] == "r2", "what Ferry remembers of the group is that process's"


def test_a_pass_sees_the_rollback_of_a_group_that_ferry_never_wrote(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made)
    made.ask("run", "a->b", "--id", "r1")
    made.commit(made.b, "billing", **{"a.orders_0": 2})
    made.ask("groups", "snapshot", "a->b", "--name", "kept")
    made.commit(made.b, "billing", **{"a.orders_0": 5})
    real, found = LedgerTopic.append_each, list[Record]()

    async def append_each(self: LedgerTopic, records: Sequence[Record]) -> list[int]:
        found.extend(records)
        return await real(self, records)

    monkeypatch.setattr(LedgerTopic, "append_each", append_each)
    assert made.ask("groups", "rollback", "a->b", "--snapshot", "kept", "--force").code == 0
    assert [at for at, _ in made.b.groups["billing"].values()] == [2]
    assert concurrent_changes(lying(*found), "live", now_ms=made.now_ms, is_run=True).taken == {"billing": "a rollback"}


PAUSED = pause_record(Pause(topic="", who="ann@desk-7", why="s-1: switchover to b", since_ms=1))
NEWER = run_record(
    RunRecord(
        flow=Flow(source="a", target="b"), lane="live", run="r3", slots=1, config_digest="", started_ms=1, origin=LOCAL
    )
)


@pytest.mark.parametrize(
    ("words", "module", "last", "then"),
    [
        (("run", "a->b", "--id", "r2"), checkpoint, "still_there", PAUSED),
        pytest.param(("run", "a->b", "--id", "r2"), checkpoint, "still_there", NEWER, marks=pytest.mark.slow),
        pytest.param(("groups", "sync", "a->b"), checkpoint, "still_there", PAUSED, marks=pytest.mark.slow),
        (("groups", "rollback", "a->b", "--snapshot", "kept"), snapshots, "overwritten", PAUSED),
    ],
    ids=["a run, and the flow was paused", "a run, and a newer one began", "a sync by hand", "a rollback"],
)
def test_a_pass_that_slept_right_before_it_commits_leaves_the_groups_alone(
    made: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], module: Any, last: str, then: Record
) -> None:
    """A switch moved them meanwhile, and finished; they have read on since, and have no members at this moment."""
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    made.ask("run", "a->b", "--id", "r1")
    made.ask("groups", "snapshot", "a->b", "--name", "kept")
    made.commit(made.a, "billing", orders_0=8)
    if words[1] == "rollback":
        made.ask("groups", "sync", "a->b")
    there = dict(made.b.groups["billing"])
    real, asleep = getattr(module, last), [True]

    def slowly(*given: Any) -> Any:
        found = real(*given)
        if asleep:
            asleep.clear()
            other(made, then)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(module, last, slowly)
        made.ask(*words)
    assert not asleep
    assert made.b.groups["billing"] == there


def test_a_pause_that_is_set_while_a_flow_is_taken_over_stays(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made, IDENTITY)
    made.b.topic("orders", 2)
    for partition in range(2):
        made.produce(made.b, "orders", partition, 8)
    made.commit(made.a, "mirror", orders_0=8, orders_1=7)
    made.ask("pause", "a->b", "--reason", f"{HANDED_BACK} by r0")

    def slowly(*words: Any) -> Any:
        other(made, pause_record(Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1)))
        return adoptions_of(*words)

    adopt = "migrate", "mm1", "a->b", "--group", "mirror", "--topic", "orders"
    with monkeypatch.context() as patch:
        patch.setattr(adopting, "adoptions_of", slowly)
        assert made.ask(*adopt).code == 0
    (pause,) = made.ask("ledger", "a->b", "--pauses").body["pauses"]
    assert pause["who"] == "eve@desk-9"


def migrated(made: World) -> Callable[[], None]:
    """A flow from MirrorMaker 1; what adopts it again, after one record more that MirrorMaker 1 has copied."""
    begun(made, IDENTITY)
    made.b.topic("orders", 2)
    for partition in range(2):
        made.produce(made.b, "orders", partition, 7)
    ends = iter(range(8, 10))

    def adopt() -> None:
        made.produce(made.b, "orders", 0, 1)
        made.commit(made.a, "mirror", orders_0=next(ends), orders_1=7)
        answer = made.ask("migrate", "mm1", "a->b", "--group", "mirror", "--topic", "orders")
        assert (answer.code, answer.body["partitions"][0]["outcome"]) == (0, "adopt"), answer.body

    adopt()
    return adopt


def paused(made: World) -> list[tuple[str, str]]:
    """Who has paused the flow, and why."""
    found = made.ask("ledger", "a->b", "--pauses").body["pauses"]
    return [(one["who"], one["why"]) for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("until", [(), ("--until", "2100-01-01T00:00:00Z")], ids=["until resumed", "until a time"])
def test_the_pause_of_an_operator_outlasts_a_hand_back_and_an_adoption(made: World, until: tuple[str, ...]) -> None:
    adopt = migrated(made)
    made.ask("pause", "a->b", "--reason", "the source is corrupt", *until)
    ((who, why),) = paused(made)
    handed = made.ask("migrate", "hand-back", "a->b", "--create")
    assert (handed.code, len([note for note in handed.body["notes"] if why in note])) == (0, 1)
    ((by, both),) = paused(made)
    assert (by, why in both, HANDED_BACK in both) == (who, True, True)
    adopt()
    assert paused(made) == [(who, why)]


@pytest.mark.slow
def test_a_pause_of_a_hand_back_alone_ends_with_the_adoption(made: World) -> None:
    adopt = migrated(made)
    assert made.ask("migrate", "hand-back", "a->b", "--create").code == 0
    ((_, why),) = paused(made)
    assert why.startswith(HANDED_BACK)
    adopt()
    assert paused(made) == []


def test_a_pause_that_is_set_while_a_flow_is_handed_back_stays(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    migrated(made)
    looks = iter(range(2))

    def slowly(*words: Any) -> Any:
        if next(looks):  # the writers are fenced, and the ledger is read
            other(made, pause_record(Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1)))
        return position_records(*words)

    with monkeypatch.context() as patch:
        patch.setattr(hand_back, "position_records", slowly)
        assert made.ask("migrate", "hand-back", "a->b", "--create").code == 0
    ((who, why),) = paused(made)
    assert (who, "the source is corrupt" in why, HANDED_BACK in why) == ("eve@desk-9", True, True)
