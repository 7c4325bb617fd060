"""Keys of a user's own Java classes pass beside the line that names the class, and nowhere else."""

import pytest

from ferry.config.keys.own_classes import OWN_KEY
from ferry.config.reading.examine import Examined, examine
from ferry.config.text.problem import Severity
from tests.golden import Golden

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""
KAFKAS = "org.apache.kafka.common.metrics.JmxReporter"


def with_lines(*lines: str) -> Examined:
    return examine(BASE + "".join(f"{line}\n" for line in lines), "f")


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ("west.consumer.metric.reporters = x.Y", "west.consumer.reporter.x"),
        (f"west.consumer.metric.reporters = {KAFKAS}, x.Y", "west.consumer.reporter.x"),
        ("west.consumer.metric.reporters = x.Y", "west->east.source.consumer.reporter.x"),
        ("west->east.producer.partitioner.class = x.Y", "west->east.producer.partitioner.x"),
        ("east.admin.metric.reporters = x.Y", "east.admin.reporter.x"),
        ("east.metric.reporters = x.Y", "east.reporter.x"),
        ("west->east.metric.reporters = x.Y", "west->east.reporter.x"),
        ("metric.reporters = x.Y", "x.foo"),
        ("rest.extension.classes = x.Y", "rest.my.key"),
        ("east.rest.extension.classes = x.Y", "east.rest.my.key"),
        ("replication.policy.class = tests.pure.config.policies.Suffixed", "west->east.example.colour"),
    ],
)
def test_keys_of_an_own_class_pass_and_are_accounted_for(names: str, key: str) -> None:
    examined = with_lines(names, f"{key} = 5")
    assert examined.problems == ()
    assert [one.why for one in examined.unneeded if one.key == key] == [OWN_KEY]


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ("", "west.consumer.reporter.x"),
        (f"west.consumer.metric.reporters = {KAFKAS}", "west.consumer.reporter.x"),
        ("west.consumer.metric.reporters = x.Y", "east.consumer.reporter.x"),
        ("west.consumer.metric.reporters = x.Y", "west.producer.reporter.x"),
        ("west.consumer.metric.reporters = x.Y", "west.reporter.x"),
        (f"metric.reporters = {KAFKAS}", "reporter.x"),
        ("west.metric.reporters = x.Y", "reporter.x"),
        ("metric.reporters = x.Y", "west.reporter.x"),
        ("replication.policy.class = tests.pure.config.policies.Suffixed", "example.colour"),
    ],
)
def test_elsewhere_they_are_unknown(names: str, key: str) -> None:
    examined = with_lines(names, f"{key} = 5")
    assert [(problem.key, problem.severity) for problem in examined.problems] == [(key, Severity.WARNING)]


def test_a_misspelt_key_is_named_beside_an_own_class_as_well(golden: Golden) -> None:
    examined = with_lines("west.consumer.metric.reporters = x.Y", "west.consumer.fetch.max.byte = 5")
    golden("\n".join([one.message for one in examined.problems]), "a client's key")
    examined = with_lines("metric.reporters = x.Y", "tasks.mx = 5")
    golden("\n".join([one.message for one in examined.problems]), "a flow's key")


def test_a_refused_class_is_told_without_its_keys() -> None:
    examined = with_lines("west.consumer.interceptor.classes = x.Y", "west.consumer.x.key = 5")
    assert [one.key for one in examined.problems] == ["west.consumer.interceptor.classes"]
