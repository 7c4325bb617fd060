"""Keys held against the known ones: what has no effect where it stands, what is unknown, and what is not needed."""

import pytest

from ferry.config.explain import Explanation, every_key
from ferry.config.reading.examine import examine
from ferry.config.text.problem import Severity

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("taks.max = 1", "is not known; did you mean tasks.max?"),
        ("west->east.topcs = a", "is not known; did you mean west->east.topics?"),
        ("west.consumer.fetch.max.byte = 1", "is not known; did you mean west.consumer.fetch.max.bytes?"),
        ("west.ssl.truststore.pasword = b", "is not known; did you mean west.ssl.truststore.password?"),
        ("security.protocal = SSL", "is not known; did you mean security.protocol?"),
        ("emit.heartbeats.interval = 5", "is not known; did you mean emit.heartbeats.interval.seconds?"),
        ("west->east.ferry-lane = x", "is not known; did you mean west->east.ferry.lane?"),
        ("ferry.start = 1700000000", "is read as milliseconds, which is in 1970; where seconds are meant, write ferry"),
        ("west->east.TOPICS = a", "has no effect, keys are spelt in small letters; write west->east.topics = a"),
        ("west->east.Topcs = a", "is not known; did you mean west->east.topics?"),
        ("west.enabled = true", "enables no flow behind a cluster's alias; write west->east.enabled = true"),
        ("west->east.x->y.enabled = 1", "has no effect: it names two flows; write x->y.enabled or west->east.enabled"),
        ("west.ssl.key.password = ${FERRYX}", "${...} names no provider, so nothing is looked up and the text stands"),
        (
            "west.client.dns.lookup = ${X}",
            "${X} names no provider, so nothing is looked up and the text stands for itse",
        ),
        ("topics = a, ,b", "has a comma with nothing before or behind it, which Kafka refuses; write topics = a, b"),
        ("topics = ,", "has a comma with nothing before or behind it, which Kafka refuses; remove the comma"),
        (
            'west.sasl.jaas.config = x required \\ # y\n  username="z" \\\n  password="a";',
            "ends in a backslash with a comment behind it, so the value does not go on there: line 6 is read as a key",
        ),
        ("zzz = 1", "is not known; neither Kafka nor Ferry reads it here: remove the line"),
        ("isolation.level = x", "has no effect here: it is a key of the consumer; write west.consumer.isolation.level"),
        ("west->east.acks = 1", "has no effect here: it is a key of the producer; write west->east.producer.acks"),
        ("west.retries = 4", "has no effect here: it is a key of the producer; write west.producer.retries"),
        ("west.consumer.acks = 1", "has no effect here: it is a key of the producer, not of the consumer"),
        ("west.topics = a", "has no effect here: it counts at top level or behind S->T."),
        ("west.admin.timeout.ms = 5", "behind a cluster's alias; write admin.timeout.ms = ..."),
        (
            "west->east.security.protocol = SSL",
            "it is a key of a cluster; write west.security.protocol or east.security",
        ),
        ("north.security.protocol = SSL", "cluster 'north' is not among clusters = west, east; add it there or remove"),
        ("north.bootstrap.servers = h:1", "cluster 'north' is not among clusters = west, east; add it there or remove"),
        ("consumer.fetch.max.bytes = 4", "has no effect at top level; write west.consumer.fetch.max.bytes"),
        ("target.producer.max.request.size = 4", "has no effect at top level; write west.producer.max.request.size"),
        ("enabled = true", "enables no flow at top level; write west->east.enabled = true"),
        ("topics.blacklist = a", "has no effect since Kafka 4; write topics.exclude = a"),
        ("topics =", "is empty, so no topic is copied; write .* for all of them, or remove the line"),
        ('topics = "foo.*"', "quotes belong to it, and match themselves only; write topics = foo.*"),
        ("topics = \u201cfoo.*\u201d", "quotes belong to it, and match themselves only; write topics = foo.*"),
        ("west->east.topics = 'a', 'b'", "match themselves only; write west->east.topics = a, b"),
        ('groups.exclude = "a', "match themselves only; write groups.exclude = a"),
        ("topics = my topic, b", "no topic has a blank in its name, so 'my topic' matches none; put a comma between"),
        ("topics = \\d+", "\\d is read as d, because one backslash escapes; write two: topics = \\\\d+"),
        ("west->east.groups = x\\zy", "\\z is read as z, because one backslash escapes; write two: west->east"),
        ("west.ssl.truststore.location = C:\\temp", "\\t is read as a tab, because one backslash escapes; write two"),
        ("west.ssl.key.password = a\\-b", "holds a backslash alone, which is not part of the value read; write it"),
        ("west.ssl.key.password = my#secret # pw", "looks like a comment behind the value is read as a part of it"),
        ("west.ssl.key.password = ${vault:x:y}", "provider 'vault' is not declared, so its reference is not looked up"),
        ("topics = a, \\ \n  b", "does not go on there: line 6 is read as a key of its own; remove the blank"),
        ("topics = a \\\t\n , b", "does not go on there: line 6 is read as a key of its own; remove the blank"),
    ],
)
def test_what_does_not_count_is_a_warning_with_its_remedy(line: str, message: str) -> None:
    (problem,) = examine(f"{BASE}{line}\n", "f").problems
    assert (problem.line, problem.severity) == (5, Severity.WARNING)
    assert message in problem.message


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("listeners = http://:8083", "no REST server"),
        ("west.producer.acks = 0", "all replicas in sync always acknowledge"),
        ("west->east.target.producer.linger.ms = 5", "copied as they are"),
        ("west->east.producer.override.batch.size = 5", "copied as they are"),
        ("east.consumer.interceptor.classes = x.Y", "the source as its consumer"),
        ("west.admin.retry.backoff.ms = 5", "no other client"),
        ("west.consumer.group.id = g", "joins no consumer group"),
        ("west.client.id = x", "the worker's own clients"),
        ("west.offset.storage.topic = t", "the ledger on the target"),
        ("offset.storage.cleanup.policy = compact", "the ledger on the target"),
        ("key.converter.schemas.enable = false", "copied as bytes"),
        ("key.converter = org.apache.kafka.connect.converters.ByteArrayConverter", "copied as bytes"),
        ("offset.lag.max = 0", "holds every segment"),
        ("west.metrics.context.place = here", "metrics of Java clients"),
        ("listeners.https.ssl.keystore.location = /x", "no REST server"),
        ("admin.timeout.ms = 5", "a run's patience bounds each request"),
        ("west->east.consumer.poll.timeout.ms = 5", "a run's patience bounds each request"),
        ("admin.listeners = http://:8083", "no REST server"),
        ("west.admin.listeners = http://:8083", "no REST server"),
        ("west->east.admin.listeners.https.ssl.key.password = x", "no REST server"),
    ],
)
def test_what_ferry_does_not_need_is_said_with_the_reason(line: str, why: str) -> None:
    examined = examine(f"{BASE}{line}\n", "f")
    assert examined.problems == ()
    (unneeded,) = examined.unneeded
    assert (unneeded.line, unneeded.key) == (5, line.partition(" = ")[0])
    assert why in unneeded.why


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
