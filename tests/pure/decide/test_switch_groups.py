"""Where groups continue after a switch, and what they read again, skip or keep: tables of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ferry.features.groups.rules.both_ways import BackMaps, OwnMaps
from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, InGap, Translated
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.features.switch.rules.moving import (
    Moving,
    NewSide,
    Placed,
    dealt_notes,
    decide_moving,
    from_memory,
    place_dealt,
    place_group,
    remembered,
    unmapped,
)
from ferry.features.switch.rules.partition_state import copy_end
from ferry.model import (
    Checkpoint,
    CommittedOffset,
    Found,
    GroupKind,
    ListedGroup,
    TopicPartition,
)
from tests.golden import Golden
from tests.pure.decide.test_map_trouble import LAST
from tests.pure.decide.values import place

HERE, COPY, LIVE = place("orders"), place("primary.orders"), place("orders", 1)

Moved = tuple[str | None, int, int]
"""Why a group is not moved; offsets to write, and those that stay."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """An offset map that leads where a test says."""

    source: TopicPartition
    target: TopicPartition
    outcome: Translated
    trouble: str | None = None
    passing: bool = False
    identical: bool = False

    def trouble_at(self, _: int) -> str | None:
        """As Maps."""
        return self.trouble

    def translate(self, _: int) -> Translated:
        """As Maps."""
        return self.outcome

    def passes(self, _: int) -> bool:
        """As OwnMaps."""
        return self.passing


@pytest.mark.parametrize(
    ("forward", "backward", "wanted"),
    [
        (Exact(offset=7), None, ("via", 7)),
        (None, Exact(offset=9), ("back", 9)),
        (Exact(offset=7), InGap(offset=3), ("via", 7)),
        (InGap(offset=90), Exact(offset=9), ("back", 9)),
        # Between what was copied there and what came back from there: the earlier record is the next one.
        (InGap(offset=90), Before(offset=40), ("back", 40)),
        (Before(offset=5), InGap(offset=40), ("via", 5)),
        # All that came back is read, and the flow along which clients move has more.
        (InGap(offset=90), Ahead(offset=50), ("via", 90)),
        # All is read.
        (Exact(offset=95), Ahead(offset=50), ("via", 95)),
        (Ahead(offset=30), Before(offset=40), ("back", 40)),
        (Ahead(offset=95), Ahead(offset=50), ("via", 95)),
    ],
)
def test_who_has_the_record_that_is_next_says_where_a_group_goes_on(
    forward: Translated | None, backward: Translated | None, wanted: tuple[str, int]
) -> None:
    via: Mapping[TopicPartition, OwnMaps] = {HERE: Way(source=HERE, target=HERE, outcome=forward)} if forward else {}
    back: Mapping[TopicPartition, BackMaps] = (
        {HERE: Way(source=HERE, target=HERE, outcome=backward)} if backward else {}
    )
    found, against = place_group({HERE: CommittedOffset(offset=70)}, via, back, {}, {})
    assert (found[HERE].by, found[HERE].offset) == wanted
    assert not against


@pytest.mark.parametrize(
    ("forward", "wanted"),
    [
        (Way(source=HERE, target=HERE, outcome=Exact(offset=70), identical=True), ("via", 70)),
        (Way(source=HERE, target=HERE, outcome=Exact(offset=70)), None),
        (Way(source=HERE, target=HERE, outcome=Ahead(offset=60), identical=True), None),
        (Way(source=HERE, target=HERE, outcome=Exact(offset=70), identical=True, trouble="it is another topic"), None),
    ],
    ids=["the same number", "a translated one", "it has read more", "a trouble of its own"],
)
def test_a_group_with_identical_offsets_keeps_its_number_whatever_the_flow_back_knows(
    forward: Way, wanted: tuple[str, int] | None
) -> None:
    """The topic that the flow back copied from may have been created again since."""
    back = {HERE: Way(source=HERE, target=HERE, outcome=Exact(offset=70), trouble="it was created again")}
    found, against = place_group({HERE: CommittedOffset(offset=70)}, {HERE: forward}, back, {}, {})
    assert ([(one.by, one.offset) for one in found.values()], bool(against)) == (
        ([], True) if wanted is None else ([wanted], False)
    )


def test_a_group_of_a_dealt_topic_is_placed_in_each_partition_and_what_comes_again_is_noted(golden: Golden) -> None:
    there = place("primary.orders", 5)
    one = Checkpoint("g", place("orders", 5), 12, there, 40, Found.AGAIN, read=(5, 7), again=3)
    found = place_dealt([one])
    assert (found[there].offset, found[there].word, found[there].by, found[there].read) == (40, "again", "via", (5, 7))
    golden("\n".join(dealt_notes([one, one._replace(again=1)])))
    assert dealt_notes([one._replace(again=0)]) == []
    (told,) = dealt_notes([one, one._replace(again=None)])
    golden(told, "how many is not known")
    moving = decide_moving("g", found, (), NewSide(alias="backup", listed={}, offsets={}), None)
    memory = remembered(moving, NewSide(alias="backup", listed={}, offsets={}), None, 9)
    assert memory is not None
    assert (memory.offsets[there].wrote, memory.read) == (Wrote(12, 40), {"primary.orders": (5, 7)})
    assert memory.source_of(there) is None, "no partition of the source is this one's"


def test_a_group_begins_in_topics_that_producers_go_on_in() -> None:
    via = {HERE: Way(source=HERE, target=COPY, outcome=Exact(offset=7))}
    starts = {HERE: {HERE: 0}, LIVE: {LIVE: 3}, place("audit"): {place("audit"): 5}}
    found, _ = place_group({HERE: CommittedOffset(offset=70, metadata="m")}, via, {}, starts, {COPY: 9})
    assert {at: (one.offset, one.by, one.word) for at, one in found.items()} == {
        COPY: (9, "via", "log-start"),
        HERE: (0, "start", "start"),
        LIVE: (3, "start", "start"),
    }, "also in partitions that it has not read, not in topics that it does not read"


def test_a_group_is_moved_as_a_whole_or_not_at_all(golden: Golden) -> None:
    wanted = {COPY: Placed(place=COPY, offset=40, word="exact", by="via", source=HERE, source_offset=70)}
    empty = NewSide(alias="backup", listed={}, offsets={})

    def moved(new: NewSide, against: tuple[str, ...] = (), held: HeldGroup | None = None) -> Moved:
        made = decide_moving("g", wanted, against, new, held)
        return made.why, len(made.writes), len(made.kept)

    def at(offset: int) -> NewSide:
        return replace(empty, offsets={"g": {COPY: CommittedOffset(offset=offset)}})

    own = HeldGroup(offsets={COPY: Held(Wrote(90, 60))}, sources={"primary.orders": "orders"}, renewed_ms=0)
    assert moved(empty) == (None, 1, 0)
    assert moved(at(40)) == (None, 0, 0)
    assert moved(at(30)) == (None, 1, 0), "an offset that is not its own is moved on"
    assert moved(at(60)) == (None, 0, 1), "what was read there is not read again"
    assert moved(at(60), held=own) == (None, 1, 0), "Ferry's own moves back with the old cluster's"
    group = ListedGroup(name="g", kind=GroupKind.CLASSIC, state="Stable", protocol_type="consumer")
    for new, against, why in [
        (replace(empty, listed={"g": group}), (), "has members on backup"),
        (replace(empty, pending={"g": {COPY}}), (), "still open"),
        (replace(empty, failed={"g": "no coordinator"}), (), "no coordinator"),
        (empty, ("offsets of orders-0 are not translated",), "are not translated"),
    ]:
        said, writes, _ = moved(new, against)
        assert said is not None
        assert why in said
        golden(said, why)
        assert not writes
    remembered = from_memory(own, {}, {HERE: {HERE: 5}})
    assert {at: one.offset for at, one in remembered.items()} == {COPY: 60, HERE: 5}
    assert remembered[COPY].source == HERE


@pytest.mark.parametrize(
    ("way", "offset"),
    [
        (Way(source=HERE, target=COPY, outcome=Exact(offset=62)), 62),  # it read ahead of the copy then
        (Way(source=HERE, target=COPY, outcome=Ahead(offset=60)), 60),
        (Way(source=HERE, target=COPY, outcome=InGap(offset=63)), 63),
        (Way(source=HERE, target=COPY, outcome=Exact(offset=55)), 60),  # what was written holds
        (Way(source=HERE, target=COPY, outcome=Before(offset=0)), 60),
        # What it has not read yet may lie before what the flow copied: it was born on the new cluster.
        (Way(source=HERE, target=COPY, outcome=Before(offset=90)), 60),
        (Way(source=HERE, target=COPY, outcome=InGap(offset=90), passing=True), 60),
        (Way(source=HERE, target=COPY, outcome=Exact(offset=62), trouble="the copy was created again"), 60),
        (Way(source=HERE, target=LIVE, outcome=Exact(offset=62)), 60),  # the copy has another name by now
    ],
)
def test_a_remembered_offset_leads_where_the_ledger_says_by_now(way: Way, offset: int) -> None:
    held = HeldGroup(offsets={COPY: Held(Wrote(7, 60))}, sources={COPY.topic: HERE.topic}, renewed_ms=1)
    (placed,) = from_memory(held, {HERE: way}, {}).values()
    assert (placed.offset, placed.source_offset) == (offset, 7)


@pytest.mark.parametrize(
    ("there", "end", "again"),
    [
        (None, 5, 0),  # a planned switch: producers come after the group's start
        (None, 25, 20),  # a failover begins before what it may have read as copies
        (None, None, None),
        (5, 25, 20),
        (3, 25, 22),  # the group keeps its own offset there, also below the start
        (9, 25, 16),
        (9, None, None),
    ],
)
def test_a_group_may_read_again_all_that_follows_its_start_in_a_topic_that_producers_continue_in(
    there: int | None, end: int | None, again: int | None
) -> None:
    placed = {LIVE: Placed(place=LIVE, offset=5, word="start", by="start")}
    offsets = {} if there is None else {LIVE: CommittedOffset(offset=there)}
    ends = {} if end is None else {LIVE: end}
    new = NewSide(alias="backup", listed={}, offsets={"g": offsets}, ends=ends)
    assert decide_moving("g", placed, (), new, None).again == again


def test_what_a_group_loses_or_skips_by_its_move_is_noted(golden: Golden) -> None:
    placed = {
        COPY: Placed(place=COPY, offset=40, word="exact", by="via", source=HERE, source_offset=70),
        LIVE: Placed(place=LIVE, offset=5, word="start", by="start"),
    }

    def made(copy: int, live: int, end: int = 100) -> Moving:
        offsets = {COPY: CommittedOffset(offset=copy), LIVE: CommittedOffset(offset=live)}
        new = NewSide(alias="backup", listed={}, offsets={"g": offsets}, ends={COPY: end, LIVE: 100})
        return decide_moving("g", placed, (), new, None, ["so far"])

    assert made(40, 9).notes == ("so far",), "in a topic of the new cluster's own it has read, as it may"
    (_, ahead) = made(60, 5).notes
    golden(ahead, "ahead")
    (_, rewound) = made(30, 5).notes
    golden(rewound, "set back")
    written, unchanged = made(30, 5, end=39), made(40, 5, end=39)
    for beyond in (made(60, 5, end=59), made(40, 101), written, unchanged):
        assert beyond.why is not None
        assert "beyond its end" in beyond.why
        assert not beyond.writes
    assert made(60, 5, end=60).why is None
    assert made(30, 5, end=40).why is None

    committed = {HERE: CommittedOffset(offset=1), LIVE: CommittedOffset(offset=2)}
    way = Way(source=HERE, target=COPY, outcome=Exact(offset=7))
    (note,) = unmapped(committed, {HERE: way}, {})
    golden(note, "no offset")
    assert unmapped(committed, {HERE: way}, {LIVE: way}) == []


@pytest.mark.parametrize(
    ("blank", "again", "named"),
    [({}, 0, 0), ({LIVE: 7}, 7, 1), ({LIVE: 7, HERE: 2}, 9, 1), ({LIVE: None, HERE: 2}, None, 1), ({LIVE: 0}, 0, 0)],
)
def test_partitions_without_a_checkpoint_count_as_read_again_and_are_named(
    blank: dict[TopicPartition, int | None], again: int | None, named: int
) -> None:
    placed = {COPY: Placed(place=COPY, offset=40, word="exact", by="via", source=HERE, source_offset=70)}
    new = NewSide(alias="backup", listed={}, offsets={}, ends={COPY: 40})
    made = decide_moving("g", placed, (), new, None, (), blank)
    assert (made.why, made.again, len(made.notes)) == (None, again, named)
    assert all(str(place) in note for place in blank for note in made.notes)


@pytest.mark.parametrize(
    ("end", "stable", "topic_id", "is_open", "wanted"),
    [
        (900, 900, "id", False, 40),  # a lost run's aborted records are after what was copied
        (900, 900, "", False, 40),
        (30, 30, "id", False, 30),
        (900, 41, "id", False, None),  # a transaction that is open may still be committed
        (900, 900, "id", True, None),  # the partition has its marker, the ledger not yet
        (900, 900, "other", False, 900),
        (900, None, "id", False, None),
        (None, 900, "id", False, None),
    ],
)
def test_groups_read_again_what_was_copied_and_no_aborted_records(
    end: int | None, stable: int | None, topic_id: str, is_open: bool, wanted: int | None
) -> None:
    last = replace(LAST, target_next=40, target_topic_id="id")
    found = copy_end(last, end=end, stable=stable, topic_id=topic_id, is_open=is_open)
    assert found == wanted
    placed = {COPY: Placed(place=COPY, offset=25, word="checkpoint", by="via", source=HERE, source_offset=70)}
    new = NewSide(alias="backup", listed={}, offsets={}, ends={COPY: 900}, read_ends={COPY: found})
    again = decide_moving("g", placed, (), new, None).again
    assert again == (None if wanted is None else wanted - 25)


@pytest.mark.parametrize("change", [{"identical": True}, {"adopted": "MirrorMaker 2"}, {"target_next": None}])
def test_the_log_end_counts_where_a_receipt_does_not_have_the_end_of_the_copy(change: dict[str, Any]) -> None:
    last = replace(LAST, target_next=40, target_topic_id="id")
    assert copy_end(last, end=900, stable=900, topic_id="id", is_open=False) == 40
    assert copy_end(replace(last, **change), end=900, stable=900, topic_id="id", is_open=False) == 900
