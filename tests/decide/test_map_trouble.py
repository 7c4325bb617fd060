"""When an offset map is not to be believed: what the clusters show against the last receipt."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ferry.decide.groups.map_trouble import Present, map_trouble
from ferry.decide.groups.offset_map import Exact, LogStart, OffsetMap
from ferry.errors import Refused
from ferry.model import Flow, Gap, Receipt, RefusalKind, Segment, TopicPartition
from ferry.run.groups.offset_maps import PartitionMap

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
    adopted = replace(older, start=30, records=0, target_next=-1, adopted="mm2")
    assert map_trouble(adopted, (), replace(NOW, target_end=0)) is None


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(NOW, source_topic_id="S2"), r"source topic orders was created again .*S1, now S2.*topic-recreated"),
        (replace(NOW, target_topic_id="T2"), r"primary\.orders was created again .*T1, now T2.*target-changed"),
        (replace(NOW, target_end=35), r"primary\.orders-0 ends at offset 35 and was written up to 36.*target-changed"),
        (replace(UNKNOWN, target_end=0), r"ends at offset 0 and was written up to 36"),
        (replace(NOW, source_cluster_id="C2"), r"primary now leads to cluster C2, .* from C1.*cluster-changed"),
    ],
)
def test_what_the_clusters_contradict_is_named(now: Present, said: str) -> None:
    found = map_trouble(LAST, (), now)
    assert found is not None
    assert re.search(said, found), found
    assert found.startswith("offsets of orders-0 are not translated, for ")


def test_a_lane_that_went_on_behind_a_new_source_topic_says_so_before_its_first_receipt() -> None:
    now = replace(NOW, source_topic_id="S2")
    assert map_trouble(LAST, (RESTARTED,), now) is None
    for other in (
        replace(RESTARTED, topic_id="S1"),
        replace(RESTARTED, generation=4),
        replace(RESTARTED, void_from=-1),
    ):
        assert map_trouble(LAST, (other,), now) is not None
    assert map_trouble(LAST, (RESTARTED,), replace(now, target_topic_id="T2")) is not None


def test_a_map_gives_nothing_before_the_targets_log_start_and_nothing_at_all_in_trouble() -> None:
    offsets = OffsetMap([Segment(source_start=0, target_start=0, count=20)], first=0, end=20, last=20, other=21)
    made = PartitionMap(source=SOURCE, target=TARGET, offsets=offsets, log_start=12)
    assert [made.translate(at) for at in (4, 11, 12)] == [LogStart(offset=12), LogStart(offset=12), Exact(offset=12)]
    assert replace(made, log_start=22).translate(20) == LogStart(offset=22), "deleted up to its end"
    assert replace(made, log_start=None).translate(4) == Exact(offset=4)
    assert replace(made, backward=True).translate(4) == Exact(offset=4), "it leads to the source"
    with pytest.raises(Refused, match="cut off"):
        replace(made, trouble="cut off").translate(4)
