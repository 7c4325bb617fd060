"""Which group offsets are written to the target: tables of cases, and random histories of both sides with crashes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.features.groups.rules.checkpoints import RENEW_MS, Decided, TargetGroups, decide_groups
from ferry.features.groups.rules.codec import group_record, parse_group
from ferry.features.groups.rules.offset_map import OffsetMap, Translated
from ferry.features.groups.rules.selection import GroupRules, chosen
from ferry.features.groups.rules.translated import translated
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.ledger.codec import decode_value
from ferry.model import CommittedOffset, Flow, Found, GroupKind, ListedGroup, Segment, TopicPartition, Why
from tests.golden import Golden
from tests.said import codes
from tests.tiers import examples

FLOW = Flow(source="primary", target="backup")
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("primary.orders", 0)
RULES = GroupRules(flow=FLOW, takes_group=lambda name: name != "left-out", takes_topic=lambda topic: topic == "orders")
NOW = 10 * RENEW_MS


@dataclass(frozen=True)
class Mapped:
    """A partition's map, as the I/O loads it."""

    target: TopicPartition
    offsets: OffsetMap
    trouble: str | None = None

    def translate(self, offset: int) -> Translated:
        return self.offsets.translate(offset)

    def trouble_at(self, offset: int) -> str | None:
        return self.trouble


COPIED = OffsetMap(
    [Segment(source_start=10, target_start=0, count=10), Segment(source_start=25, target_start=11, count=5)],
    first=10,
    end=30,
    last=30,
    other=17,
)
"""Source offsets 10 to 29, of which 20 to 24 have no record; the target's last marker lies at 16."""


def listed(name: str, state: str = "Empty", kind: GroupKind = GroupKind.CLASSIC) -> ListedGroup:
    return ListedGroup(name=name, kind=kind, state=state, protocol_type="consumer")


def remembered(source: int, target: int, prior: Wrote | None = None, *, renewed_ms: int = NOW) -> HeldGroup:
    held = Held(Wrote(source, target), prior)
    return HeldGroup(offsets={TARGET: held}, sources={TARGET.topic: SOURCE.topic}, renewed_ms=renewed_ms)


def decided(
    at: int | None,
    there: int | None = None,
    held: HeldGroup | None = None,
    *,
    state: str | None = "Empty",
    metadata: str = "",
    force: bool = False,
    pending: bool = False,
    kind: GroupKind = GroupKind.CLASSIC,
    trouble: str | None = None,
) -> Decided:
    """Of one group `app` at a source offset, and `there` on the target."""
    rules = replace(RULES, force=force)
    offsets = {"app": {} if at is None else {SOURCE: CommittedOffset(offset=at, metadata=metadata)}}
    found = translated(rules, offsets, {SOURCE: Mapped(TARGET, COPIED, trouble)})
    target = TargetGroups(
        listed={} if state is None else {"app": listed("app", state, kind)},
        offsets={"app": {} if there is None else {TARGET: CommittedOffset(offset=there)}},
        pending={"app": frozenset({TARGET})} if pending else {},
    )
    return decide_groups(rules, found, target, {} if held is None else {"app": held}, now_ms=NOW)


def written(found: Decided) -> list[int]:
    return [one.checkpoint.target_offset for writes in found.writes.values() for one in writes]


def why(found: Decided) -> list[Why]:
    return [one.why for one in found.left]


@pytest.mark.parametrize(
    ("at", "to", "outcome"),
    [
        (10, 0, Found.EXACT),
        (19, 9, Found.EXACT),
        (20, 11, Found.GAP),
        (26, 12, Found.EXACT),
        (30, 17, Found.EXACT),
        (31, 17, Found.AHEAD),
        (10**9, 17, Found.AHEAD),
        (9, 0, Found.BEFORE),
    ],
)
def test_each_offset_is_written_where_its_reader_goes_on(at: int, to: int, outcome: Found) -> None:
    (write,) = decided(at, state=None).writes["app"]
    assert (write.checkpoint.target_offset, write.checkpoint.outcome) == (to, outcome)
    assert write.checkpoint.source_offset == at


