"""Files that do not work: each is refused with one sentence (file, line, key, remedy) and exit code 2."""

import re
import shutil
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from ferry.cli.app import main
from ferry.config.settings import MAX_FILE_BYTES, load
from tests.security.pki import Authority, p12_store

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092, broker-2:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""

ONE_LINE_MORE = [
    ("West.bootstrap.servers = h:1", "write west.bootstrap.servers"),
    ("west->est.topics = a", "cluster 'est' is not among clusters = west, east; did you mean east?"),
    ("west->north.enabled = true", "cluster 'north' is not among clusters = west"),
    ("wst->east.topics = a", "did you mean west?"),
    ("west->ea.st.topics = a", "; write west->east.topics = a"),
    ("west->west.enabled = true", "source and target are both 'west'"),
    ("west -> east.topics = a", "write west->east.topics = a without blanks"),
    ("west=>east.topics = a", "the arrow of a flow is ->; write west->east.topics = a"),
    ("west \u2192 east.topics = a", "the arrow of a flow is ->; write west->east.topics = a"),
    ("west\u2013>east.topics = a", "the arrow of a flow is ->; write west->east.topics = a"),
    ("west-&gt;east.target.producer.ssl.key.password = geheim", "; write west->east.target.producer.ssl.key.password"),
    ("east->west.enabled = yes", "'yes' is neither true nor false"),
    ("west->east.enabled = false", "is set on line 4 to another value; keep one"),
    ("sync.topic.configs.enabled = on", "write one of them"),
    ("heartbeats.replication.enabled = 1", "neither true nor false"),
    ("topics = *foo", "regular expression '*foo' is refused: dangling '*'"),
    ("topics = a, (b", "'(b' is refused: unclosed group"),
    ("west->east.topics = [a", "unclosed class"),
    ("topics.exclude = a{1,3}", "a comma ends a list item"),
    ("topics = \\\\p{Lower}", "\\p is not supported"),
    ("config.properties.exclude = (", "unclosed group"),
    ("tasks.max = many", "'many' is not a whole number; write one from 1 to 65536"),
    ("tasks.max = 0", "0 is out of range"),
    ("tasks.max = 5 # five", "put the comment on a line of its own"),
    ("replication.factor = 0", "or -1 for the target broker's default"),
    ("replication.factor = 1.5", "'1.5' is not a whole number"),
    ("replication.policy.class = com.example.Mine", "there is no module com"),
    ("replication.policy.separator = /", "cannot stand in a topic name"),
    ("replication.policy.separator =", "use dots, underscores or hyphens"),
    ("west.consumer.isolation.level = commited", "none of read_committed"),
    ("west.consumer.auto.offset.reset = none", "write earliest, latest"),
    ("west.consumer.auto.offset.reset = by_duration:PT1H", "'by_duration:PT1H' is not supported"),
    ("ferry.start = yesterday", "start 'yesterday' is not understood"),
    ("ferry.start = 2026-01-31T06:00:00", "has no time zone; append Z"),
    ("ferry.start = a:0:1,b:x:2", "'b:x:2' is not topic:partition:offset"),
    ("ferry.start = a:0:1,a:0:2", "given twice; keep one"),
    ("tasks.max = ${env:}", "${env:} names nothing to look up; write ${env:NAME}"),
    ("tasks.max = ${file:/etc/x:}", "${file:/etc/x:} names nothing to look up; write ${file:/etc/x:name}"),
    ("ferry.shedule = @daily", "did you mean ferry.schedule?"),
    ("west->east.ferry.run.max.byte = 1", "mean ferry.run.max.bytes?"),
    ("west.ferry.lane = x", "not behind a cluster's alias"),
    ("ferry.zzzz = 1", "is no key of Ferry; "),
    ("west->east.ferry.transforms = masked", "names transform 'masked', of which no line says anything; write ferry"),
    ("ferry.transform.masked.topic = orders", "which is written ferry.transform.NAME.KEY; did you mean topics?"),
    ("Ferry.Lane = x", "is no key of Ferry, whose keys are spelt in small letters; write ferry.lane = x"),
    ("west->east.FERRY.lane = x", "spelt in small letters; write west->east.ferry.lane = x"),
    ("ferry.schedule = every hour", "no cron expression of five fields"),
    ("ferry.schedule = 61 * * * *", "minute '61' is not understood; write 0-59"),
    ("ferry.schedule = * * * foo *", "month 'foo' is not understood"),
    ("ferry.schedule = @often", "@continuous"),
    ("ferry.run.max.bytes = 10GB", "without a unit"),
    ("ferry.run.max.records = 0", "of at least 1"),
    ("ferry.run.max.seconds = -5", "-5 is out of range"),
    ("ferry.task.memory.bytes = 1000", "of at least 1048576"),
    ("ferry.chunk.seconds = 45", "lower ferry.chunk.seconds or raise"),
    ("ferry.transaction.timeout.ms = 2000", "do not fit twice"),
    ("ferry.throttle.bytes.per.second = 5 MB", "'5 MB' is not a whole number; write one of at least 1024"),
    ("west->east.ferry.throttle.bytes.per.second = 0", "0 is out of range; write a whole number of at least 1024"),
    ("ferry.throttle.bytes = 5000", "did you mean ferry.throttle.bytes.per.second?"),
    ("ferry.retries = 5000", "from 0 to 1000"),
    ("ferry.lane = a b", "'a b' is not a name"),
    ("ferry.guard.topic.gone = ignore", "'ignore' is none of fail, skip; write one of these"),
    ("ferry.guard.retention.passed = restart", "'restart' is none of fail, skip; write one of these"),
    ("ferry.deployment = blue/green", "'blue/green' is not a name; use letters, digits"),
    ("west.ferry.deployment = x", "not behind a cluster's alias"),
    ("ferry.deploiment = x", "did you mean ferry.deployment?"),
    ("ferry.pool =", "is not a name"),
    ("ferry.ledger.replication.factor = x", "'x' is not a whole number"),
    ("config.providers = vault", "has no class; add config.providers.vault.class"),
    ("topics = ${env:FERRY_NOT_SET_ANYWHERE}", "set FERRY_NOT_SET_ANYWHERE"),
    ("config.providers.file.param.allowed.paths = etc", "'etc' is not absolute"),
    ("config.providers.file.param.allowed.paths =", "names no path"),
    ("config.providers.env.param.allowed.paths = /etc", "known is allowlist.pattern"),
    ("config.providers.env.param.allowlist.pattern = (", "unclosed group"),
    ("config.providers.vault.param.token = x", "is not declared"),
    ("topics = ${file:round.properties:a}", "holds the reference ${file:round.properties:a} again"),
    ("topics = ${file:nowhere.properties:a}", "cannot be read: No such file or directory; correct the path"),
    ("topics = ${file:round.properties:b}", "names no entry of round.properties; add b = ..."),
    ("topics = ${dir:.:../x}", "leaves the directory .; write a plain file name"),
    ("East.ssl.key.password = geheim", "write east.ssl.key.password = [hidden]"),
    ("east.producer.compression.type = brotli", "none of none, gzip, snappy, lz4, zstd; write one"),
    ("transforms = mask", "names mask, which has no class; write transforms.mask.type = org.apache"),
    ("west.consumer.interceptor.classes = x.Y", "consumer interceptor x.Y would be skipped"),
    ("west->east.producer.override.interceptor.classes = x.Y, x.Z", "producer interceptor x.Y, x.Z would be skipped"),
    ("key.converter = org.apache.kafka.connect.json.JsonConverter", "key.converter org.apache.kafka.connect.json"),
    ("east.value.converter = StringConverter", "value.converter StringConverter would be skipped"),
    ("west->east.header.converter = x.Y", "change them before or behind Ferry"),
    ("topic.filter.class = com.example.Mine", "is Java and cannot be used; write org.apache.kafka"),
    ("groups = [", "unclosed class"),
    ("west->east.groups.exclude = *", "dangling '*'"),
    ("offset-syncs.topic.location = both", "neither source nor target"),
    ("emit.checkpoints.interval.seconds = 0", "write 1 or more, or -1 for never"),
    ("sync.group.offsets.enabled = maybe", "neither true nor false"),
    ("checkpoints.topic.replication.factor = 0", "0 replicas hold nothing"),
    ("east.exactly.once.source.support = on", "none of disabled, preparing, enabled"),
    ("use.defaults.from = me", "neither source nor target"),
    ("replication.policy.class = Mine", "policy 'Mine' is not known; write org.apache.kafka"),
    ("replication.policy.class = tests.config.policies.Nowhere", "has no Nowhere; correct the name"),
    (
        "replication.policy.class = tests.config.policies.Raises",
        "raises RuntimeError in topic_source for topic 'orders' (out of order): correct the class",
    ),
    ("replication.policy.class = tests.config.policies.RaisesAtOnce", "cannot be made: KeyError"),
    ("replication.policy.class = tests.config.policies.Leaves", "raises SystemExit in topic_source for topic 'orders'"),
    (
        "replication.policy.class = tests.config.policies.ShowsAll\nreplication.policy.my.password = geheim",
        "raises ValueError in topic_source for topic 'orders' (its message shows a secret, so it is left out)",
    ),
    ("replication.policy.class = tests.config.policies.LacksMethods", "has no method topic_source; derive it"),
    (
        "replication.policy.class = tests.config.policies.NamesNoTopic",
        "'west/orders' on the target, which has other characters",
    ),
    ("replication.policy.class = tests.config.policies.AnswersWrong", "answers is_internal_topic for topic 'orders'"),
]  # fmt: skip
"""The fifth line of a file that works without it, and what is said of its key."""

