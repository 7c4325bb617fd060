"""Every line of a file is accounted for: used, not needed, overridden, without effect, or a problem."""

from __future__ import annotations

import pytest

from ferry.config.account import LineAccount, LineFate, account
from ferry.config.effective import effective
from ferry.config.reading.examine import Examined, examine
from ferry.config.text.properties import parse
from tests.config.test_examples import SLIPS, WORKING

BASE = """\
clusters = a, b, c
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
c.bootstrap.servers = c:1
a->b.enabled = true
b->c.enabled = true
"""
PROVIDERS = "org.apache.kafka.common.config.provider"
USED, NOT_YET, UNNEEDED, OVERRIDDEN, IDLE, PROBLEM = LineFate


def accounts(text: str) -> tuple[Examined, tuple[LineAccount, ...]]:
    examined = examine(text, "f")
    return examined, account(parse(text, "f"), examined, examined.problems)


CASES = [
    ("topics = x", USED, ""),
    ("a->b.topics = x", USED, ""),
    ("topics = x\na->b.topics = y", USED, ""),
    ("topics = x\na->b.topics = y\nb->c.topics = z", OVERRIDDEN, "overridden by lines 8, 9"),
    ("tasks.max = 3\ntasks.max = 3", OVERRIDDEN, "overridden by line 8"),
    ("tasks.max = 3\ntasks.max = 4", OVERRIDDEN, "overridden by line 8"),
    ("groups = x", USED, ""),
    ("a->b.groups.exclude = x", USED, ""),
    ("groups = x\na->b.groups = y\nb->c.groups = z", OVERRIDDEN, "overridden by lines 8, 9"),
    ("sync.group.offsets.enabled = true", USED, ""),
    ("refresh.groups.enabled = false", USED, ""),
    ("emit.heartbeats.interval.seconds = 5", USED, ""),
    ("b->a.emit.heartbeats.enabled = true", USED, ""),
    ("offset-syncs.topic.location = target", USED, ""),
    ("refresh.topics.enabled = false", NOT_YET, "read and checked"),
    ("sync.topic.configs.enabled = false", USED, ""),
    ("a.replication.policy.separator = _", IDLE, "it counts at top level or behind S->T."),
    ("replication.policy.separator = -\na.replication.policy.separator = _", USED, ""),
    ("a.replication.policy.separator = _\nreplication.policy.separator = -", IDLE, "it counts at top level"),
    ("c->b.topics = x", IDLE, "flow c->b is not enabled"),
    ("c->b.enabled = false", USED, ""),
    ("b.exactly.once.source.support = enabled", USED, ""),
    ("a.exactly.once.source.support = enabled", IDLE, "only a target's own line counts, as in MirrorMaker 2"),
    ("exactly.once.source.support = enabled", IDLE, "only a target's own line counts"),
    (
        "exactly.once.source.support = enabled\nb.exactly.once.source.support = enabled",
        IDLE,
        "only a target's own line counts",
    ),
    ("a->b.exactly.once.source.support = enabled", IDLE, "only a target's own line counts"),
    ("a->b.source.cluster.bootstrap.servers = x:1", OVERRIDDEN, "overridden by line 2"),
    ("a->b.target.cluster.ssl.protocol = TLSv1.3", USED, ""),
    ("a.consumer.auto.offset.reset = latest", USED, ""),
    ("a.consumer.auto.offset.reset = latest\na->b.ferry.start = earliest", OVERRIDDEN, "overridden by line 8"),
    ("a.consumer.auto.offset.reset = latest\nferry.start = earliest", OVERRIDDEN, "overridden by line 8"),
    ("a.consumer.fetch.max.bytes = 9\na->b.source.consumer.fetch.max.bytes = 8", OVERRIDDEN, "overridden by line 8"),
    (
        "a->b.consumer.isolation.level = read_committed\na.consumer.isolation.level = read_committed",
        OVERRIDDEN,
        "overridden by line 8",
    ),
    ("b.producer.acks = 1", UNNEEDED, "all replicas in sync always acknowledge"),
    ("a.consumer.key.deserializer = x.Y", UNNEEDED, "record batches are copied as bytes"),
    ("a.consumer.metric.reporters = x.Y", UNNEEDED, "metrics of Java clients"),
    ("b.producer.partitioner.class = x.Y", UNNEEDED, "the source's batches are copied as they are"),
    ("a.producer.compression.type = gzip", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a.producer.max.request.size = 5", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("b.producer.max.request.size = 5", USED, ""),
    ("b.consumer.client.rack = r", USED, ""),
    ("c.consumer.client.rack = r", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a->b.target.consumer.client.rack = r", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a->b.source.consumer.client.rack = r", USED, ""),
    ("a->b.producer.override.max.request.size = 5", USED, ""),
    ("c->b.source.producer.client.id = r", IDLE, "flow c->b is not enabled"),
    ("a.admin.client.id = x", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a->b.admin.client.id = x", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a.admin.bootstrap.servers = a:1", UNNEEDED, "Ferry reaches the source as its consumer"),
    ("a.admin.bootstrap.servers = x:1", PROBLEM, ""),
    ("security.protocol = PLAINTEXT\na.security.protocol = SSL", USED, ""),
    (
        "security.protocol = SSL\na.security.protocol = SSL\nb.security.protocol = SSL\nc.security.protocol = SSL",
        OVERRIDDEN,
        "overridden by lines 8, 9, 10",
    ),
    ("a.offset.storage.topic = t", UNNEEDED, "Ferry keeps no state in Connect's topics"),
    (
        f"config.providers = env\nconfig.providers.env.class = {PROVIDERS}.EnvVarConfigProvider",
        USED,
        "",
    ),
    ("taks.max = 3", PROBLEM, ""),
    ("tasks.max = many", PROBLEM, ""),
    ("topics = x # only", PROBLEM, ""),
    ("consumer.fetch.max.bytes = 9", PROBLEM, ""),
    ("clusters = a, b, c", OVERRIDDEN, ""),
]


@pytest.mark.parametrize(("lines", "fate", "why"), CASES)
def test_what_a_line_does(lines: str, fate: LineFate, why: str) -> None:
    _, found = accounts(f"{BASE}{lines}\n")
    assert [one.line for one in found] == list(range(1, 8 + lines.count("\n")))
    if lines.startswith("clusters"):
        assert (found[0].fate, found[0].by) == (OVERRIDDEN, (7,))
        return
    assert found[6].fate is fate
    assert found[6].why.startswith(why)
    assert bool(found[6].why) is bool(why)
    assert bool(found[6].by) is (fate is OVERRIDDEN)


def test_lines_of_clusters_that_no_flow_reads() -> None:
    _, found = accounts(f"{BASE.replace('b->c.enabled = true', 'b->c.enabled = false')}c.consumer.client.rack = r\n")
    assert found[3].fate is USED, "its brokers stand in the table of clusters"
    assert (found[6].fate, found[6].why) == (IDLE, "no flow of c is enabled here")


@pytest.mark.parametrize("text", [*(one.text for one in WORKING), *(one.text for one in SLIPS)])
def test_no_line_is_passed_over(text: str) -> None:
    examined, found = accounts(text)
    assert [(one.line, one.key) for one in found] == [(entry.line, entry.key) for entry in parse(text, "f")]
    in_force = {one.line for settings in examined.settings.values() for one in settings if one.line is not None}
    needless = {one.line for one in examined.unneeded}
    wrong = {one.line for one in examined.problems}
    for one in found:
        assert one.why or one.fate in (USED, PROBLEM), one
        assert (one.fate is PROBLEM) is (one.line in wrong and one.fate is not OVERRIDDEN), one
        assert one.line not in in_force or one.fate in (USED, NOT_YET, PROBLEM), one
        assert (one.fate is UNNEEDED) is (one.line in needless - wrong and one.fate is not OVERRIDDEN), one


def test_what_stands_among_the_values_in_force_is_not_called_needless() -> None:
    more = "b.producer.acks = 1\na.consumer.metric.reporters = x.Y\na.consumer.x.key = 1\na.admin.retries = 2\n"
    examined, found = accounts(f"{BASE}{more}a.ssl.key.password = x\nb.consumer.client.id = me\n")
    shown = {(str(flow.flow), one.name, one.line) for flow in effective(examined) for one in flow.clients}
    assert {one for one in shown if "bootstrap" not in one[1]} == {
        ("a->b", "source.*.ssl.key.password", 11),
        ("b->c", "source.consumer.client.id", 12),
    }
    assert [one.fate for one in found[6:]] == [UNNEEDED] * 4 + [USED] * 2