def test_metadata_of_a_commit_is_kept() -> None:
    (write,) = decided(12, metadata="host-7").writes["app"]
    assert write.checkpoint.metadata == "host-7"


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("nothing is there", decided(15)),
        ("what Ferry wrote is there, the group went on", decided(15, 2, remembered(12, 2))),
        ("the last write did not come through", decided(15, 1, remembered(14, 4, Wrote(11, 1)))),
        ("the group went back at the source", decided(15, 9, remembered(19, 9))),
        ("its records lie lower since they were copied again", decided(15, 9, remembered(15, 9))),
        ("it read on, and all lies lower since", decided(15, 9, remembered(12, 9))),
        ("it expired on the target", decided(15, None, remembered(19, 9))),
        ("somebody moved it, and it is to be forced", decided(15, 3, remembered(19, 9), force=True)),
        ("somebody else wrote it, and it is to be forced", decided(15, 3, force=True)),
        ("what its consumer noted is another", decided(15, 5, remembered(15, 5), metadata="news")),
        ("it would expire soon", decided(15, 5, remembered(15, 5, renewed_ms=NOW - RENEW_MS))),
    ],
)
def test_an_offset_is_written_when(what: str, found: Decided) -> None:
    assert (written(found), why(found)) == ([5], []), what


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (decided(15, 2, state="Stable"), Why.ACTIVE),
        (decided(15, 2, state="Assigning"), Why.ACTIVE),
        (decided(15, 2, state="Stable", force=True), Why.ACTIVE),
        (decided(15, 3), Why.MOVED),
        (decided(15, 3, remembered(12, 2)), Why.MOVED),
        (decided(15, trouble="cut off"), Why.FAILED),
        (decided(15, 2, remembered(12, 2), trouble="cut off"), Why.FAILED),
        (decided(15, 2, remembered(12, 2), trouble="cut off", force=True), Why.FAILED),
        (decided(15, 2, remembered(12, 2), pending=True), Why.PENDING),
        (decided(15, 2, remembered(12, 2), pending=True, force=True), Why.PENDING),
        (decided(15, kind=GroupKind.SHARE), Why.FAILED),
    ],
    ids=[
        "active",
        "another active state",
        "active, and forced",
        "moved by another",
        "moved since Ferry wrote it",
        "failed",
        "failed after a write",
        "failed, and forced",
        "pending",
        "pending, and forced",
        "a share group",
    ],
)
def test_an_offset_is_left_with_a_reason(found: Decided, reason: Why, golden: Golden) -> None:
    assert (written(found), why(found)) == ([], [reason])
    golden(found.left[0].message)


def test_what_is_right_is_not_written_again() -> None:
    for found in (decided(15, 5, remembered(15, 5)), decided(15, 5)):
        assert (written(found), why(found), found.unchanged) == ([], [], 1)


def test_an_offset_that_is_gone_at_the_source_is_reported_and_forgotten_when_it_is_gone_there_too(
    golden: Golden,
) -> None:
    found = decided(None, 5, remembered(15, 5))
    assert (written(found), why(found), found.gone) == ([], [Why.DELETED], {})
    golden(found.left[0].message)
    found = decided(None, None, remembered(15, 5))
    assert (written(found), why(found), found.gone) == ([], [], {"app": frozenset({TARGET})})
    assert why(decided(None, 7, remembered(15, 5))) == [], "somebody else's by now"


def test_a_write_that_was_seen_is_settled_once_and_what_lay_there_before_is_no_sign_of_ferry_then() -> None:
    before = Wrote(10, 0)
    for found in (decided(15, 5, remembered(15, 5, before)), decided(None, 5, remembered(15, 5, before))):
        assert found.settled == {"app": frozenset({TARGET})}
    for found in (
        decided(15, 0, remembered(15, 5, before)),
        decided(15, 5, remembered(15, 5, before), state="Stable"),
        decided(15, 5, remembered(15, 5)),
    ):
        assert found.settled == {}
    assert written(decided(15, 0, remembered(15, 5, before))) == [5], "it may not have come through"
    assert why(decided(15, 0, remembered(15, 5))) == [Why.MOVED], "somebody went back to it"


