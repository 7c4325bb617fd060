"""A record and its copy, on real brokers: what is there on each side, and why a side has nothing."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.errors import BadInput
from ferry.features.records.acts.one_record import look_at
from ferry.features.records.rules.one_record import BothSides, Lack, StampedBy
from ferry.features.records.rules.page import RecordStory, record_story
from ferry.features.records.rules.part_text import Style
from ferry.model import TopicPartition
from tests.harness import Lab, create_topic, new_alias, producer
from tests.tiers import ANSWER_S

JSON = b'{"n":1.10,"list":[1,2]}'
HEADERS: list[tuple[str, str | bytes | None]] = [("trace", b"\xff\xfe"), ("none", None), ("a", b"1")]
PLAIN, TOMBSTONE, ABORTED, ABORT_MARKER, LATER, LATER_MARKER, OPEN = range(7)
"""Source offsets: what is at each."""


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow of one topic, which is not there yet."""
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))


@pytest.fixture
def filled(lab: Lab) -> Lab:
    """A flow that has copied a topic with a tombstone and an aborted transaction; then one begins that stays open."""
    (topic,) = lab.topics
    create_topic(lab.source, topic)
    plain = producer(lab.source)
    plain.produce(topic, key=b"k", value=JSON, headers=HEADERS, partition=0, timestamp=1_700_000_000_000)
    plain.flush(ANSWER_S)
    plain.produce(topic, key=b"k", value=None, partition=0)
    plain.flush(ANSWER_S)
    writer = producer(lab.source, transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    for commits in (False, True):
        writer.begin_transaction()
        writer.produce(topic, key=b"k", value=b"in a transaction", partition=0)
        writer.flush(ANSWER_S)
        (writer.commit_transaction if commits else writer.abort_transaction)(ANSWER_S)
    lab.micro_run()
    return lab


def looked(lab: Lab, offset: int, *, backward: bool = False) -> BothSides:
    (topic,) = lab.topics
    place = TopicPartition(topic=lab.target_topic(topic) if backward else topic, partition=0)
    return look_at(lab.flow, place, offset, backward=backward, patience_s=ANSWER_S)


def story(lab: Lab, found: BothSides, style: Style = "text") -> RecordStory:
    return record_story(found, lab.alias, lab.target_alias, style)


def test_a_record_is_shown_next_to_its_copy_both_ways(filled: Lab) -> None:
    found = looked(filled, PLAIN)
    assert (found.source.lack, found.target.lack, found.differences, found.transformed) == (None, None, (), False)
    shown = story(filled, found, "json").target.record
    assert shown is not None
    assert (shown.timestamp_ms, shown.stamped_by) == (1_700_000_000_000, StampedBy.CREATE)
    assert (shown.value.text, shown.value.size) == (
        '{\n  "n": 1.10,\n  "list": [\n    1,\n    2\n  ]\n}',
        len(JSON),
    )
    headers = [(one.name.text, one.value.style, one.value.size) for one in shown.headers]
    assert headers == [("trace", "hex", 2), ("none", "json", None), ("a", "json", 1)]
    assert found.target.offset is not None
    back = looked(filled, found.target.offset, backward=True)
    assert (back.source.record, back.source.offset) == (found.source.record, PLAIN)


def test_a_tombstone_is_null_on_both_sides(filled: Lab) -> None:
    shown = story(filled, looked(filled, TOMBSTONE))
    for side in (shown.source, shown.target):
        assert side.record is not None
        assert (side.record.value.text, side.record.value.size) == (None, None)
    assert shown.differences == ()


def test_what_is_not_a_committed_record_has_its_reason(filled: Lab) -> None:
    reasons = {
        ABORTED: (Lack.ABORTED, Lack.LEFT_OUT),
        ABORT_MARKER: (Lack.CONTROL, Lack.LEFT_OUT),
        LATER: (None, None),
        99: (Lack.NOT_WRITTEN, Lack.NOT_COPIED),
    }
    found = {offset: looked(filled, offset) for offset in reasons}
    assert {offset: (one.source.lack, one.target.lack) for offset, one in found.items()} == reasons
    assert found[99].source.bounds == (0, LATER_MARKER + 1)


def test_a_record_that_is_not_copied_yet_or_not_committed(filled: Lab) -> None:
    (topic,) = filled.topics
    writer = producer(filled.source, transactional_id=topic)
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    writer.produce(topic, key=b"k", value=b"open", partition=0)
    writer.flush(ANSWER_S)
    found = looked(filled, OPEN)
    assert (found.source.lack, found.target.lack) == (Lack.OPEN, Lack.NOT_COPIED)
    writer.commit_transaction(ANSWER_S)
    found = looked(filled, OPEN)
    assert found.source.record is not None
    assert (found.source.lack, found.target.lack) == (None, Lack.NOT_COPIED)
    filled.micro_run()
    assert looked(filled, OPEN).differences == ()


def test_what_one_side_has_deleted_is_said_and_the_other_side_is_shown(filled: Lab) -> None:
    (topic,) = filled.topics
    admin, cut = AdminClient({"bootstrap.servers": filled.source.bootstrap}), Place(topic, 0, TOMBSTONE)
    admin.delete_records([cut])[cut].result(ANSWER_S)
    assert looked(filled, PLAIN).source.lack is Lack.DELETED
    back = looked(filled, 0, backward=True)
    assert (back.target.lack, back.source.lack) == (None, Lack.DELETED)


def test_only_topics_of_the_flow_are_read(filled: Lab, source_cluster: RunningCluster) -> None:
    other = f"{filled.topics[0]}-other"
    create_topic(source_cluster, other)
    create_topic(filled.target, other)
    for backward in (False, True):
        with pytest.raises(BadInput):
            look_at(filled.flow, TopicPartition(topic=other, partition=0), 0, backward=backward)


def test_before_the_first_run_the_source_is_shown_and_the_target_is_not_known(lab: Lab) -> None:
    (topic,) = lab.topics
    create_topic(lab.source, topic)
    plain = producer(lab.source)
    plain.produce(topic, value=b"v", partition=0)
    plain.flush(ANSWER_S)
    found = look_at(lab.flow, TopicPartition(topic=topic, partition=0), 0, patience_s=ANSWER_S)
    assert found.source.record is not None
    assert (found.target.lack, found.target.place, bool(found.target.detail)) == (Lack.UNMAPPED, None, True)
