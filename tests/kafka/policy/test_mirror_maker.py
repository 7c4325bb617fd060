"""Replication policies against MirrorMaker 2's own, and loops of any length."""

from ferry.policy import (
    INTERNAL_SEPARATOR,
    JAVA_PACKAGE,
    SEPARATOR,
    is_heartbeats_topic,
    make_policy,
)
from tests.kafka.config.java_oracle import ask, decoded, encoded

TOPICS = (
    "foo", "a.foo", "b.a.foo", "heartbeats", "a.heartbeats", "b.a.heartbeats", "a_heartbeats",
    "mm2-offset-syncs.b.internal", "mm2-offset-syncs_b_internal", "x.checkpoints.internal",
    "x_checkpoints_internal", "checkpoints.internal", "__consumer_offsets", "__x", ".x", "foo.internal",
    "foo-internal", "mm2.foo", ".", "..", "a..foo", "foo.", "a..", "-internal", ".internal", "_", "__", "a_b",
    "a__b", "a___",
    "mm2-offset-syncs.b_internal", "b.checkpoints_internal", "b_checkpoints.internal",
    "myheartbeats", "my.heartbeats", "mm2.internal", "a.b.c.d", "foo_",
)  # fmt: skip

KINDS = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")


def test_mirror_maker_agrees_on_every_name() -> None:
    cases = [
        (f"{package}{kind}", separator, internal, topic)
        for package, kind in zip(("", JAVA_PACKAGE), KINDS, strict=True)
        for separator in (".", "_", "__", "-")
        for internal in ("true", "false")
        for topic in TOPICS
    ]
    questions = [
        f"policy {kind.removeprefix(JAVA_PACKAGE)} {encoded(separator)} {encoded('a')} {encoded(topic)} {internal}"
        for kind, separator, internal, topic in cases
    ]
    for (kind, separator, internal, topic), answer in zip(cases, ask(questions), strict=True):
        policy = make_policy(kind, {SEPARATOR: separator, INTERNAL_SEPARATOR: internal, "source.cluster.alias": "a"})
        ours = [
            policy.topic_source(topic),
            policy.upstream_topic(topic),
            policy.original_topic(topic),
            policy.format_remote_topic("a", topic),
            str(policy.is_internal_topic(topic)).lower(),
            str(is_heartbeats_topic(policy, topic)).lower(),
        ]
        assert ours == [decoded(word) for word in answer.split(" ")[1:]], (kind, separator, internal, topic)
