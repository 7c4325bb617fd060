"""Files that do not work: each is refused with one sentence (file, line, key, remedy) and exit code 2."""

import re
import shutil
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from ferry.config.settings import MAX_FILE_BYTES, load, parse_settings
from ferry.errors import BadInput
from ferry.program import main
from tests.golden import Golden
from tests.kafka.security.pki import Authority, p12_store

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092, broker-2:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""

ONE_LINE_MORE = [
    "West.bootstrap.servers = h:1",
    "west->est.topics = a",
    "west->north.enabled = true",
    "wst->east.topics = a",
    "west->ea.st.topics = a",
    "west->west.enabled = true",
    "west -> east.topics = a",
    "west=>east.topics = a",
    "west \u2192 east.topics = a",
    "west\u2013>east.topics = a",
    "west-&gt;east.target.producer.ssl.key.password = geheim",
    "east->west.enabled = yes",
    "west->east.enabled = false",
    "sync.topic.configs.enabled = on",
    "heartbeats.replication.enabled = 1",
    "topics = *foo",
    "topics = a, (b",
    "west->east.topics = [a",
    "topics.exclude = a{1,3}",
    "topics = \\\\p{Lower}",
    "config.properties.exclude = (",
    "topics = a{99999999999}",
    f"topics = {'(' * 60}a{')' * 60}",
    f"west->east.topics.exclude = {'((?i)' * 40}a{')' * 40}",
    "groups = a{99999999999}",
    "ferry.merge.topics = a{99999999999}",
    "config.properties.exclude = a{99999999999}",
    "config.providers.env.param.allowlist.pattern = a{99999999999}",
    *(
        f"ferry.switch.{hook}.url = {url}?s=geheim"
        for hook in ("stop", "redirect")
        for url in (
            "http://[::1/x",
            "http://[x]/",
            "http://h:99999/x",
            "http://h:x/",
            "http://h/a b",
            "http://h/\\u00fc",
            "ftp://h/x",
            "h/x",
        )
    ),
    "tasks.max = many",
    "tasks.max = 0",
    "tasks.max = 5 # five",
    "replication.factor = 0",
    "replication.factor = 1.5",
    "replication.policy.class = com.example.Mine",
    "replication.policy.separator = /",
    "replication.policy.separator =",
    "west.consumer.isolation.level = commited",
    "west.consumer.auto.offset.reset = none",
    "west.consumer.auto.offset.reset = by_duration:PT1H",
    "ferry.start = yesterday",
    "ferry.start = 2026-01-31T06:00:00",
    "ferry.start = a:0:1,b:x:2",
    "ferry.start = a:0:1,a:0:2",
    "tasks.max = ${env:}",
    "tasks.max = ${file:/etc/x:}",
    "ferry.shedule = @daily",
    "west->east.ferry.run.max.byte = 1",
    "west.ferry.lane = x",
    "ferry.zzzz = 1",
    "west->east.ferry.transforms = masked",
    "ferry.transform.masked.topic = orders",
    "Ferry.Lane = x",
    "west->east.FERRY.lane = x",
    "ferry.schedule = every hour",
    "ferry.schedule = 61 * * * *",
    "ferry.schedule = * * * foo *",
    "ferry.schedule = @often",
    "ferry.run.max.bytes = 10 gigabytes",
    "ferry.run.max.records = 0",
    "ferry.run.max.seconds = -5",
    "ferry.task.memory.bytes = 1000",
    "ferry.chunk.seconds = 45",
    "ferry.transaction.timeout.ms = 2000",
    "ferry.throttle.bytes.per.second = 5 Mbit",
    "west->east.ferry.throttle.bytes.per.second = 0",
    "ferry.throttle.bytes = 5000",
    "ferry.retries = 5000",
    "ferry.lane = a b",
    "ferry.guard.topic.gone = ignore",
    "ferry.guard.retention.passed = restart",
    "ferry.deployment = blue/green",
    "west.ferry.deployment = x",
    "ferry.deploiment = x",
    "ferry.pool =",
    "ferry.ledger.replication.factor = x",
    "config.providers = vault",
    "topics = ${env:FERRY_NOT_SET_ANYWHERE}",
    "config.providers.file.param.allowed.paths = etc",
    "config.providers.file.param.allowed.paths =",
    "config.providers.env.param.allowed.paths = /etc",
    "config.providers.env.param.allowlist.pattern = (",
    "config.providers.vault.param.token = x",
    "west->east.config.providers = env",
    "west.config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
    "west->east.config.providers.file.param.allowed.paths = /etc",
    "topics = ${file:round.properties:a}",
    "topics = ${file:nowhere.properties:a}",
    "topics = ${file:round.properties:b}",
    "topics = ${dir:.:../x}",
    "East.ssl.key.password = geheim",
    "east.producer.compression.type = brotli",
    "transforms = mask",
    "west.consumer.interceptor.classes = x.Y",
    "west->east.producer.override.interceptor.classes = x.Y, x.Z",
    "key.converter = org.apache.kafka.connect.json.JsonConverter",
    "east.value.converter = StringConverter",
    "west->east.header.converter = x.Y",
    "topic.filter.class = com.example.Mine",
    "groups = [",
    "west->east.groups.exclude = *",
    "offset-syncs.topic.location = both",
    "emit.checkpoints.interval.seconds = 0",
    "sync.group.offsets.enabled = maybe",
    "checkpoints.topic.replication.factor = 0",
    "east.exactly.once.source.support = on",
    "use.defaults.from = me",
    "replication.policy.class = Mine",
    "replication.policy.class = tests.pure.config.policies.Nowhere",
    "replication.policy.class = tests.pure.config.policies.Raises",
    "replication.policy.class = tests.pure.config.policies.RaisesAtOnce",
    "replication.policy.class = tests.pure.config.policies.Leaves",
    "replication.policy.class = tests.pure.config.policies.ShowsAll\nreplication.policy.my.password = geheim",
    "replication.policy.class = tests.pure.config.policies.LacksMethods",
    "replication.policy.class = tests.pure.config.policies.NamesNoTopic",
    "replication.policy.class = tests.pure.config.policies.AnswersWrong",
]
"""The fifth line of a file that works without it."""

