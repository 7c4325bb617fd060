"""Keys held against the known ones: what has no effect where it stands, what is unknown, and what is not needed."""

import pytest

from ferry.config.explain import Explanation, every_key
from ferry.config.reading.examine import examine
from ferry.config.text.problem import Severity
from tests.golden import Golden

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""


@pytest.mark.parametrize(
    "line",
    [
        "taks.max = 1",
        "west->east.topcs = a",
        "west.consumer.fetch.max.byte = 1",
        "west.ssl.truststore.pasword = b",
        "security.protocal = SSL",
        "emit.heartbeats.interval = 5",
        "west->east.ferry-lane = x",
        "ferry.start = 1700000000",
        "west->east.TOPICS = a",
        "west->east.Topcs = a",
        "west.enabled = true",
        "west->east.x->y.enabled = 1",
        "west.ssl.key.password = ${FERRYX}",
        "west.client.dns.lookup = ${X}",
        "topics = a, ,b",
        "topics = ,",
        'west.sasl.jaas.config = x required \\ # y\n  username="z" \\\n  password="a";',
        "zzz = 1",
        "isolation.level = x",
        "west->east.acks = 1",
        "west.retries = 4",
        "west.consumer.acks = 1",
        "west.topics = a",
        "west.admin.timeout.ms = 5",
        "west->east.security.protocol = SSL",
        "north.security.protocol = SSL",
        "north.bootstrap.servers = h:1",
        "consumer.fetch.max.bytes = 4",
        "target.producer.max.request.size = 4",
        "enabled = true",
        "topics.blacklist = a",
        "topics =",
        'topics = "foo.*"',
        "topics = \u201cfoo.*\u201d",
        "west->east.topics = 'a', 'b'",
        'groups.exclude = "a',
        "topics = my topic, b",
        "topics = \\d+",
        "west->east.groups = x\\zy",
        "west.ssl.truststore.location = C:\\temp",
        "west.ssl.key.password = a\\-b",
        "west.ssl.key.password = my#secret # pw",
        "west.ssl.key.password = ${vault:x:y}",
        "topics = a, \\ \n  b",
        "topics = a \\\t\n , b",
    ],
)
def test_what_does_not_count_is_a_warning_with_its_remedy(line: str, golden: Golden) -> None:
    (problem,) = examine(f"{BASE}{line}\n", "f").problems
    assert (problem.line, problem.severity) == (5, Severity.WARNING)
    golden(problem.message)


@pytest.mark.parametrize(
    "line",
    [
        "listeners = http://:8083",
        "west.producer.acks = 0",
        "west->east.target.producer.linger.ms = 5",
        "west->east.producer.override.batch.size = 5",
        "east.consumer.interceptor.classes = x.Y",
        "west.admin.retry.backoff.ms = 5",
        "west.consumer.group.id = g",
        "west.client.id = x",
        "west.offset.storage.topic = t",
        "offset.storage.cleanup.policy = compact",
        "key.converter.schemas.enable = false",
        "key.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "offset.lag.max = 0",
        "west.metrics.context.place = here",
        "listeners.https.ssl.keystore.location = /x",
        "admin.timeout.ms = 5",
        "west->east.consumer.poll.timeout.ms = 5",
        "admin.listeners = http://:8083",
        "west.admin.listeners = http://:8083",
        "west->east.admin.listeners.https.ssl.key.password = x",
    ],
)
def test_what_ferry_does_not_need_is_said_with_the_reason(line: str, golden: Golden) -> None:
    examined = examine(f"{BASE}{line}\n", "f")
    assert examined.problems == ()
    (unneeded,) = examined.unneeded
    assert (unneeded.line, unneeded.key) == (5, line.partition(" = ")[0])
    golden(unneeded.why)


@pytest.mark.parametrize(
    "line",
    [
        "topics = a",
        "west->east.groups = a",
        "security.protocol = PLAINTEXT",
        "west->east.source.cluster.ssl.key.password = x",
        "west->east.source.consumer.fetch.max.bytes = 4",
        "west->east.consumer.fetch.max.bytes = 4",
        "west.replication.policy.separator = _",
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "config.providers.file.param.allowed.paths = /etc",
        "topics = my\\\\.topic",
        'groups = my group, [ "]+',
        "topics.exclude =",
        'topics = [ "a-z]+',
        "west->east.source.cluster.ssl.truststore.location = C\\:/temp",
        "west.ssl.key.password = a#b\\\\c \\# d",
        'west.sasl.jaas.config = x.Y required username="a # b" password=\\"c\\";',
        "west.ssl.truststore.certificates = -----BEGIN CERTIFICATE-----\\nab\\n-----END CERTIFICATE-----",
        "west.ssl.key.password = ${env:A}${file:b:c}${dir:/d:e}",
        "topics = a, \\\n  b",
        "topics = a\\ \ngroups = b",
        "west.consumer.interceptor.classes =",
    ],
)
def test_what_counts_is_passed_over(line: str) -> None:
    examined = examine(f"{BASE}{line}\n", "f")
    assert (examined.problems, examined.unneeded) == ((), ())


def at_its_places(one: Explanation) -> list[str]:
    """The key as it is written at every place that its explanation names."""
    name = one.name.replace("{name}", "n").replace("{parameter}", "p").replace("{", "").replace("}", "")
    return [place.replace("{alias}", "west").replace("S->T", "west->east") + name for place in one.places]


@pytest.mark.slow
def test_every_key_is_known_at_every_place_that_its_explanation_names() -> None:
    keys = dict.fromkeys(key for one in every_key() for key in at_its_places(one))
    given = dict(line.split(" = ") for line in BASE.splitlines())
    text = BASE + "".join(f"{key} = 1\n" for key in keys if key not in given and not key.endswith("policy.class"))
    assert text.count("\n") > 600
    said = [str(problem) for problem in examine(text, "f").problems]
    assert [one for one in said if "is not known" in one or "no effect" in one] == []


def test_secrets_are_in_no_message() -> None:
    # A misspelt key may hold a password as well as a right one.
    lines = ["West.ssl.key.password = geheim", "west->est.ssl.key.password = geheim", "west.ssl.key.pasword = geheim"]
    for line in lines:
        examined = examine(f"{BASE}{line} # geheim\n", "f")
        assert examined.problems
        assert "geheim" not in repr(examined.problems)
        assert not any("geheim" in str(problem) for problem in examined.problems)