OTHERS = [
    ("west.bootstrap.servers = a:1", None, "clusters", "is missing; add clusters = west"),
    ("", None, "clusters", "is missing; add clusters = primary, backup"),
    ("us-west->us-east.enabled = true", None, "clusters", "is missing; add clusters = us-west, us-east"),
    ("a->b.c.source.cluster.ssl.key.password = geheim", None, "clusters", "is missing; add clusters = a, b.c"),
    (
        "us-east.ssl.truststore.location = /x\nus-east.consumer.fetch.max.bytes = 1",
        None,
        "clusters",
        "is missing; add clusters = us-east, and the other clusters behind a comma",
    ),
    (
        "us.west.sasl.mechanism = PLAIN\nus-east.bootstrap.servers = h:1\nproducer.acks = 1\nssl.protocol = x",
        None,
        "clusters",
        "is missing; add clusters = us-east, us.west",
    ),
    ("a -> b.enabled = true", None, "clusters", "is missing; add clusters = a, b"),
    ("ssl.truststore.location = /x\ntopics = a", None, "clusters", "is missing; add clusters = primary, backup"),
    ("clusters =", 1, "clusters", "names no cluster"),
    ("clusters = a, a\na.bootstrap.servers = h:1", 1, "clusters", "listed twice; keep one"),
    ("clusters = a # one\na.bootstrap.servers = h:1", 1, "clusters", "put a comment on a line of its own"),
    ("clusters = a b\na.bootstrap.servers = h:1", 1, "clusters", "alias 'a b' is not a name"),
    ("clusters = west", None, "west.bootstrap.servers", "is missing; add west.bootstrap.servers = host:port"),
    (BASE + "x\\u12 = 1", 5, "x\\u12", "four hexadecimal digits"),
    ("clusters = a\na.bootstrap.servers =", 2, "a.bootstrap.servers", "no bootstrap server; write host:port"),
    ("clusters = a\na.bootstrap.servers = host", 2, "a.bootstrap.servers", "'host' has no port; write host:port"),
    ("clusters = a\na.bootstrap.servers = node-x9092", 2, "a.bootstrap.servers", "for example node-x:9092"),
    ("clusters = a\na.bootstrap.servers = h:99999", 2, "a.bootstrap.servers", "port 99999 of server 'h:99999'"),
    ("clusters = a\na.bootstrap.servers = h:0", 2, "a.bootstrap.servers", "out of range; write 1 to 65535"),
    ("clusters = a\na.bootstrap.servers = h 9092", 2, "a.bootstrap.servers", "is not host:port"),
    (
        BASE + "config.providers = v\nconfig.providers.v.class = com.x.Vault",
        6,
        "config.providers.v.class",
        "use one of EnvVarConfigProvider",
    ),
    (
        BASE + "config.providers.env.param.allowlist.pattern = A\ntopics = ${env:B}",
        6,
        "topics",
        "outside of the provider's allowlist",
    ),
    (
        BASE + "config.providers.file.param.allowed.paths = /a\ntopics = ${file:/a/../b:c}",
        6,
        "topics",
        "outside of the provider's allowed.paths",
    ),
    ("clusters = ${env:FERRY_NOT_SET_ANYWHERE}", 1, "clusters", "set FERRY_NOT_SET_ANYWHERE"),
    (
        "clusters = west, east\nwest.bootstrap.servers = a:1\nwest->east.enabled = true",
        None,
        "east.bootstrap.servers",
        "is missing; add east.bootstrap.servers = host:port",
    ),
]  # fmt: skip
"""Texts with the line and the key that are named, and what is said."""