OTHERS = [
    ("west.bootstrap.servers = a:1", None, "clusters"),
    ("", None, "clusters"),
    ("us-west->us-east.enabled = true", None, "clusters"),
    ("a->b.c.source.cluster.ssl.key.password = geheim", None, "clusters"),
    ("us-east.ssl.truststore.location = /x\nus-east.consumer.fetch.max.bytes = 1", None, "clusters"),
    (
        "us.west.sasl.mechanism = PLAIN\nus-east.bootstrap.servers = h:1\nproducer.acks = 1\nssl.protocol = x",
        None,
        "clusters",
    ),
    ("a -> b.enabled = true", None, "clusters"),
    ("ssl.truststore.location = /x\ntopics = a", None, "clusters"),
    ("clusters =", 1, "clusters"),
    ("clusters = a, a\na.bootstrap.servers = h:1", 1, "clusters"),
    ("clusters = a # one\na.bootstrap.servers = h:1", 1, "clusters"),
    ("clusters = a b\na.bootstrap.servers = h:1", 1, "clusters"),
    ("clusters = west", None, "west.bootstrap.servers"),
    (BASE + "x\\u12 = 1", 5, "x\\u12"),
    ("clusters = a\na.bootstrap.servers =", 2, "a.bootstrap.servers"),
    ("clusters = a\na.bootstrap.servers = host", 2, "a.bootstrap.servers"),
    ("clusters = a\na.bootstrap.servers = node-x9092", 2, "a.bootstrap.servers"),
    ("clusters = a\na.bootstrap.servers = h:99999", 2, "a.bootstrap.servers"),
    ("clusters = a\na.bootstrap.servers = h:0", 2, "a.bootstrap.servers"),
    ("clusters = a\na.bootstrap.servers = h 9092", 2, "a.bootstrap.servers"),
    (BASE + "config.providers = v\nconfig.providers.v.class = com.x.Vault", 6, "config.providers.v.class"),
    (BASE + "config.providers.env.param.allowlist.pattern = A\ntopics = ${env:B}", 6, "topics"),
    (BASE + "config.providers.file.param.allowed.paths = /a\ntopics = ${file:/a/../b:c}", 6, "topics"),
    ("clusters = ${env:FERRY_NOT_SET_ANYWHERE}", 1, "clusters"),
    ("clusters = west, east\nwest.bootstrap.servers = a:1\nwest->east.enabled = true", None, "east.bootstrap.servers"),
]
"""Texts with the line and the key that are named."""

