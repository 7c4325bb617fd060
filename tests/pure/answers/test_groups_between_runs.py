"""Offsets of groups written between runs: what the task in Airflow does and returns, and when it does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.config.settings import load
from ferry.features.groups.acts import checkpoint
from ferry.features.groups.rules.checkpoints import decide_groups
from ferry.features.groups.rules.codec import snapshots
from ferry.features.groups.rules.concurrent_changes import still_there
from ferry.features.groups.rules.kept_snapshots import made_by
from ferry.ledger.codec import pause_record
from ferry.ledger.run_codec import run_record
from ferry.model import Flow, Pause, Record, RunRecord, TopicPartition
from ferry.model.run import LOCAL
from ferry.plan.options import RunOptions
from ferry.protocol.names import ledger_topic
from ferry.run.ledger.access import LedgerAccess
from ferry.wire.records import ProducerIdentity, build_batch
from ferry_airflow import steps
from ferry_airflow.naming import sync_id
from ferry_airflow.syncing import RETURNED, Synced, sync
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, World

PAUSED = pause_record(Pause(topic="", who="ann@desk-7", why="s-1: switchover to b", since_ms=1))
NEWER = run_record(
    RunRecord(
        flow=Flow(source="a", target="b"), lane="live", run="r3", slots=1, config_digest="", started_ms=1, origin=LOCAL
    )
)
PLACE = TopicPartition(topic="a.orders", partition=0)


def synced(made: World, number: int = 1, **params: Any) -> Synced:
    """What a run of the DAG does."""
    made.now_ms += 60_000
    flow = load(made.folder / FILE).flow("a->b")
    return sync(flow, sync_id("ferry_groups__a__b", "sync", f"scheduled__{number}"), params)


def other(made: World, *records: Record) -> None:
    """Another process writes to the ledger of a->b."""
    made.b.append(ledger_topic("a"), build_batch(list(records), made.now_ms, ProducerIdentity()), 0)


def at(made: World, group: str = "billing") -> int | None:
    """Where a group continues on the target."""
    found = made.b.groups.get(group, {}).get(PLACE)
    return None if found is None else found[0]


def copied(made: World, *lines: str) -> None:
    """A run has copied ten records, and translated a group that has read four of them."""
    begun(made, *lines)
    made.commit(made.a, "billing", orders_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_pause_since_the_plan_leaves_the_groups_and_lets_the_run_end_well(made: World, is_paused: bool) -> None:
    """`ferry resume` and the next run translate them; a run without a pause has to show what became of its groups."""
    copied(made)
    flow = load(made.folder / FILE).flow("a->b")
    made.commit(made.a, "billing", orders_0=8)
    before = at(made)
    steps.open_plan(flow, "r2", LOCAL, RunOptions())
    if is_paused:
        other(made, PAUSED)
        assert steps.checkpoint(flow, "r2") is None
    found = steps.reported(flow, "r2")
    assert (found.report.groups, at(made)) == (None, before)
    held = steps.groups_held(found, translates=True)
    assert ("ann@desk-7" in (held or ""), steps.complaint(found, translates=True) is None) == (is_paused, is_paused)
    assert steps.groups_held(found, translates=False) is None
    if is_paused:
        assert made.ask("resume", "a->b").code == 0
        assert made.ask("run", "a->b", "--id", "r3").code == 0
        assert at(made) == 8


@pytest.mark.slow
def test_what_a_group_has_read_since_the_last_run_is_carried_over(made: World) -> None:
    copied(made)
    before = at(made)
    made.commit(made.a, "billing", orders_0=8)
    first = synced(made)
    assert (first.complaint, first.body["outcome"], first.body["groups"], first.body["offsets"]) == (
        *(None, "synced"),
        *(1, 1),
    )
    (write,) = first.body["writes"]
    assert (write["group"], write["source_offset"], write["target_offset"]) == ("billing", 8, at(made))
    assert (before, at(made)) == (4, 8)
    again = synced(made, 2)
    assert (again.body["outcome"], again.body["offsets"], again.body["unchanged"]) == ("synced", 0, 1)


@pytest.mark.slow
def test_no_group_is_set_after_what_is_copied_or_back_to_what_it_had(made: World) -> None:
    copied(made)
    made.produce(made.a, "orders", 0, 5)
    made.commit(made.a, "billing", orders_0=15)
    (write,) = synced(made).body["writes"]
    assert write["outcome"] == "ahead"
    assert at(made) == made.b.log("a.orders", 0).end, "the copied end"
    made.commit(made.b, "billing", **{"a.orders_0": 9})
    made.commit(made.a, "billing", orders_0=6)
    found = synced(made, 2)
    assert [one["why"] for one in found.body["left"]] == ["moved"]
    assert (found.complaint, at(made)) == (None, 9), "a group that reads on the target is no failure"


@pytest.mark.slow
def test_a_dry_run_writes_nothing(made: World) -> None:
    copied(made)
    made.commit(made.a, "billing", orders_0=8)
    ledger = made.b.log(ledger_topic("a")).end
    found = synced(made, dry_run=True)
    assert (found.body["outcome"], found.body["run"], found.body["offsets"]) == ("dry run", None, 1)
    assert (at(made), made.b.log(ledger_topic("a")).end) == (4, ledger)


def test_a_group_that_failed_fails_the_task_and_comes_first(made: World) -> None:
    copied(made)
    made.commit(made.a, "billing", orders_0=8)
    found = synced(made, groups=["billing", *(f"billing-{number}" for number in range(RETURNED + 5))])
    assert (found.body["outcome"], found.body["offsets"], at(made)) == ("failed", 1, 8), "the others are done"
    assert {one["why"] for one in found.body["left"]} == {"failed"}
    assert len(found.body["left"]) == RETURNED
    assert found.complaint is not None
    assert "billing-0" in found.complaint
    assert "\n" not in found.complaint


@pytest.mark.parametrize(
    ("lines", "records", "code"),
    [
        ((), (PAUSED,), "ann@desk-7"),
        ((), (NEWER,), "r3"),
        (("sync.group.offsets.enabled = false",), (), "sync.group.offsets.enabled"),
        (("sync.group.offsets.interval.seconds = -1",), (), "sync.group.offsets.interval.seconds"),
    ],
    ids=["paused", "a run that has no plan yet", "switched off", "never"],
)
def test_groups_are_left_alone_without_a_failure(
    made: World, lines: tuple[str, ...], records: tuple[Record, ...], code: str
) -> None:
    copied(made, *lines)
    there = {group: dict(offsets) for group, offsets in made.b.groups.items()}
    other(made, *records)
    made.commit(made.a, "billing", orders_0=8)
    found = synced(made)
    assert (found.complaint, found.body["outcome"], found.body["run"]) == (None, "left alone", None)
    assert code in found.body["summary"]
    assert made.b.groups == there


def test_a_flow_without_a_run_has_nothing_to_translate_by(made: World) -> None:
    begun(made)
    made.commit(made.a, "billing", orders_0=4)
    assert (synced(made).body["outcome"], at(made)) == ("left alone", None)


@pytest.mark.slow
@pytest.mark.parametrize("then", [PAUSED, NEWER], ids=["paused", "a newer run"])
def test_what_comes_before_the_commit_stops_it(made: World, monkeypatch: pytest.MonkeyPatch, then: Record) -> None:
    """It slept right before the commit, and a newer run may have created the topic again meanwhile."""
    copied(made)
    made.commit(made.a, "billing", orders_0=8)
    real, asleep = still_there, [True]

    def slowly(*given: Any) -> Any:
        if asleep:
            asleep.clear()
            other(made, then)
        return real(*given)

    monkeypatch.setattr(checkpoint, "still_there", slowly)
    found = synced(made)
    assert (asleep, found.body["outcome"], at(made)) == ([], "left alone", 4)


@pytest.mark.parametrize("words", [("groups", "sync", "a->b"), ("run", "a->b", "--id", "r2")], ids=["a sync", "a run"])
def test_of_two_at_once_the_one_that_read_later_counts(
    made: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    copied(made)
    made.commit(made.a, "billing", orders_0=6)
    real, asleep = decide_groups, [True]

    def slowly(*given: Any, **named: Any) -> Any:
        found = real(*given, **named)
        if asleep:
            asleep.clear()
            made.commit(made.a, "billing", orders_0=8)
            assert made.ask(*words).code == 0
        return found

    monkeypatch.setattr(checkpoint, "decide_groups", slowly)
    found = synced(made)
    assert (asleep, found.complaint, found.body["offsets"]) == ([], None, 0)
    assert at(made) == 8
    assert (synced(made, 2).body["offsets"], at(made)) == (0, 8), "the other one's memory stays"


def test_one_that_sleeps_before_the_commit_puts_no_group_back(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one saw its records, and wrote what the group has read since."""
    copied(made)
    made.commit(made.a, "billing", orders_0=6)
    real, asleep = still_there, [True]

    def slowly(*given: Any) -> Any:
        found = real(*given)
        if asleep:
            asleep.clear()
            made.commit(made.a, "billing", orders_0=8)
            assert made.ask("groups", "sync", "a->b").code == 0
            assert at(made) == 8
        return found

    monkeypatch.setattr(checkpoint, "still_there", slowly)
    found = synced(made)
    assert (asleep, found.body["outcome"], at(made)) == ([], "left alone", 8)
    made.commit(made.a, "billing", orders_0=9)
    assert (synced(made, 2).body["outcome"], at(made)) == ("synced", 9)


@pytest.mark.slow
def test_syncs_do_not_displace_what_groups_had_before_runs(made: World) -> None:
    copied(made)
    for number in range(13):
        made.commit(made.a, "billing", orders_0=4 + number % 2 + 1)
        assert synced(made, number).body["offsets"] == 1
    with LedgerAccess(load(made.folder / FILE).flow("a->b")) as access:
        names = [*snapshots(access.whole(), "live")]
    assert "r1" in names
    syncs = [name for name in names if name != "r1"]
    assert syncs == [sync_id("ferry_groups__a__b", "sync", f"scheduled__{number}") for number in range(3, 13)]
    assert [made_by(name) == made_by("r1") for name in names].count(True) == 1
    assert made.ask("groups", "rollback", "a->b", "--snapshot", syncs[-1]).code == 0
    assert at(made) == 6
