"""Every line of a file is accounted for: used, not needed, overridden, without effect, or a problem."""

from __future__ import annotations

import pytest

from ferry.config.account import LineAccount, LineFate, account
from ferry.config.effective import effective
from ferry.config.reading.examine import Examined, examine
from ferry.config.text.properties import parse
from tests.golden import Golden
from tests.pure.config.test_examples import SLIPS, WORKING

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
    ("topics = x", USED, False),
    ("a->b.topics = x", USED, False),
    ("topics = x\na->b.topics = y", USED, False),
    ("topics = x\na->b.topics = y\nb->c.topics = z", OVERRIDDEN, True),
    ("tasks.max = 3\ntasks.max = 3", OVERRIDDEN, True),
    ("tasks.max = 3\ntasks.max = 4", OVERRIDDEN, True),
    ("groups = x", USED, False),
    ("a->b.groups.exclude = x", USED, False),
    ("groups = x\na->b.groups = y\nb->c.groups = z", OVERRIDDEN, True),
    ("sync.group.offsets.enabled = true", USED, False),
    ("refresh.groups.enabled = false", USED, False),
    ("emit.heartbeats.interval.seconds = 5", USED, False),
    ("b->a.emit.heartbeats.enabled = true", USED, False),
    ("offset-syncs.topic.location = target", USED, False),
    ("refresh.topics.enabled = false", NOT_YET, True),
    ("sync.topic.configs.enabled = false", USED, False),
    ("a.replication.policy.separator = _", IDLE, True),
    ("replication.policy.separator = -\na.replication.policy.separator = _", USED, False),
    ("a.replication.policy.separator = _\nreplication.policy.separator = -", IDLE, True),
    ("c->b.topics = x", IDLE, True),
    ("c->b.enabled = false", USED, False),
    ("b.exactly.once.source.support = enabled", USED, False),
    ("a.exactly.once.source.support = enabled", IDLE, True),
    ("exactly.once.source.support = enabled", IDLE, True),
    ("exactly.once.source.support = enabled\nb.exactly.once.source.support = enabled", IDLE, True),
    ("a->b.exactly.once.source.support = enabled", IDLE, True),
    ("a->b.source.cluster.bootstrap.servers = x:1", OVERRIDDEN, True),
    ("a->b.target.cluster.ssl.protocol = TLSv1.3", USED, False),
    ("a.consumer.auto.offset.reset = latest", USED, False),
    ("a.consumer.auto.offset.reset = latest\na->b.ferry.start = earliest", OVERRIDDEN, True),
    ("a.consumer.auto.offset.reset = latest\nferry.start = earliest", OVERRIDDEN, True),
    ("a.consumer.fetch.max.bytes = 9\na->b.source.consumer.fetch.max.bytes = 8", OVERRIDDEN, True),
    ("a->b.consumer.isolation.level = read_committed\na.consumer.isolation.level = read_committed", OVERRIDDEN, True),
    ("b.producer.acks = 1", UNNEEDED, True),
    ("a.consumer.key.deserializer = x.Y", UNNEEDED, True),
    ("a.consumer.metric.reporters = x.Y", UNNEEDED, True),
    ("b.producer.partitioner.class = x.Y", UNNEEDED, True),
    ("a.producer.compression.type = gzip", UNNEEDED, True),
    ("a.producer.max.request.size = 5", UNNEEDED, True),
    ("b.producer.max.request.size = 5", USED, False),
    ("b.consumer.client.rack = r", USED, False),
    ("c.consumer.client.rack = r", UNNEEDED, True),
    ("a->b.target.consumer.client.rack = r", UNNEEDED, True),
    ("a->b.source.consumer.client.rack = r", USED, False),
    ("a->b.producer.override.max.request.size = 5", USED, False),
    ("c->b.source.producer.client.id = r", IDLE, True),
    ("a.admin.client.id = x", UNNEEDED, True),
    ("a->b.admin.client.id = x", UNNEEDED, True),
    ("a.admin.bootstrap.servers = a:1", UNNEEDED, True),
    ("a.admin.bootstrap.servers = x:1", PROBLEM, False),
    ("security.protocol = PLAINTEXT\na.security.protocol = SSL", USED, False),
    (
        "security.protocol = SSL\na.security.protocol = SSL\nb.security.protocol = SSL\nc.security.protocol = SSL",
        OVERRIDDEN,
        True,
    ),
    ("a.offset.storage.topic = t", UNNEEDED, True),
    (f"config.providers = env\nconfig.providers.env.class = {PROVIDERS}.EnvVarConfigProvider", USED, False),
    ("taks.max = 3", PROBLEM, False),
    ("tasks.max = many", PROBLEM, False),
    ("topics = x # only", PROBLEM, False),
    ("consumer.fetch.max.bytes = 9", PROBLEM, False),
    ("clusters = a, b, c", OVERRIDDEN, False),
]


@pytest.mark.parametrize(("lines", "fate", "told"), CASES)
def test_what_a_line_does(lines: str, fate: LineFate, told: bool, golden: Golden) -> None:
    _, found = accounts(f"{BASE}{lines}\n")
    assert [one.line for one in found] == list(range(1, 8 + lines.count("\n")))
    if lines.startswith("clusters"):
        assert (found[0].fate, found[0].by) == (OVERRIDDEN, (7,))
        return
    assert found[6].fate is fate
    assert bool(found[6].why) is told
    if told:
        golden(found[6].why)
    assert bool(found[6].by) is (fate is OVERRIDDEN)


def test_lines_of_clusters_that_no_flow_reads(golden: Golden) -> None:
    _, found = accounts(f"{BASE.replace('b->c.enabled = true', 'b->c.enabled = false')}c.consumer.client.rack = r\n")
    assert found[3].fate is USED, "its brokers stand in the table of clusters"
    assert found[6].fate is IDLE
    golden(found[6].why)


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
