"""Groups written to a real target while a copy, another sync, a consumer or an operator works on them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Barrier

import pytest

from ferry.clock import wall_ms
from ferry.copy.slot_end import end_of
from ferry.features.groups.acts.checkpoint import GroupSync, Looked, StoodBack
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.groups.rules.selection import GroupRules
from ferry.lane.connections import TargetConnection
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import LedgerView
from ferry.model import GroupOutcome, Pause, Why
from ferry.plan.options import RunOptions
from ferry.run.micro_run import local_origin
from tests.harness import numbered, producer, send
from tests.kafka.run.groups import Groups, end
from tests.kafka.run.hooks import Hooks, copy_held
from tests.tiers import ANSWER_S


def while_looking(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let `act` happen once, between the next look and what comes of it."""
    look = GroupSync.look

    async def held_up(self: GroupSync, view: LedgerView, rules: GroupRules) -> Looked:
        looked = await look(self, view, rules)
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:  # an event loop of its own
            pool.submit(act).result(2 * ANSWER_S)
        return looked

    monkeypatch.setattr(GroupSync, "look", held_up)


def test_a_pass_that_was_held_up_leaves_groups_to_whoever_came_since(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 10, 1: 10})
    groups.synced()
    groups.commit(source, "app", {0: 15, 1: 15})
    while_looking(monkeypatch, lambda: groups.commit(target, "app", {0: 12}))
    done = groups.synced()
    assert (groups.at("app"), groups.why(done)) == ({0: 12, 1: 15}, {"app": {Why.MOVED}}), "a consumer came and left"
    assert done.offsets == 1

    def follow(offset: int, follower: Callable[[], object]) -> Callable[[], object]:
        def act() -> None:
            groups.commit(source, "other", {0: offset})
            follower()

        return act

    groups.commit(source, "other", {0: 5})
    while_looking(monkeypatch, follow(8, groups.synced))
    done = groups.synced()
    assert groups.at("other") == {0: 8}, "another pass knew more"
    assert groups.why(done)["other"] == {Why.MOVED}
    groups.commit(source, "other", {0: 9})
    groups.synced()
    assert groups.at("other") == {0: 9}, "and its memory stays, by which the group is followed"

    def paused() -> None:
        with TargetConnection.of(groups.lab.flow) as connection:
            pause = Pause(topic="", who="ann@desk", why="switch", since_ms=wall_ms())
            connection.run(partial(connection.ledger.append, [pause_record(pause)]))

    with groups.lab.runs() as runs:
        plan = runs.open_run("r1", local_origin(), RunOptions())
        groups.lab.copy(runs, plan)
        groups.commit(source, "other", {0: 11})
        while_looking(monkeypatch, follow(10, groups.ran))
        assert checkpoint(runs, "r1") is None
        assert groups.at("other") == {0: 10}, "a newer run knew better"
        assert runs.report("r1").groups is None
        plan = runs.open_run("r2", local_origin(), RunOptions())
        groups.lab.copy(runs, plan)
        while_looking(monkeypatch, follow(12, paused))
        assert checkpoint(runs, "r2") is None
    while_looking(monkeypatch, follow(13, paused))
    with pytest.raises(StoodBack, match=r"ann@desk .*\(switch\)"):
        groups.sync()
    assert groups.at("other") == {0: 10}


def test_a_sync_between_two_copies_carries_what_was_read(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 10, 1: 10})
    groups.ran()
    groups.commit(source, "app", {0: 15, 1: 20})
    done = groups.between()
    assert (done.groups, done.offsets, done.left) == (1, 2, ())
    assert groups.at("app") == {0: 15, 1: end(target, groups.copy, 1)}
    after = groups.ran()
    assert (after.offsets, after.unchanged) == (0, 2), "the next run finds it done"
    groups.commit(target, "app", {0: 17})
    groups.commit(source, "app", {0: 16})
    done = groups.between()
    assert (groups.why(done), groups.at("app")[0]) == ({"app": {Why.MOVED}}, 17), "it reads on there"


def test_a_sync_beside_a_running_copy_goes_by_what_is_committed(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    send(producer(source, batch_num_messages=5), groups.topic, numbered(20, partitions=1, start=40))
    groups.commit(source, "app", {0: 40})
    beside: list[tuple[GroupOutcome, int, int]] = []

    def sync() -> None:
        with ThreadPoolExecutor(1) as pool:  # an event loop of its own
            done = pool.submit(groups.between).result(2 * ANSWER_S)
        beside.append((done, groups.at("app")[0], end(target, groups.copy, 0)))

    lab = replace(groups.lab, settings={**groups.lab.settings, "ferry.chunk.bytes": "1"})
    with lab.runs() as runs:
        plan = runs.open_run("long", local_origin(), RunOptions())
        attempt = runs.begin(plan, local_origin())
        ends = [end_of(slot, copy_held(runs, plan, slot, Hooks(after={"commit": sync}), attempt))
                for slot in plan.used_slots]  # fmt: skip
        runs.record_outcome(plan, attempt, ends)
    ((done, at, there),) = beside
    assert (done.offsets, done.inexact, at) == (1, {"ahead": 1}, there), "the copied end"
    groups.between()
    assert groups.at("app") == {0: end(target, groups.copy, 0)}
    assert at < groups.at("app")[0], "the copy went on"


def test_of_two_syncs_at_once_no_group_is_lost_or_goes_back(groups: Groups) -> None:
    source = groups.lab.source
    names = [f"app{number}" for number in range(6)]
    for name in names:
        groups.commit(source, name, {0: 10})
    groups.between()
    for name in names:
        groups.commit(source, name, {0: 15})
    ready = Barrier(2)

    def at_once() -> GroupOutcome | None:
        ready.wait(ANSWER_S)
        with suppress(StoodBack):
            return groups.between()
        return None

    with ThreadPoolExecutor(2) as pool:
        found = [one.result(4 * ANSWER_S) for one in [pool.submit(at_once) for _ in range(2)]]
    assert not [one for done in found if done is not None for one in done.failed]
    assert all(groups.at(name) in ({0: 10}, {0: 15}) for name in names)
    done = groups.between()
    assert (done.left, {name: groups.at(name) for name in names}) == ((), {name: {0: 15} for name in names})
