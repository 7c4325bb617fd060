"""Changes to topics, as commands and task logs tell them."""

from dataclasses import replace

from ferry.decide.plan.change_sentences import deeds, differences, proposals, summary
from ferry.model import ChangeKind, TopicChange

CREATE = TopicChange(
    kind=ChangeKind.CREATE,
    topic="a.orders",
    source_topic="orders",
    partitions=2,
    replication_factor=1,
    configs=(("retention.ms", "5"),),
)
DEFAULT = TopicChange(
    kind=ChangeKind.CREATE, topic="a.users", source_topic="users", partitions=1, replication_factor=-1
)
GROW = TopicChange(kind=ChangeKind.GROW, topic="a.orders", source_topic="orders", partitions=3, replication_factor=0)
CONFIGURE = TopicChange(
    kind=ChangeKind.CONFIGURE,
    topic="a.orders",
    source_topic="orders",
    partitions=3,
    replication_factor=0,
    configs=(("retention.ms", "6"), ("segment.ms", None)),
    was=(("segment.ms", "9"),),
)
DELETE = TopicChange(kind=ChangeKind.DELETE, topic="a.old", source_topic="old", partitions=1, replication_factor=0)
ALL = (CREATE, DEFAULT, GROW, CONFIGURE, DELETE)


def test_what_a_run_would_do_has_a_line_for_each_topic_and_setting() -> None:
    assert proposals(ALL) == [
        "would create topic a.orders with 2 partitions, 1 replica, retention.ms = 5",
        "would create topic a.users with 1 partition, the default replicas",
        "would grow topic a.orders to 3 partitions",
        "would set retention.ms = 6 on topic a.orders (now unknown there)",
        "would reset segment.ms on topic a.orders (now 9)",
        "would delete topic a.old, for source topic old was deleted",
    ]


def test_what_a_run_did_is_said_likewise() -> None:
    assert deeds(ALL) == [
        "created topic a.orders with 2 partitions, 1 replica, retention.ms = 5",
        "created topic a.users with 1 partition, the default replicas",
        "grew topic a.orders to 3 partitions",
        "set retention.ms = 6 on topic a.orders (was unknown there)",
        "reset segment.ms on topic a.orders (was 9)",
        "deleted topic a.old, for source topic old was deleted",
    ]
    assert summary(ALL) == deeds(ALL)
    assert summary(()) == []


def test_many_deeds_are_a_line_of_names_for_each_kind() -> None:
    created = [replace(CREATE, topic=f"a.t{number:02}") for number in range(30)]
    assert summary([*created, GROW]) == [
        "created 30 topics: a.t00, a.t01, a.t02, a.t03, a.t04, and 25 more (--json has all)",
        "grew 1 topic: a.orders",
    ]


def test_drift_names_both_values() -> None:
    assert differences([CONFIGURE]) == [
        "drift: retention.ms is unknown on topic a.orders and 6 at the source; sync.topic.configs.enabled is false",
        "drift: segment.ms is 9 on topic a.orders and not set at the source; sync.topic.configs.enabled is false",
    ]