def not_copied_now(
    rules: GroupRules,
    held: HeldGroup,
    target: TargetGroups,
    *,
    at: int | None = 15,
    denied: frozenset[str] = frozenset(),
) -> Decided:
    """Of a group that stands at the source, or is not seen there, where there is no map to translate it by."""
    offsets = {"app": {} if at is None else {SOURCE: CommittedOffset(offset=at)}}
    found = translated(rules, offsets, {}, {"app": denied} if denied else {})
    return decide_groups(rules, found, target, {"app": held}, now_ms=NOW)


THERE = TargetGroups(listed={"app": listed("app")}, offsets={"app": {TARGET: CommittedOffset(offset=5)}})
NARROWED = replace(RULES, takes_topic=lambda topic: topic == "others")


def test_an_offset_that_is_at_the_source_is_not_said_to_be_gone() -> None:
    found = not_copied_now(NARROWED, remembered(15, 5), THERE)
    assert (why(found), found.gone) == ([], {}), "the flow does not take its topic any more"
    other = TopicPartition("renamed.orders", 0)
    found = decide_groups(
        RULES,
        translated(RULES, {"app": {SOURCE: CommittedOffset(offset=15)}}, {SOURCE: Mapped(other, COPIED)}),
        THERE,
        {"app": remembered(15, 5)},
        now_ms=NOW,
    )
    assert (why(found), [write.checkpoint.target for write in found.writes["app"]]) == ([], [other])


def test_a_topic_that_may_not_be_seen_is_named_and_what_ferry_wrote_of_it_stays_in_memory(golden: Golden) -> None:
    nowhere = TargetGroups(listed={"app": listed("app")}, offsets={"app": {}})
    for target in (THERE, nowhere):
        found = not_copied_now(RULES, remembered(15, 5), target, at=None, denied=frozenset({"orders"}))
        assert (why(found), found.gone) == ([Why.FAILED], {})
        golden(found.left[0].message)
    assert why(not_copied_now(NARROWED, remembered(15, 5), THERE, at=None, denied=frozenset({"orders"}))) == []
    hidden = replace(nowhere, denied={"app": frozenset({TARGET.topic})})
    asked = translated(RULES, {"app": {SOURCE: CommittedOffset(offset=15)}}, {SOURCE: Mapped(TARGET, COPIED)})
    found = decide_groups(RULES, asked, hidden, {"app": remembered(15, 5)}, now_ms=NOW)
    assert (why(found), written(found)) == ([Why.FAILED], [])
    golden(found.left[0].message, "hidden at the target")
    found = not_copied_now(RULES, remembered(15, 5), hidden, at=None)
    assert (why(found), found.gone) == ([], {})


@pytest.mark.parametrize(("state", "pending"), [("Stable", False), ("Empty", True)])
def test_what_ferry_wrote_stays_in_memory_where_the_target_does_not_tell_the_offset(state: str, pending: bool) -> None:
    found = decided(None, None, remembered(15, 5), state=state, pending=pending)
    assert (why(found), found.gone) == ([], {})


def test_a_partition_of_which_nothing_is_copied_is_said_and_one_of_another_topic_is_not() -> None:
    offsets = {"app": {place: CommittedOffset(offset=1) for place in (SOURCE, TopicPartition("private", 0))}}
    found = translated(RULES, offsets, {})
    decided_ = decide_groups(RULES, found, TargetGroups(listed={}, offsets={}), {}, now_ms=NOW)
    assert [(one.why, one.place) for one in decided_.left] == [(Why.NOT_COPIED, SOURCE)]