WEST_TLS = "west.security.protocol = SSL\nwest.ssl.truststore.type = PKCS12\nwest.ssl.truststore.location = "
EAST_TLS = "east.security.protocol = SSL\neast.ssl.keystore.type = PKCS12\neast.ssl.keystore.location = me.p12\n"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true serviceName=k"
OAUTH = (
    "west.security.protocol = SASL_SSL\nwest.sasl.mechanism = OAUTHBEARER\n"
    "west.sasl.jaas.config = org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
)
CLIENTS = [
    (
        f"{WEST_TLS}me.p12\nwest.ssl.truststore.password = geheim",
        8,
        "west.ssl.truststore.password",
        "does not open me.p12; correct the password of that store",
    ),
    (f"{WEST_TLS}me.p12", 7, "west.ssl.truststore.password", "is missing for me.p12; add the password of that store"),
    (f"{WEST_TLS}nowhere.p12", 7, "west.ssl.truststore.location", "nowhere.p12 cannot be read: No such file"),
    (f"{WEST_TLS}notes.txt", 7, "west.ssl.truststore.location", "neither JKS nor PKCS12; correct the path"),
    (f"{EAST_TLS}east.ssl.keystore.password = geheim", 8, "east.ssl.keystore.password", "does not open me.p12"),
    (
        f"{EAST_TLS}east.ssl.keystore.password = store-pass\neast.ssl.key.password = geheim",
        9,
        "east.ssl.key.password",
        "differs from ssl.keystore.password",
    ),
    (
        "security.protocol = SSL\nwest->east.target.producer.ssl.keystore.location = me.p12",
        6,
        "west->east.target.producer.ssl.keystore.password",
        "is missing for me.p12",
    ),
    ("west.security.protocol = TLS", 5, "west.security.protocol", "'TLS' is none of PLAINTEXT, SSL"),
    (
        "west.security.protocol = SASL_SSL\nwest.sasl.mechanism = PLAIN",
        6,
        "west.sasl.jaas.config",
        "is missing for PLAIN; write org.apache.kafka",
    ),
    ("security.protocol = SASL_SSL", 5, "west.sasl.jaas.config", "is missing for GSSAPI; write com.sun"),
    (
        "security.protocol = SSL\nwest.ssl.protocol = TLSv1.1",
        6,
        "west.ssl.protocol",
        ": TLSv1.1 is not supported: Python speaks TLSv1.2 and TLSv1.3",
    ),
    (
        "west.security.protocol = SASL_SSL\nwest.sasl.mechanism = DIGEST-MD5",
        6,
        "west.sasl.mechanism",
        ": DIGEST-MD5 is not supported; use one of PLAIN",
    ),
    (
        "east.security.protocol = SASL_PLAINTEXT\neast.sasl.jaas.config = geheim",
        6,
        "east.sasl.jaas.config",
        "does not begin with a login module",
    ),
    (
        f"east.security.protocol = SASL_PLAINTEXT\neast.sasl.jaas.config = {KRB5} keyTab=/no principal=a;",
        6,
        "east.sasl.jaas.config",
        "keyTab /no cannot be read: No such file",
    ),
    *(
        (
            f"{OAUTH}\nwest.sasl.oauthbearer.token.endpoint.url = {url}",
            8,
            "west.sasl.oauthbearer.token.endpoint.url",
            f"{shown!r} is no address; write https://host/path or file:///path",
        )
        for url, shown in (
            ("https://[x", "[hidden]"),
            ("https://u:geheim@h:port/t?s=geheim", "https://h:port/t"),
            ("ftp://h/t", "ftp://h/t"),
            ("https:///t", "https:///t"),
        )
    ),
    (
        "west.ssl.key.password = ${env:FERRY_NOT_SET_ANYWHERE}",
        5,
        "west.ssl.key.password",
        "set FERRY_NOT_SET_ANYWHERE",
    ),
    ("west.consumer.fetch.max.bytes = many", 5, "west.consumer.fetch.max.bytes", "'many' is not a whole number"),
    ("east.producer.max.request.size = 0", 5, "east.producer.max.request.size", "0 is out of range"),
    (
        "west->east.source.consumer.request.timeout.ms = soon",
        5,
        "west->east.source.consumer.request.timeout.ms",
        "'soon' is not a whole number",
    ),
]  # fmt: skip
"""Lines behind a file that works without them: what is found only when a client is made of them."""

