"""What MirrorMaker's users write, by the examples they learn from: what works unchanged, and each slip's correction."""

from dataclasses import dataclass, field

import pytest

from ferry.config.reading.examine import examine
from ferry.config.reading.fix import fix
from ferry.config.text.problem import Severity
from tests.golden import Golden

WEST_EAST = """\
clusters = us-west, us-east
us-west.bootstrap.servers = broker3-west:9092
us-east.bootstrap.servers = broker5-east:9092
us-west->us-east.enabled = true
"""
TWO = """\
clusters = primary, secondary
primary.bootstrap.servers = broker3-primary:9092
secondary.bootstrap.servers = broker5-secondary:9092
primary->secondary.enabled = true
"""
SIX = """\
clusters: west-1, west-2, east-1, east-2, north-1, north-2
west-1.bootstrap.servers = w1:9092
west-2.bootstrap.servers = w2:9092
east-1.bootstrap.servers = e1:9092
east-2.bootstrap.servers = e2:9092
north-1.bootstrap.servers = n1:9092
north-2.bootstrap.servers = n2:9092
west-1->west-2.enabled = true
west-2->west-1.enabled = true
east-1->east-2.enabled = true
east-2->east-1.enabled = true
north-1->north-2.enabled = true
north-2->north-1.enabled = true
west-1->east-1.enabled = true
west-1->north-1.enabled = true
east-1->west-1.enabled = true
east-1->north-1.enabled = true
north-1->west-1.enabled = true
north-1->east-1.enabled = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A file that works as it is. `settings` are values of the flow, by name, as they count."""

    name: str
    text: str
    flow: str = "us-west->us-east"
    flows: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    unneeded: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


