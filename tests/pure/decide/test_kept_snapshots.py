"""Which snapshots are dropped when a run or a sync takes one."""

from __future__ import annotations

from ferry.cli.identity import new_run
from ferry.features.groups.rules.codec import Snapshot
from ferry.features.groups.rules.kept_snapshots import KEPT_SNAPSHOTS, surplus

SYNCS = [new_run("groups") for _ in range(12)]
ROLLBACK = new_run("rollback")
RUNS = [f"scheduled__{number}" for number in range(12)]


def kept(*names: str, who: str = "") -> list[Snapshot]:
    return [Snapshot(name=name, at_ms=at, who=who) for at, name in enumerate(names)]


def test_the_newest_of_runs_and_the_newest_of_all_others_are_kept() -> None:
    assert KEPT_SNAPSHOTS == 10
    both = [name for pair in zip(RUNS, SYNCS, strict=True) for name in pair]
    assert surplus(kept(*both), "scheduled__12") == [*RUNS[:3], *SYNCS[:2]]
    assert surplus(kept(*both), ROLLBACK) == [*RUNS[:2], *SYNCS[:3]]
    assert surplus(kept(*RUNS[:9]), "scheduled__12") == []
    assert surplus(kept(*RUNS[:10]), ROLLBACK) == []


def test_a_second_attempt_at_a_run_does_not_count_twice() -> None:
    assert surplus(kept(*RUNS[:10]), RUNS[9]) == []
    assert surplus(kept(*RUNS[:10]), RUNS[0]) == []


def test_named_snapshots_stay() -> None:
    assert surplus([*kept(*RUNS, who="ann@desk"), *kept(*RUNS[:2], who="switch")], "scheduled__12") == []