def test_an_offset_in_a_merged_topic_is_left_also_where_ferry_wrote_it_once() -> None:
    rules = replace(RULES, merges=lambda _: True, force=True)
    places = (SOURCE, TopicPartition("orders", 1), TopicPartition("private", 0))
    offsets = {"app": {place: CommittedOffset(offset=15) for place in places}}
    found = translated(rules, offsets, {SOURCE: Mapped(TARGET, COPIED)})
    assert found.checkpoints == {}, "nor for MirrorMaker 2's topic"
    for held in ({}, {"app": remembered(12, 5)}):
        done = decide_groups(rules, found, THERE, held, now_ms=NOW)
        assert (written(done), [(one.group, one.why) for one in done.left]) == ([], [("app", Why.MERGED)])
        assert codes([done.left[0].message]) == ["group.merged"]


def test_groups_are_chosen_by_filter_and_kind() -> None:
    kinds = {"app": GroupKind.CLASSIC, "new": GroupKind.CONSUMER, "flows": GroupKind.STREAMS, "shared": GroupKind.SHARE}
    there = {name: listed(name, kind=kind) for name, kind in kinds.items()}
    there |= {name: listed(name) for name in ("left-out", "ferry.primary->backup.live")}
    taken, left = chosen(RULES, there)
    assert [group.name for group in taken] == ["app", "new"]
    assert [(one.group, one.why) for one in left] == [("flows", Why.KIND), ("shared", Why.KIND)]
    taken, left = chosen(replace(RULES, only=frozenset({"app"})), there)
    assert ([group.name for group in taken], left) == (["app"], [])


SAVED = st.builds(
    HeldGroup,
    offsets=st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["a.x", "a.y"]), st.integers(0, 5)),
        st.builds(
            Held,
            st.builds(Wrote, st.integers(0, 2**62), st.integers(0, 2**62)),
            st.none() | st.builds(Wrote, st.integers(0, 9), st.integers(0, 9)),
        ),
        min_size=1,
    ),
    sources=st.just({"a.x": "x", "a.y": "y"}),
    renewed_ms=st.integers(0, 2**42),
)


@given(SAVED)
def test_what_the_ledger_remembers_of_a_group_is_read_as_it_was_written(held: HeldGroup) -> None:
    record = group_record("live", "app", held, run="r", at_ms=1)
    read = parse_group(decode_value(record.value or b"", "record"))
    topics = {place.topic for place in held.offsets}
    assert read == replace(held, sources={name: held.sources[name] for name in topics})


@dataclass(frozen=True)
class Sync:
    """A pass of Ferry's; `through`: it came to the writing, and did not end between the ledger and the target."""

    through: bool
    force: bool = False
    active: bool = False


@dataclass(frozen=True)
class Commits:
    """The group at the source."""

    offset: int


@dataclass(frozen=True)
class Grows:
    """The copy."""

    more: int


@dataclass(frozen=True)
class Moves:
    """Somebody else, the group on the target."""

    offset: int


@dataclass(frozen=True)
class Restores:
    """Somebody puts back on the target what lay there before Ferry's last write."""


@dataclass(frozen=True)
class Expires:
    """The offset on the target."""


@dataclass(frozen=True)
class Cut:
    """The target's log, behind an unclean election; what was lost is copied again with what is new."""

    kept: int


@dataclass(frozen=True)
class Recreated:
    """The target's topic, by hand: its groups' offsets went with it. All is copied again with what is new."""


SYNC = st.builds(Sync, through=st.booleans(), force=st.just(False)) | st.builds(
    Sync, through=st.booleans(), force=st.booleans(), active=st.booleans()
)
STEPS = st.tuples(
    st.builds(Commits, st.integers(0, 12))
    | st.builds(Grows, st.integers(1, 6))
    | st.builds(Moves, st.integers(0, 12))
    | st.just(Restores())
    | st.just(Expires())
    | st.builds(Cut, st.integers(0, 12))
    | st.just(Recreated()),
    SYNC,
)


@settings(max_examples=examples(300))
@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_ferry_follows_the_source_and_writes_over_nobody(steps: list[tuple[object, Sync]]) -> None:
    """Each chunk of the copy ends with a marker, so what is copied again, in one chunk, lies lower than before."""
    history = History()
    for event, sync in steps:
        history.happens(event)
        history.syncs(sync)