WEST_TLS = "west.security.protocol = SSL\nwest.ssl.truststore.type = PKCS12\nwest.ssl.truststore.location = "
EAST_TLS = "east.security.protocol = SSL\neast.ssl.keystore.type = PKCS12\neast.ssl.keystore.location = me.p12\n"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true serviceName=k"
OAUTH = (
    "west.security.protocol = SASL_SSL\nwest.sasl.mechanism = OAUTHBEARER\n"
    "west.sasl.jaas.config = org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
)
CLIENTS = [
    (f"{WEST_TLS}me.p12\nwest.ssl.truststore.password = geheim", 8, "west.ssl.truststore.password"),
    (f"{WEST_TLS}me.p12", 7, "west.ssl.truststore.password"),
    (f"{WEST_TLS}nowhere.p12", 7, "west.ssl.truststore.location"),
    (f"{WEST_TLS}notes.txt", 7, "west.ssl.truststore.location"),
    (f"{EAST_TLS}east.ssl.keystore.password = geheim", 8, "east.ssl.keystore.password"),
    (f"{EAST_TLS}east.ssl.keystore.password = store-pass\neast.ssl.key.password = geheim", 9, "east.ssl.key.password"),
    (
        "security.protocol = SSL\nwest->east.target.producer.ssl.keystore.location = me.p12",
        6,
        "west->east.target.producer.ssl.keystore.password",
    ),
    ("west.security.protocol = TLS", 5, "west.security.protocol"),
    ("west.security.protocol = SASL_SSL\nwest.sasl.mechanism = PLAIN", 6, "west.sasl.jaas.config"),
    ("security.protocol = SASL_SSL", 5, "west.sasl.jaas.config"),
    ("security.protocol = SSL\nwest.ssl.protocol = TLSv1.1", 6, "west.ssl.protocol"),
    ("west.security.protocol = SASL_SSL\nwest.sasl.mechanism = DIGEST-MD5", 6, "west.sasl.mechanism"),
    ("east.security.protocol = SASL_PLAINTEXT\neast.sasl.jaas.config = geheim", 6, "east.sasl.jaas.config"),
    (
        f"east.security.protocol = SASL_PLAINTEXT\neast.sasl.jaas.config = {KRB5} keyTab=/no principal=a;",
        6,
        "east.sasl.jaas.config",
    ),
    *(
        (f"{OAUTH}\nwest.sasl.oauthbearer.token.endpoint.url = {url}", 8, "west.sasl.oauthbearer.token.endpoint.url")
        for url in ("https://[x", "https://u:geheim@h:port/t?s=geheim", "ftp://h/t", "https:///t")
    ),
    ("west.ssl.key.password = ${env:FERRY_NOT_SET_ANYWHERE}", 5, "west.ssl.key.password"),
    ("west.consumer.fetch.max.bytes = many", 5, "west.consumer.fetch.max.bytes"),
    ("east.producer.max.request.size = 0", 5, "east.producer.max.request.size"),
    ("west->east.source.consumer.request.timeout.ms = soon", 5, "west->east.source.consumer.request.timeout.ms"),
]
"""Lines behind a file that works without them: what is found only when a client is made of them."""

BROKEN = [
    *((BASE + line, 5, re.split("[ =]", line)[0]) for line in ONE_LINE_MORE),
    *OTHERS,
    *((f"{BASE}{lines}\n", line, key) for lines, line, key in CLIENTS),
]


def title(text: str) -> str:
    """A file's name among the sentences: what it has besides BASE."""
    return " | ".join(text.removeprefix(BASE).splitlines()) or "nothing"


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


@pytest.mark.parametrize(("text", "line", "key"), BROKEN, ids=[title(text) for text, _, _ in BROKEN])
def test_a_broken_file_stops_every_command(
    text: str,
    line: int | None,
    key: str,
    golden: Golden,
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
    start = f"ferry: {place}: {key}: "
    assert sentence.startswith(start)
    assert "geheim" not in sentence
    golden(sentence.removeprefix(start))


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    "line",
    [
        "tasks.max = 9",
        "ferry.run.max.bytes = 9",
        "ferry.run.max.bytes = 9 kB",
        "ferry.rpo.seconds = 9",
        "sync.topic.acls.interval.seconds = 9",
        "ferry.schedule = 9 * * * *",
        "ferry.start = 9",
        "ferry.start = a:0:9",
        "ferry.start = a:9:0",
    ],
)
def test_a_number_with_more_digits_than_python_reads_is_a_bad_value(line: str, digits: int) -> None:
    key = line.partition(" ")[0]
    with pytest.raises(BadInput, match=f"^f:5: {re.escape(key)}: "):
        parse_settings(BASE + line.replace("9", "9" * digits), "f")


def test_there_are_enough_of_them() -> None:
    assert len(BROKEN) >= 60


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, None),
        (b"clusters = a\nx = \xff\n", 2),
        (b"\xff\xfec\0l\0", 1),
        (b"#" * (MAX_FILE_BYTES + 1), None),
        (b"# ten megabytes\n" * 700_000, None),
    ],
    ids=["no file", "a byte that is not UTF-8", "UTF-16", "a byte too many", "ten megabytes"],
)
def test_a_file_that_cannot_be_read(
    content: bytes | None, line: int | None, golden: Golden, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mm2.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(path)])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    start = f"ferry: {path}: " if line is None else f"ferry: {path}:{line}: "
    assert err.startswith(start)
    golden(err.removeprefix(start))


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--config", str(tmp_path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("\ufeff" + BASE, encoding="utf-8")
    assert load(path).path == path
