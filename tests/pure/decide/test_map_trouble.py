"""When an offset map is not to be believed: what the clusters show against the last receipt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import Refused
from ferry.features.groups.acts.offset_maps import PartitionMap
from ferry.features.groups.rules.map_check import Cut, Present, map_cut, map_trouble
from ferry.features.groups.rules.offset_map import Before, Exact, InGap, LogStart, OffsetMap
from ferry.model import Flow, Gap, Receipt, RefusalKind, Segment, TopicPartition
from tests.golden import Golden

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("primary.orders", 0)
LAST = Receipt(
    flow=Flow(source="primary", target="backup"),
    lane="live",
    run="r",
    generation=4,
    slot=0,
    source=SOURCE,
    target=TARGET,
    start=20,
    end=30,
    target_next=36,
    segments=(),
    records=10,
    bytes=1,
    batches=1,
    digest="",
    at_ms=1,
    source_topic_id="S1",
    target_topic_id="T1",
    source_cluster_id="C1",
)
NOW = Present(source_cluster_id="C1", source_topic_id="S1", target_topic_id="T1", target_end=37)
UNKNOWN = Present()
RESTARTED = Gap(
    source=SOURCE,
    start=30,
    end=0,
    why=RefusalKind.TOPIC_RECREATED,
    run="r2",
    at_ms=2,
    generation=5,
    void_from=0,
    topic_id="S2",
)


def test_a_map_holds_while_both_sides_are_what_was_copied_or_nothing_is_known_of_them() -> None:
    assert map_trouble(LAST, (), NOW) is None
    assert map_trouble(LAST, (), replace(NOW, target_end=36)) is None, "a marker that retention took is no record"
    assert map_trouble(LAST, (), UNKNOWN) is None
    older = replace(LAST, source_topic_id="", target_topic_id="", source_cluster_id="")
    assert map_trouble(older, (), NOW) is None, "brokers without topic ids"
    adopted = replace(older, start=30, records=0, target_next=None, adopted="mm2")
    assert map_trouble(adopted, (), replace(NOW, target_end=0)) is None


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(replace(NOW, source_topic_id="S2"), id="another source topic"),
        pytest.param(replace(NOW, target_topic_id="T2"), id="another target topic"),
        pytest.param(replace(NOW, target_end=35), id="a shorter target"),
        pytest.param(replace(NOW, target_end=90, target_cut=35), id="a target that was cut"),
        pytest.param(replace(UNKNOWN, target_end=0), id="an empty target"),
        pytest.param(replace(NOW, source_cluster_id="C2"), id="another source cluster"),
    ],
)
def test_what_the_clusters_contradict_is_named(now: Present, golden: Golden) -> None:
    found = map_trouble(replace(LAST, target_epoch=4), (), now)
    assert found is not None
    golden(found)


def test_a_lane_that_went_on_behind_a_new_source_topic_says_so_before_its_first_receipt() -> None:
    now = replace(NOW, source_topic_id="S2")
    assert map_trouble(LAST, (RESTARTED,), now) is None
    for other in (
        replace(RESTARTED, topic_id="S1"),
        replace(RESTARTED, generation=4),
        replace(RESTARTED, void_from=None),
    ):
        assert map_trouble(LAST, (other,), now) is not None
    assert map_trouble(LAST, (RESTARTED,), replace(now, target_topic_id="T2")) is not None


def test_a_map_gives_nothing_before_the_log_start_that_it_leads_to_and_nothing_at_all_in_trouble() -> None:
    offsets = OffsetMap([Segment(source_start=0, target_start=0, count=20)], first=0, end=20, last=20, other=21)
    made = PartitionMap(source=SOURCE, target=TARGET, offsets=offsets, log_start=12)
    assert [made.translate(at) for at in (4, 11, 12)] == [LogStart(offset=12), LogStart(offset=12), Exact(offset=12)]
    assert replace(made, log_start=22).translate(20) == LogStart(offset=22), "deleted up to its end"
    assert replace(made, log_start=None).translate(4) == Exact(offset=4)
    back = replace(made, backward=True)
    assert (back.translate(4), back.translate(12)) == (LogStart(offset=12), Exact(offset=12)), "the source's, then"
    given_up = replace(made, pruned=((0, 8),))
    assert given_up.translate(4) == Before(offset=12, pruned=8), "both sides have deleted it, one of them more"
    assert replace(given_up, log_start=8).translate(4) == Before(offset=8, pruned=8)
    with pytest.raises(Refused, match="shortened"):
        replace(made, trouble="shortened").translate(4)


def test_a_log_that_was_cut_ends_the_map_there_until_a_run_has_decided_how_to_go_on(golden: Golden) -> None:
    cut = map_cut(LAST, (), 24)
    assert cut is not None
    golden(cut.why)
    went_back = replace(RESTARTED, end=24, void_from=24)
    assert map_cut(LAST, (went_back,), 24) is None, "its map holds nothing from there on"
    assert map_cut(LAST, (went_back,), 26) is None
    for other in (
        replace(went_back, generation=4),
        replace(went_back, void_from=None),
        replace(went_back, void_from=25),
    ):
        assert map_cut(LAST, (other,), 24) == cut


def test_no_offset_leads_past_a_cut_and_none_comes_from_behind_it() -> None:
    """Copied are 0 to 9 and 14 to 29; 10 to 13 were markers or aborted. The source was cut at 14, then at 20."""
    segments = [Segment(source_start=0, target_start=0, count=10), Segment(source_start=14, target_start=11, count=16)]
    offsets = OffsetMap(segments, first=0, end=30, last=30, other=28)
    made = PartitionMap(source=SOURCE, target=TARGET, offsets=offsets, cut=Cut(at=20, why="cut"))
    assert [made.translate(at) for at in (9, 12, 19)] == [Exact(offset=9), InGap(offset=11), Exact(offset=16)]
    assert [made.trouble_at(at) for at in (20, 29, 30, 99)] == ["cut"] * 4
    with pytest.raises(Refused, match="cut"):
        made.translate(20)
    before = replace(made, cut=Cut(at=14, why="cut"))
    assert [before.trouble_at(at) for at in (9, 10, 13, 14)] == [None, "cut", "cut", "cut"], "12 leads to a lost record"
    back = OffsetMap(
        [Segment(source_start=s.target_start, target_start=s.source_start, count=s.count) for s in segments],
        first=0,
        end=27,
        last=28,
        other=30,
    )
    returning = replace(made, offsets=back, backward=True)
    assert [returning.trouble_at(at) for at in (9, 16, 17, 28)] == [None, None, "cut", "cut"]
    assert replace(made, trouble="gone").trouble_at(0) == "gone"