class History:
    """One group on both sides; `theirs` is whether the target's offset is somebody else's, as only the test knows."""

    def __init__(self) -> None:
        self.source = 0
        self.copies: list[int] = []
        """Where each source record lies on the target."""
        self.end = 0
        self.lost: int | None = None
        """What is left of `copies`, when the target lost some and a run has not copied it again."""
        self.target: int | None = None
        self.earlier: int | None = None
        self.theirs = False
        self.held: dict[str, HeldGroup] = {}
        self.seen = False
        """Whether a pass has seen its last write on the target."""

    def happens(self, event: object) -> None:
        match event:
            case Commits(offset=offset):
                self.source = offset
            case Grows(more=more):
                again, count = self.copies[self.lost :] if self.lost is not None else [], more
                if self.lost is not None:
                    del self.copies[self.lost :]
                    self.end = self.copies[-1] + 2 if self.copies else 0
                    self.lost = None
                    count += len(again)
                self.copies += range(self.end, self.end + count)
                self.end += count + 1
            case Moves(offset=offset):
                self.theirs = self.theirs or offset != self.target
                self.target = offset
            case Restores():
                if self.earlier is not None:
                    self.happens(Moves(self.earlier))
            case Expires():
                self.target, self.theirs = None, False
            case Cut(kept=kept):
                self.loses(kept)
            case Recreated():
                self.target, self.theirs = None, False
                self.loses(0)

    def loses(self, kept: int) -> None:
        before = len(self.copies) if self.lost is None else self.lost
        if kept < before:
            self.lost = kept

    def look(self, sync: Sync) -> Decided:
        copied = OffsetMap(
            [Segment(source_start=at, target_start=to, count=1) for at, to in enumerate(self.copies)],
            first=0,
            end=len(self.copies),
            last=len(self.copies),
            other=self.end,
        )
        mapped = Mapped(TARGET, copied, None if self.lost is None else "it lost records")
        rules = replace(RULES, force=sync.force)
        found = translated(rules, {"app": {SOURCE: CommittedOffset(offset=self.source)}}, {SOURCE: mapped})
        offsets = {} if self.target is None else {TARGET: CommittedOffset(offset=self.target)}
        state = listed("app", "Stable" if sync.active else "Empty")
        return decide_groups(
            rules, found, TargetGroups(listed={"app": state}, offsets={"app": offsets}), self.held, now_ms=NOW
        )

    def syncs(self, sync: Sync) -> None:
        right = self.copies[self.source] if self.source < len(self.copies) else self.end
        if self.held and not sync.active:
            self.seen = self.seen or self.target == right_of(self.held["app"].offsets[TARGET])
        looked = self.look(sync)
        if looked.settled:
            wrote = self.held["app"].offsets[TARGET].wrote
            self.held["app"] = remembered(wrote.source, wrote.target)
        writes = [write for group in looked.writes.values() for write in group]
        for write in writes:
            one = write.checkpoint
            assert self.lost is None, "nothing by a map that does not hold"
            assert not sync.active, "members keep what is theirs"
            assert sync.force or not self.is_strange(), "nobody's offset is written over"
            assert one.target_offset == right, "never ahead of what is copied, and of what was read"
            held = Held(Wrote(one.source_offset, one.target_offset), write.prior)
            self.held["app"] = replace(remembered(0, 0), offsets={TARGET: held})
            self.seen = False
            if sync.through:
                self.earlier = self.target
                self.target, self.theirs = one.target_offset, False
        if sync.through and not sync.active and self.lost is None and not self.is_strange():
            assert self.target == right, "what is Ferry's follows the source"
            assert self.look(Sync(through=True)).writes == {}, "a second pass has nothing to do"

    def is_strange(self) -> bool:
        """Somebody put it where Ferry never meant to put it; what he put just there cannot be told from Ferry's."""
        held = self.held["app"].offsets[TARGET] if self.held else None
        return self.theirs and self.target != right_of(held) and (self.seen or self.target != before(held))


def right_of(held: Held | None) -> int | None:
    return None if held is None else held.wrote.target


def before(held: Held | None) -> int | None:
    return None if held is None or held.prior is None else held.prior.target
