"""Whole files as the documents have them, with several slips at once: each is told, and nothing else."""

from dataclasses import dataclass

import pytest

from ferry.config.client_check import all_problems
from ferry.config.reading.examine import examine
from ferry.config.reading.fix import fix
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from tests.golden import Golden, brief
from tests.pure.config.test_examples import SIX, TWO, WEST_EAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole file as the documentation has it. `named` is all that is named: line and key."""

    name: str
    text: str
    named: tuple[tuple[int | None, str], ...]
    works: bool = True
    """Whether `--fix` makes a file of it that works without a further word."""


WHOLE = (
    Whole(
        name="global settings",
        text="""\
# Global settings
clusters = us-west, us-east # defines cluster aliases
us-west.bootstrap.servers = broker3-west:9092
us-east.bootstrap.servers = broker5-east:9092
topics = .* # all topics to be replicated by default

# Specific replication flow settings (here: flow from us-west to us-east)
us-west->us-east.enabled = true
us-west->us.east.topics = foo.*, bar.* # override the default above
""",
        named=((2, "clusters"), (5, "topics"), (9, "us-west->us.east.topics"), (9, "us-west->us.east.topics")),
    ),
    Whole(
        name="one way",
        text="""\
primary.bootstrap.servers = broker1-primary:9092
secondary.bootstrap.servers = broker2-secondary:9092
primary->secondary.enabled = true
secondary->primary.enabled = false
primary->secondary.topics = foo.* # only replicate some topics
""",
        named=((None, "clusters"), (5, "primary->secondary.topics")),
    ),
    Whole(
        name="both ways, an alias in another case",
        text="""\
clusters = us-west, us-east
us-west.bootstrap.servers = broker1-west:9092,broker2-west:9092
Us-east.bootstrap.servers = broker3-east:9092,broker4-east:9092
us-west->us-east.enabled = true
us-east->us-west.enabled = true
""",
        named=((3, "Us-east.bootstrap.servers"),),
    ),
    Whole(
        name="top level and flow",
        text="""\
us-west.bootstrap.servers = broker3-west:9092
us-east.bootstrap.servers = broker5-east:9092
topics = .*
groups = consumer-group1, consumer-group2
us-west->us-east.enabled = true
us-west->us-east.topics = foo.*
us-west->us-east.groups = bar.*
us-west->us-east.emit.heartbeats = false
""",
        named=((None, "clusters"), (8, "us-west->us-east.emit.heartbeats")),
    ),
    Whole(
        name="all of it in one file",
        text=WEST_EAST.replace("us-east\n", "us-east # defines cluster aliases\n", 1)
        + """\
topics = .* # all topics to be replicated by default
us-west->us.east.topics = foo.*, bar.* # override the default above
tasks.max = 5
us-west.offset.storage.topic = my-mirrormaker-offsets
us-west.consumer.isolation.level = read_committed
us-west.admin.bootstrap.servers = broker57-primary:9092
us-east.producer.compression.type = gzip
us-east.producer.buffer.memory = 32768
us-east.exactly.once.source.support = enabled
listeners = http://localhost:8080
topics.exclude = .*[\\-\\.]internal, .*\\.replica, __.*
us-east->us-west.enable = true
us-west->us-east.emit.heartbeats = false
us-west->us-east.replication.policy.separator = _
Us-east.bootstrap.servers = broker3-east:9092,broker4-east:9092
A->B.enabled = true
""",
        named=(
            (1, "clusters"),
            (5, "topics"),
            (6, "us-west->us.east.topics"),
            (6, "us-west->us.east.topics"),
            (10, "us-west.admin.bootstrap.servers"),
            (15, "topics.exclude"),
            (16, "us-east->us-west.enable"),
            (17, "us-west->us-east.emit.heartbeats"),
            (19, "Us-east.bootstrap.servers"),
            (20, "A->B.enabled"),
        ),
        works=False,
    ),
    Whole(
        name="flows alone",
        text="us-west->us-east.enabled = true\nus-west->us.east.topics = foo.*\n",
        named=(
            (None, "clusters"),
            (None, "us-west.bootstrap.servers"),
            (None, "us-east.bootstrap.servers"),
            (2, "us-west->us.east.topics"),
        ),
        works=False,
    ),
    Whole(
        name="brokers left out",
        text=TWO.replace("broker3-primary:9092", "..."),
        named=((2, "primary.bootstrap.servers"),),
        works=False,
    ),
    Whole(
        name="a flow to its own source",
        text=WEST_EAST + "us-west->us-west.topics = a\nus-west->us-est.topics = a\n",
        named=((5, "us-west->us-west.topics"), (6, "us-west->us-est.topics")),
        works=False,
    ),
)


@pytest.mark.parametrize("whole", WHOLE, ids=lambda whole: whole.name)
def test_a_whole_file_is_told_its_slips_and_nothing_else(whole: Whole, golden: Golden) -> None:
    found = all_problems(examine(whole.text, "mm2.properties"))
    assert [(problem.line, problem.key) for problem in found] == list(whole.named)
    if found:
        golden("\n".join(problem.message for problem in found))
    fixed = fix(whole.text, "mm2.properties")
    assert (fixed.works, all_problems(fixed.examined) == ()) == (whole.works, whole.works)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "two processes, each with its own topics",
            (
                "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
                "A->B.enabled = true\nA->B.topics = foo\nA->B.enabled = true\nA->B.topics = bar\n"
            ),
        ),
        ("brokers left out", SIX.replace("w1:9092", "...")),
        (
            "a consumer's file of MirrorMaker 1",
            (
                "zk.connect=hdp1:2181/kafka\nzk.connectiontimeout.ms=1000000\nconsumer.timeout.ms=-1\n"
                "groupid=dp-MirrorMaker-test-datapl\nshallow.iterator.enable=true\nmirror.topics.whitelist=app_log\n"
            ),
        ),
        (
            "a newer consumer's file of MirrorMaker 1",
            (
                "bootstrap.servers=kafka-source-server1:6667,kafka-source-server2:6667,kafka-source-server3-6667\n"
                "groupid=dp-MirrorMaker-group\nexclude.internal.topics=true\nmirror.topics.whitelist=app_log\n"
                "client.id=mirror_maker_consumer\n"
            ),
        ),
        (
            "a producer's file of MirrorMaker 1",
            (
                "zk.connect=hdp1:2181/kafka-test\nproducer.type=async\ncompression.codec=0\n"
                "serializer.class=kafka.serializer.DefaultEncoder\nmax.message.size=10000000\nqueue.time=1000\n"
                "queue.enqueueTimeout.ms=-1\n"
            ),
        ),
        (
            "a newer producer's file of MirrorMaker 1",
            (
                "bootstrap.servers=kafka-target-server1:6667,kafka-target-server2:6667,kafka-target-server3-6667\n"
                "acks=1\nbatch.size=100\nclient.id=mirror_maker_producer\n"
            ),
        ),
        ("no data loss, the consumer's side", "auto.commit.enabled=false\n"),
        (
            "no data loss, the producer's side",
            "max.in.flight.requests.per.connection=1\nretries=Int.MaxValue\nacks=-1\nblock.on.buffer.full=true\n",
        ),
    ],
    ids=brief,
)
def test_what_only_its_writer_can_correct(name: str, text: str, golden: Golden) -> None:
    assert not fix(text, "mm2.properties").works, name
    with pytest.raises(BadInput) as caught:
        parse_settings(text, "mm2.properties")
    golden(caught.value)
