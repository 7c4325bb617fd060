"""Going back to saved offsets: what is written, what is left, and that snapshots are read as they were written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.checkpoints import TargetGroups
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    dropped_snapshots,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.features.groups.rules.rollback import Rollback, decide_rollback, differences, held_after, held_before
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.ledger.ledger import fold
from ferry.model import CommittedOffset, GroupKind, ListedGroup, TopicPartition, Why
from tests.golden import Golden
from tests.pure.decide.values import lying

PLACE = TopicPartition("primary.orders", 0)


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset=offset, metadata="m")


def rollback(
    before: int | None,
    wrote: int | None,
    now: int | None,
    held: Held | None = None,
    *,
    state: str = "Empty",
    force: bool = False,
    trouble: str | None = None,
) -> Rollback:
    """Of one group `app`."""
    listed = ListedGroup(name="app", kind=GroupKind.CLASSIC, state=state, protocol_type="")
    target = TargetGroups(
        listed={"app": listed},
        offsets={"app": {} if now is None else {PLACE: CommittedOffset(offset=now)}},
        failed={} if trouble is None else {"app": trouble},
    )
    saved = {"app": {PLACE: Saved(None if before is None else at(before), wrote)}}
    own = {} if held is None else {"app": HeldGroup(offsets={PLACE: held}, sources={}, renewed_ms=0)}
    return decide_rollback("backup", saved, target, own, force=force)


@pytest.mark.parametrize(
    "found",
    [
        rollback(5, 9, 9),
        rollback(5, 9, 12, Held(Wrote(12, 12), None)),
        rollback(5, 9, 11, Held(Wrote(12, 12), Wrote(11, 11))),
        rollback(5, None, 12, Held(Wrote(12, 12), None)),
        rollback(5, 9, None),
        rollback(5, 9, 7, force=True),
    ],
    ids=["what the run wrote", "what a later run wrote", "a write that came to nothing", "named", "expired", "forced"],
)
def test_an_offset_is_written_back(found: Rollback) -> None:
    assert (found.writes, found.left) == ({"app": {PLACE: at(5)}}, [])


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(rollback(5, 9, 7), Why.MOVED, id="moved since"),
        pytest.param(rollback(5, 9, 9, state="Stable"), Why.ACTIVE, id="active"),
        pytest.param(rollback(5, 9, 9, state="Stable", force=True), Why.ACTIVE, id="active, and forced"),
        pytest.param(rollback(None, 9, 9), Why.CREATED, id="no offset before"),
        pytest.param(rollback(None, 9, 9, force=True), Why.CREATED, id="no offset before, and forced"),
        pytest.param(
            rollback(5, 9, 9, trouble="group app may not be seen"),
            Why.FAILED,
            id="not to be seen",
        ),
    ],
)
def test_an_offset_is_left(found: Rollback, why: Why, golden: Golden) -> None:
    assert found.writes == {}
    (left,) = found.left
    assert left.why is why
    golden(left.message)


def test_what_is_there_already_is_counted() -> None:
    for found in (rollback(5, 9, 5), rollback(None, 9, None)):
        assert (found.writes, found.left, found.unchanged) == ({}, [], 1)


def test_differences_are_told_by_group_and_partition() -> None:
    saved = {"a": {PLACE: Saved(at(5), None)}, "b": {PLACE: Saved(None, 7)}, "c": {PLACE: Saved(at(1), None)}}
    there = TargetGroups(listed={}, offsets={"a": {PLACE: at(6)}, "b": {PLACE: at(7)}, "c": {PLACE: at(1)}})
    found, left = differences("backup", saved, there)
    assert ([(one.group, one.then, one.now) for one in found], left) == ([("a", 5, 6), ("b", None, 7)], [])
    found, left = differences("backup", {"a": saved["a"]}, TargetGroups(listed={}, offsets={}))
    assert ([(one.then, one.now) for one in found], left) == ([(5, None)], [])


OTHER = TopicPartition("primary.users", 3)


@pytest.mark.parametrize(
    ("hidden", "place", "why"),
    [
        ({"failed": {"app": "hidden"}}, None, Why.FAILED),
        ({"denied": {"app": frozenset({PLACE.topic})}}, None, Why.FAILED),
        ({"pending": {"app": frozenset({PLACE})}}, PLACE, Why.PENDING),
    ],
    ids=["the group", "a topic", "a transaction"],
)
def test_what_could_not_be_read_is_no_difference_and_not_written_over(
    hidden: dict[str, Any], place: TopicPartition | None, why: Why
) -> None:
    target = TargetGroups(listed={}, offsets={"app": {OTHER: at(1)}}, **hidden)
    saved = {"app": {PLACE: Saved(at(5), 9), OTHER: Saved(at(2), 1)}}
    found, left = differences("backup", saved, target)
    assert [(one.place, one.now) for one in found] == ([] if "failed" in hidden else [(OTHER, 1)])
    assert [(one.group, one.place, one.why) for one in left] == [("app", place, why)]
    decided = decide_rollback("backup", saved, target, {}, force=True)
    assert (decided.writes, decided.unchanged) == ({}, 0)
    assert [(one.place, one.why) for one in decided.left] == [(place, why)]


OFFSETS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a.x", "a.y"]), st.integers(0, 5)),
    st.builds(
        Saved,
        st.none()
        | st.builds(CommittedOffset, offset=st.integers(0, 2**62), metadata=st.text(), leader_epoch=st.integers(-1, 9)),
        st.none() | st.integers(0, 2**62),
    ),
    min_size=1,
)


@given(OFFSETS, OFFSETS)
def test_a_snapshot_is_read_as_it_was_written_and_drops_whole(
    one: dict[TopicPartition, Saved], other: dict[TopicPartition, Saved]
) -> None:
    records = [
        saved_record("live", "s", "app", one),
        saved_record("live", "s", "web", other),
        snapshot_record("live", Snapshot(name="s", at_ms=2, who="ann@desk", groups=2)),
        saved_record("live", "t", "app", other),
        snapshot_record("live", Snapshot(name="t", at_ms=1, groups=1)),
    ]
    view = fold(lying(*records), 99)
    assert saved_groups(view, "live", "s") == {"app": one, "web": other}
    assert list(snapshots(view, "live")) == ["s", "t"], "as the ledger has them, not by clocks"
    assert snapshots(view, "other") == {}
    left = fold(lying(*records, *dropped_snapshots(view, "live", ["s"])), 99)
    assert (list(snapshots(left, "live")), saved_groups(left, "live", "s")) == (["t"], {})
    assert saved_groups(left, "live", "t") == {"app": other}


@pytest.mark.parametrize(
    ("held", "there", "kept"),
    [
        pytest.param(Held(Wrote(12, 12)), 12, Held(Wrote(12, 12)), id="as written"),
        pytest.param(Held(Wrote(12, 12), Wrote(11, 11)), 12, Held(Wrote(12, 12)), id="written, not seen yet"),
        pytest.param(Held(Wrote(12, 12), Wrote(11, 11)), 11, Held(Wrote(11, 11)), id="not written"),
        pytest.param(Held(Wrote(12, 12), Wrote(11, 11)), 9, None, id="of another client"),
        pytest.param(Held(Wrote(12, 12)), None, None, id="gone"),
        pytest.param(None, 9, None, id="never written"),
    ],
)
def test_until_its_commit_a_rollback_keeps_what_ferry_has_on_the_target(
    held: Held | None, there: int | None, kept: Held | None
) -> None:
    other = TopicPartition("primary.orders", 1)
    both = {other: Held(Wrote(1, 1), Wrote(2, 2))}
    own = HeldGroup(offsets=both if held is None else {PLACE: held, **both}, sources={}, renewed_ms=7)
    before = held_before(own, [PLACE], {} if there is None else {PLACE: at(there)})
    assert before.offsets == (both if kept is None else {PLACE: kept, **both})
    assert (before.renewed_ms, held_after(before, []).offsets) == (7, {})
    assert held_after(before, [other, OTHER]).offsets == both
