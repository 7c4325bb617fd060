"""Offsets of groups that were on a real target before: kept as snapshots, put back and dropped."""

from __future__ import annotations

import pytest

from ferry.errors import BadInput
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.groups.acts.snapshots import GroupSnapshots
from ferry.features.groups.rules import kept_snapshots
from ferry.features.groups.rules.codec import saved_groups
from ferry.lane import summaries
from ferry.ledger import summary
from ferry.model import Why
from ferry.run.ledger.access import LedgerAccess
from tests.kafka.run.groups import Groups, member

KEPT = "before the drill"
"""The name of a snapshot."""


def test_what_lay_there_before_can_be_had_back(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 15, 1: 15}, metadata="by hand")
    groups.commit(source, "busy", {0: 15})
    groups.commit(source, "moved", {0: 15})
    for group in ("busy", "moved"):
        groups.commit(target, group, {0: 1})
    groups.synced(force=True)
    with GroupSnapshots(groups.lab.flow) as kept:
        (first,) = kept.all()
        assert (first.who, first.groups) == ("", 3)
        named = kept.take(KEPT, "ann@desk")
        assert kept.diff(named.name) == (named, [], [])
        assert {(one.group, one.then, one.now) for one in kept.diff(first.name)[1]} == {
            (groups.name("app"), None, 15),
            (groups.name("busy"), 1, 15),
            (groups.name("moved"), 1, 15),
        }
        groups.commit(source, "app", {0: 4, 1: 4})
        groups.synced()
        groups.commit(target, "moved", {0: 7})
        with member(target, groups.name("busy"), groups.copy):
            assert kept.rollback(first.name, "r1", dry_run=True)[2] is None
            assert groups.at("moved") == {0: 7}
            _, _, done = kept.rollback(first.name, "r1")
            assert done is not None
            assert groups.why(done) == {"app": {Why.CREATED}, "busy": {Why.ACTIVE}, "moved": {Why.MOVED}}
        assert groups.at("app") == {0: 4, 1: 4}
        _, _, done = kept.rollback(KEPT, "r2", frozenset({groups.name("app")}))
        assert done is not None
        assert (done.left, groups.read("app")) == ((), groups.read("app", source) | groups.read("app"))
        assert groups.at("app") == {0: 15, 1: 15}
        assert all(metadata.startswith("by hand") for _, metadata in groups.read("app").values())
        assert groups.why(groups.synced())["app"] == {Why.MOVED}, "what a person put back stays"
        _, _, done = kept.rollback("r2", "r3")
        assert groups.at("app") == {0: 4, 1: 4}, "a rollback is undone like anything else"
        with pytest.raises(BadInput, match=f"'{KEPT}'"):
            kept.take(KEPT, "ann@desk")
        for name, why in ((groups.name("nobody"), "has no offsets"), ("elsewhere", "is excluded")):
            with pytest.raises(BadInput, match=f"'slip' .*{name} {why}"):
                kept.take("slip", "ann@desk", frozenset({groups.name("app"), name}))
        kept.drop(KEPT)
        with pytest.raises(BadInput, match=f"'{KEPT}'.* r2, r3"):
            kept.diff(KEPT)


def test_snapshots_behind_a_summary_are_found_completed_and_dropped(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 0)
    monkeypatch.setattr(summaries, "FIRST_WINDOW", 4)
    flow, source, app = groups.lab.flow, groups.lab.source, groups.name("app")

    def saved(name: str) -> dict[int, tuple[int | None, int | None]]:
        with LedgerAccess(flow) as access:
            found = saved_groups(access.whole(), flow.lane, name).get(app, {})
        return {place.partition: (one.before.offset if one.before else None, one.wrote) for place, one in found.items()}

    def sync(run: str) -> None:
        with groups.lab.runs() as runs:
            assert sync_groups(runs, run)[1] is not None

    groups.commit(source, "app", {0: 4, 1: 4})
    sync("s1")
    groups.commit(source, "app", {0: 15})
    sync("s2")
    with GroupSnapshots(flow) as kept:
        kept.take("drill", "ann@desk")
    groups.lab.micro_run()
    with LedgerAccess(flow) as access:
        view = access.view()
        assert {"s1", "s2", "drill"} <= {key.split('"')[5] for key in view.rolled.left if key.startswith('["offsets"')}
        assert not list(view.of_kind("offsets"))
    groups.commit(source, "app", {0: 17, 1: 6})
    sync("s2")
    assert saved("s2") == {0: (4, 17), 1: (4, 6)}, "what lay there before the first attempt stays"
    with GroupSnapshots(flow) as kept:
        assert {(one.then, one.now) for one in kept.diff("drill")[1]} == {(15, 17), (4, 6)}
        done = kept.rollback("drill", "r1")[2]
        assert done is not None
        assert (done.offsets, groups.at("app")) == (2, {0: 15, 1: 4})
        kept.drop("drill")
    assert (saved("drill"), saved("s1")) == ({}, {0: (None, 4), 1: (None, 4)})
    monkeypatch.setattr(kept_snapshots, "KEPT_SNAPSHOTS", 1)
    groups.lab.micro_run()
    groups.commit(source, "other", {0: 4})
    sync("s3")
    assert (saved("s1"), saved("s2"), saved("r1")) == ({}, {}, {})
