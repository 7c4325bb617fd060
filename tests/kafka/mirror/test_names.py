"""Names of MirrorMaker 2's internal topics, against its own policies, and which of them a flow writes."""

from __future__ import annotations

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.plan.rules.internal_topics import copied_heartbeats, internal_topics
from ferry.policy import make_policy
from tests.kafka.mirror.mirror_oracle import ask_words, encoded

FILE = """clusters = a, b
a.bootstrap.servers = h1:9092
b.bootstrap.servers = h2:9092
a->b.enabled = true
"""


def flow(more: str = "") -> FlowConfig:
    return parse_settings(FILE + more, "names.properties").flow("a->b")


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize("separator", [".", "_", "--"])
@pytest.mark.parametrize("internal", ["true", "false"])
def test_names_are_mirror_makers(policy: str, separator: str, internal: str) -> None:
    made = make_policy(
        policy,
        {
            "source.cluster.alias": "a",
            "replication.policy.separator": separator,
            "replication.policy.internal.topic.separator.enabled": internal,
        },
    )
    for alias in ("primary", "eu-1", "a.b"):
        names = made.heartbeats_topic(), made.checkpoints_topic(alias), made.offset_syncs_topic(alias)
        assert list(names) == ask_words(f"names {policy} {encoded(separator)} {internal} {alias}")
        assert made.is_internal_topic(names[1])
        assert made.is_internal_topic(names[2])


def test_each_is_named_and_placed_by_the_file() -> None:
    assert [(topic.side, topic.name, topic.replication_factor) for topic in internal_topics(flow())] == [
        ("target", "a.checkpoints.internal", 3),
        ("target", "mm2-offset-syncs.a.internal", 3),
        ("target", "heartbeats", 3),
    ]
    more = (
        "offset-syncs.topic.location = source\nb->a.emit.heartbeats.enabled = true\n"
        "checkpoints.topic.replication.factor = -1\na->b.offset-syncs.topic.replication.factor = 1\n"
    )
    assert [(topic.side, topic.name, topic.replication_factor) for topic in internal_topics(flow(more))] == [
        ("target", "a.checkpoints.internal", -1),
        ("source", "mm2-offset-syncs.b.internal", 1),
        ("target", "heartbeats", 3),
        ("source", "heartbeats", 3),
    ]


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize("separator", [".", "_"])
@pytest.mark.parametrize("topics", [".*", "orders"])
def test_what_is_written_is_no_data_of_other_flows(policy: str, separator: str, topics: str) -> None:
    """Of all that a->b writes to both clusters, flows onward and back copy heartbeats alone, whatever `topics` says."""
    file = FILE.replace("clusters = a, b", "clusters = a, b, c") + (
        "c.bootstrap.servers = h3:9092\nb->a.enabled = true\nb->c.enabled = true\n"
        f"replication.policy.class = org.apache.kafka.connect.mirror.{policy}\ntopics = {topics}\n"
        f"replication.policy.separator = {separator}\noffset-syncs.topic.location = "
    )
    settings = {side: parse_settings(f"{file}{side}\n", "names") for side in ("source", "target")}
    written = {(topic.side, topic.name) for one in settings.values() for topic in internal_topics(one.flow("a->b"))}
    written.add(("target", copied_heartbeats(settings["source"].flow("a->b")) or ""))
    there = settings["source"]
    taken = {
        text: {name for side, name in written if side == at and there.flow(text).topics.selection.takes(name)}
        for text, at in (("a->b", "source"), ("b->a", "target"), ("b->c", "target"))
    }
    assert taken == {"a->b": set(), "b->a": {"heartbeats"}, "b->c": {"heartbeats", f"a{separator}heartbeats"}}


def test_a_policy_of_ones_own_may_name_them() -> None:
    own = "replication.policy.class = tests.kafka.mirror.policies.OwnNames\n"
    found = flow(own)
    assert [topic.name for topic in internal_topics(found)] == ["checks-of-a", "syncs-of-a", "beats"]
    assert copied_heartbeats(found) == "beats-of-a"
    # What flows from b write to a is never copied, though the class does not call it internal.
    assert {name: found.topics.selection.takes(name) for name in ("checks-of-b", "syncs-of-b", "checks", "beats")} == {
        "checks-of-b": False,
        "syncs-of-b": False,
        "checks": True,
        "beats": True,
    }


def test_heartbeats_that_keep_their_name_have_one_writer() -> None:
    """The copies of the source's heartbeats would lie in the topic of the flow's own."""
    found = flow("replication.policy.class = tests.kafka.mirror.policies.SameNames\n")
    assert copied_heartbeats(found) == "heartbeats"
    assert [topic.name for topic in internal_topics(found)] == ["a.checkpoints.internal", "mm2-offset-syncs.a.internal"]


def test_a_name_that_kafka_does_not_take() -> None:
    with pytest.raises(BadInput, match=r"checkpoints_topic.*'no spaces'"):
        make_policy("tests.kafka.mirror.policies.NoName", {"source.cluster.alias": "a"})