BROKEN = [
    *((BASE + line, 5, re.split("[ =]", line)[0], part) for line, part in ONE_LINE_MORE),
    *OTHERS,
    *((f"{BASE}{lines}\n", *said) for lines, *said in CLIENTS),
]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the broken ones refer to."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "round.properties").write_text("a = ${file:round.properties:a}\n")
    (folder / "notes.txt").write_text("no store at all")
    authority = Authority.create("ferry test authority")
    p12_store(folder / "me.p12", authority.issue("me"), authority.own)
    return folder


def refuse_to_connect(*_: object) -> NoReturn:
    raise AssertionError("a broken file must not reach the network")


@pytest.mark.parametrize(("text", "line", "key", "part"), BROKEN)
def test_a_broken_file_stops_every_command(
    text: str,
    line: int | None,
    key: str,
    part: str,
    beside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(beside, tmp_path, dirs_exist_ok=True)
    (tmp_path / "mm2.properties").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    monkeypatch.setattr(socket.socket, "connect", refuse_to_connect)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_to_connect)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "west->east", "--config", "mm2.properties"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    *warnings, sentence = err.splitlines()
    assert all(warning.startswith("ferry: warning: ") for warning in warnings)
    place = "mm2.properties" if line is None else f"mm2.properties:{line}"
    assert sentence.startswith(f"ferry: {place}: {key}: ")
    assert part in sentence
    assert "geheim" not in sentence


def test_there_are_enough_of_them() -> None:
    assert len(BROKEN) >= 60


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "mm2.properties: cannot be read: No such file or directory; name a file that you may read"),
        (b"clusters = a\nx = \xff\n", "mm2.properties:2: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfec\0l\0", "mm2.properties:1: byte 0xff is not UTF-8"),
        (b"#" * (MAX_FILE_BYTES + 1), "bytes are too many for a configuration file; name a properties file"),
        (b"# ten megabytes\n" * 700_000, "mm2.properties: 11200000 bytes are too many for a configuration file"),
    ],
)
def test_a_file_that_cannot_be_read(
    content: bytes | None, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(path)])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert part in err


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--config", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("\ufeff" + BASE, encoding="utf-8")
    assert load(path).path == path
