"""The bytes of MirrorMaker 2's internal topics, against its own classes."""

from hypothesis import given
from hypothesis import strategies as st

from ferry.model import GroupCheckpoint, Heartbeat, OffsetSync, TopicPartition
from tests.golden import Golden
from tests.kafka.mirror.mirror_oracle import read, written
from tests.pure.wire.test_mirror_records import CHECKPOINTS, HEARTBEATS, SYNCS, record_of


@given(things=st.lists(CHECKPOINTS | HEARTBEATS | SYNCS, min_size=1, max_size=20))
def test_kafkas_classes_write_the_same_bytes(things: list[GroupCheckpoint | Heartbeat | OffsetSync]) -> None:
    assert [record_of(thing) for thing in things] == written(things)


def test_kafkas_classes_read_it(golden: Golden) -> None:
    place = TopicPartition(topic="a.orders", partition=3)
    checkpoint = GroupCheckpoint(group="g", target=place, upstream=10, downstream=8, metadata="m")
    golden(read("checkpoint", record_of(checkpoint)))
    heartbeat = Heartbeat(source_alias="a", target_alias="b", at_ms=5)
    assert (
        read("heartbeat", record_of(heartbeat)) == "Heartbeat{sourceClusterAlias=a, targetClusterAlias=b, timestamp=5}"
    )
    sync = OffsetSync(source=place, upstream=7, downstream=6)
    assert (
        read("sync", record_of(sync)) == "OffsetSync{topicPartition=a.orders-3, upstreamOffset=7, downstreamOffset=6}"
    )