WORKING = (
    Example(
        name="first steps",
        text=TWO + "primary->secondary.topics = foobar-topic, quux-.*\n",
        flow="primary->secondary",
        settings={"topics": "foobar-topic,quux-.*"},
    ),
    Example(name="Connect's settings", text=WEST_EAST + "tasks.max = 5\n", settings={"tasks.max": "5"}),
    Example(
        name="a cluster's Connect settings",
        text=WEST_EAST + "us-west.offset.storage.topic = my-mirrormaker-offsets\n",
        unneeded=("us-west.offset.storage.topic",),
    ),
    Example(
        name="settings of clients",
        text=WEST_EAST
        + """\
us-west.consumer.isolation.level = read_committed
us-west.admin.bootstrap.servers = broker57-primary:9092
us-east.producer.buffer.memory = 32768
us-east.admin.bootstrap.servers = broker8-secondary:9092
""",
        settings={"consumer.isolation.level": "read_committed"},
        unneeded=(
            "us-west.admin.bootstrap.servers",
            "us-east.producer.buffer.memory",
            "us-east.admin.bootstrap.servers",
        ),
        warned=("us-west.admin.bootstrap.servers", "us-east.admin.bootstrap.servers"),
    ),
    Example(
        name="exactly once",
        text=WEST_EAST + "us-east.exactly.once.source.support = enabled\n",
        settings={"exactly.once.source.support": "enabled"},
    ),
    Example(
        name="exactly once, being prepared",
        text=WEST_EAST + "us-east.exactly.once.source.support = preparing\n",
        settings={"exactly.once.source.support": "preparing"},
    ),
    Example(
        name="nodes that speak to each other",
        text=WEST_EAST + "dedicated.mode.enable.internal.rest = true\nlisteners = http://localhost:8080\n",
        unneeded=("dedicated.mode.enable.internal.rest", "listeners"),
    ),
    Example(
        name="several brokers",
        text="""\
clusters = primary, secondary
primary.bootstrap.servers = broker10-primary:9092,broker-11-primary:9092
secondary.bootstrap.servers = broker5-secondary:9092,broker6-secondary:9092
primary->secondary.enabled = true
""",
        flow="primary->secondary",
    ),
    Example(
        name="defaults written out",
        text=WEST_EAST
        + r"""
topics = .*
topics.exclude = .*[\\-\\.]internal, .*\\.replica, __.*
groups = .*
groups.exclude = console-consumer-.*, connect-.*, __.*
replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy
replication.policy.separator = .
""",
        settings={"topics.exclude": r".*[\-\.]internal,.*\.replica,__.*"},
    ),
    Example(
        name="top level and flow",
        text=WEST_EAST
        + """\
topics = .*
groups = consumer-group1, consumer-group2
us-west->us-east.topics = foo.*
us-west->us-east.groups = bar.*
us-west->us-east.emit.heartbeats.enabled = false
""",
        settings={"topics": "foo.*", "groups": "bar.*", "emit.heartbeats.enabled": "false"},
    ),
    Example(
        name="a flow's separator",
        text=WEST_EAST + "us-west->us-east.replication.policy.separator = _\n",
        settings={"replication.policy.separator": "_"},
    ),
    Example(
        name="encryption",
        text=WEST_EAST
        + """\
us-east.security.protocol=SSL
us-east.ssl.truststore.location=/path/to/truststore.jks
us-east.ssl.truststore.password=my-secret-password
us-east.ssl.keystore.location=/path/to/keystore.jks
us-east.ssl.keystore.password=my-secret-password
us-east.ssl.key.password=my-secret-password
""",
    ),
    Example(name="both ways", text=WEST_EAST + "us-east->us-west.enabled = true\n", flows=2),
    Example(name="six clusters in three data centres", text=SIX, flow="west-1->east-1", flows=12),
    Example(
        name="groups of the console consumer",
        text=WEST_EAST + "groups.exclude = connect-.*, __.*\n",
        settings={"groups.exclude": "connect-.*,__.*"},
    ),
    Example(
        name="fan-out",
        text="""\
clusters = K, A, B, C
K.bootstrap.servers = k:9092
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
K->A.enabled = true
K->B.enabled = true
K->C.enabled = true
""",
        flow="K->B",
        flows=3,
    ),
    Example(
        name="aggregation",
        text="""\
clusters = A, B, C, K
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
K.bootstrap.servers = k:9092
A->K.enabled = true
B->K.enabled = true
C->K.enabled = true
""",
        flow="C->K",
        flows=3,
    ),
    Example(
        name="chain",
        text="""\
clusters = A, B, C, D
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
D.bootstrap.servers = d:9092
A->B.enabled = true
B->C.enabled = true
C->D.enabled = true
""",
        flow="B->C",
        flows=3,
    ),
    Example(
        name="active/active of two",
        text="""\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = foo
B->A.enabled = true
""",
        flow="A->B",
        flows=2,
        settings={"topics": "foo"},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A file with one slip: where it is, and the lines that stand there in the file that works."""

    name: str
    text: str
    line: int | None
    key: str
    corrected: tuple[str, ...]
    stops: bool
    """Whether the slip is an error; else it is a warning."""


SLIPS = (
    Slip(
        name="a comment behind the aliases",
        text=WEST_EAST.replace("us-east\n", "us-east # defines cluster aliases\n", 1),
        line=1,
        key="clusters",
        corrected=("# defines cluster aliases", "clusters = us-west, us-east"),
        stops=True,
    ),
    Slip(
        name="a comment behind all topics",
        text=WEST_EAST + "topics = .* # all topics to be replicated by default\n",
        line=5,
        key="topics",
        corrected=("# all topics to be replicated by default", "topics = .*"),
        stops=False,
    ),
    Slip(
        name="an alias with a dot for its hyphen",
        text=WEST_EAST + "us-west->us.east.topics = foo.*, bar.*\n",
        line=5,
        key="us-west->us.east.topics",
        corrected=("us-west->us-east.topics = foo.*, bar.*",),
        stops=True,
    ),
    Slip(
        name="that line with its comment",
        text=WEST_EAST + "us-west->us.east.topics = foo.*, bar.* # override the default above\n",
        line=5,
        key="us-west->us.east.topics",
        corrected=("# override the default above", "us-west->us-east.topics = foo.*, bar.*"),
        stops=True,
    ),
    Slip(
        name="enable for enabled",
        text=WEST_EAST + "us-east->us-west.enable = true\n",
        line=5,
        key="us-east->us-west.enable",
        corrected=("us-east->us-west.enabled = true",),
        stops=False,
    ),
    Slip(
        name="a switch without enabled",
        text=WEST_EAST + "us-west->us-east.emit.heartbeats = false\n",
        line=5,
        key="us-west->us-east.emit.heartbeats",
        corrected=("us-west->us-east.emit.heartbeats.enabled = false",),
        stops=False,
    ),
    Slip(
        name="clusters left out",
        text=TWO.partition("\n")[2],
        line=None,
        key="clusters",
        corrected=("clusters = primary, secondary",),
        stops=True,
    ),
    Slip(
        name="a comment behind a flow's topics",
        text=TWO + "primary->secondary.topics = foo.* # only replicate some topics\n",
        line=5,
        key="primary->secondary.topics",
        corrected=("# only replicate some topics", "primary->secondary.topics = foo.*"),
        stops=False,
    ),
    Slip(
        name="an alias in another case",
        text=WEST_EAST.replace("us-east.bootstrap", "Us-east.bootstrap"),
        line=3,
        key="Us-east.bootstrap.servers",
        corrected=("us-east.bootstrap.servers = broker5-east:9092",),
        stops=True,
    ),
    Slip(
        name="a port without its colon",
        text=TWO.replace("broker3-primary:9092", "kafka-source-server1:6667,kafka-source-server3-6667"),
        line=2,
        key="primary.bootstrap.servers",
        corrected=("primary.bootstrap.servers = kafka-source-server1:6667,kafka-source-server3:6667",),
        stops=True,
    ),
    Slip(
        name="blanks in a flow's name",
        text=WEST_EAST + "us-east -> us-west.enabled = true\n",
        line=5,
        key="us-east",
        corrected=("us-east->us-west.enabled = true",),
        stops=True,
    ),
    Slip(
        name="a name of older releases",
        text=WEST_EAST + "us-west->us-east.topics.blacklist = secret.*\n",
        line=5,
        key="us-west->us-east.topics.blacklist",
        corrected=("us-west->us-east.topics.exclude = secret.*",),
        stops=False,
    ),
    Slip(
        name="one value twice",
        text=WEST_EAST + "topics = a\ntopics = a\n",
        line=6,
        key="topics",
        corrected=(),
        stops=False,
    ),
    Slip(
        name="the default of topics.exclude as the documentation has it",
        text=WEST_EAST + "topics.exclude = .*[\\-\\.]internal, .*\\.replica, __.*\n",
        line=5,
        key="topics.exclude",
        corrected=("topics.exclude = .*[\\\\-\\\\.]internal, .*\\\\.replica, __.*",),
        stops=False,
    ),
    Slip(
        name="lone backslashes before a comment",
        text=WEST_EAST + "topics = a\\.\\d # and \\d\n",
        line=5,
        key="topics",
        corrected=("# and \\d", "topics = a\\\\.\\\\d"),
        stops=False,
    ),
    Slip(
        name="an alias in another spelling before a lone backslash",
        text=WEST_EAST + "us-west->US-EAST.topics = a\\.b\n",
        line=5,
        key="us-west->US-EAST.topics",
        corrected=("us-west->us-east.topics = a\\\\.b",),
        stops=True,
    ),
    Slip(
        name="quotes around topics",
        text=WEST_EAST + 'us-west->us-east.topics = "foo.*"\n',
        line=5,
        key="us-west->us-east.topics",
        corrected=("us-west->us-east.topics = foo.*",),
        stops=False,
    ),
    Slip(
        name="a blank behind the backslash of a continued line",
        text=WEST_EAST + "topics = foo, \\ \n  bar\n",
        line=5,
        key="topics",
        corrected=("topics = foo, \\",),
        stops=False,
    ),
    Slip(
        name="a number with a comment",
        text=WEST_EAST + "tasks.max = 5 # more is faster\n",
        line=5,
        key="tasks.max",
        corrected=("# more is faster", "tasks.max = 5"),
        stops=True,
    ),
)


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_each_slip_is_named_with_its_correction(slip: Slip, golden: Golden) -> None:
    examined = examine(slip.text, "mm2.properties")
    found = next(problem for problem in examined.problems if (problem.line, problem.key) == (slip.line, slip.key))
    golden(found.message)
    assert found.severity is (Severity.ERROR if slip.stops else Severity.WARNING)
    fixed = fix(slip.text, "mm2.properties")
    assert fixed.works
    assert fixed.examined.problems == ()
    before, after = slip.text.splitlines(), fixed.text.splitlines()
    at = (slip.line or 1) - 1
    taken = 0 if slip.line is None else 1
    assert after == before[:at] + list(slip.corrected) + before[at + taken :]


def test_line_ends_and_all_other_lines_stay_as_they_were() -> None:
    text = f"# ours\n! mine\n{WEST_EAST}us-east->us-west.enable=true\n\n groups:\\\n  a".replace("\n", "\r\n")
    wanted = text.replace("us-east->us-west.enable=true", "us-east->us-west.enabled = true")
    assert fix(text, "f").text == wanted
