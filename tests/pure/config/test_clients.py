"""Java client properties as options of Ferry's connections and of confluent-kafka, and what is refused."""

import socket
from pathlib import Path

import pytest
from kafka.net.manager import KafkaConnectionManager

from ferry.config.flow.clients import fetch_options, kafka_python_options, produce_options
from ferry.config.flow.librdkafka import librdkafka_options
from ferry.config.login.allowed import ALLOWED_URLS
from ferry.config.login.jaas import KAFKA_OPTS, parse_jaas
from ferry.config.login.security import KerberosLogin, OAuthLogin, PasswordLogin
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput, FerryError, Refused
from ferry.lane.connections import manager_options
from ferry.model import Codec, Compression
from tests.golden import Golden, brief

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
SERVERS = {"bootstrap.servers": "a:1, b:2"}
SASL = SERVERS | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} required username="ann" password="p;\\"= x";',
}
OAUTH = SERVERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": BEARER.replace("LoginModule", "LoginCallbackHandler"),
    ENDPOINT: "https://login.example/token",
    "sasl.jaas.config": f'{BEARER} required clientId=me clientSecret="s3cret" scope=all extension_tenant=blue;',
}


def test_defaults_are_javas() -> None:
    options = kafka_python_options(SERVERS)
    assert options.bootstrap_servers == ("a:1", "b:2")
    assert (options.security_protocol, options.tls, options.login) == ("PLAINTEXT", None, None)
    assert (options.request_timeout_ms, options.reconnect_backoff_max_ms) == (30_000, 1_000)
    assert {name for name, _, _ in options.socket_options} == {socket.IPPROTO_TCP, socket.SOL_SOCKET}


def test_every_option_is_one_that_kafka_python_knows() -> None:
    for properties in (SERVERS, SASL, OAUTH):
        assert set(manager_options(kafka_python_options(properties))) <= set(KafkaConnectionManager.DEFAULT_CONFIG)


def test_explicit_values_reach_both_clients() -> None:
    properties = SERVERS | {
        "client.id": "me",
        "request.timeout.ms": "5000",
        "receive.buffer.bytes": "65536",
        "send.buffer.bytes": "-1",
        "reconnect.backoff.ms": "7",
        "security.protocol": "ssl",
        "ssl.endpoint.identification.algorithm": "",
    }
    ours = kafka_python_options(properties)
    assert (ours.client_id, ours.request_timeout_ms, ours.reconnect_backoff_ms) == ("me", 5000, 7)
    assert (socket.SOL_SOCKET, socket.SO_RCVBUF, 65536) in ours.socket_options
    assert all(option != socket.SO_SNDBUF for _, option, _ in ours.socket_options)
    assert ours.security_protocol == "SSL"
    assert ours.tls is not None
    assert not ours.tls.check_hostname
    theirs = librdkafka_options(properties)
    assert theirs["ssl.endpoint.identification.algorithm"] == "none"
    assert (theirs["client.id"], theirs["socket.receive.buffer.bytes"]) == ("me", 65536)


def test_a_login_over_tls() -> None:
    options = kafka_python_options(SASL)
    assert options.login == PasswordLogin(mechanism="SCRAM-SHA-512", username="ann", password='p;"= x')
    assert options.tls is not None
    assert options.tls.check_hostname
    assert 'p;"' not in repr(options)
    theirs = librdkafka_options(SASL)
    assert (theirs["sasl.username"], theirs["ssl.endpoint.identification.algorithm"]) == ("ann", "https")


def test_a_scram_user_is_escaped_where_the_message_has_marks() -> None:
    jaas = {"sasl.jaas.config": f'{SCRAM} required username="a=b,c" password="p";'}
    assert manager_options(kafka_python_options(SASL | jaas))["sasl_plain_username"] == "a=3Db=2Cc"


def test_client_credentials_by_kafkas_new_keys_and_by_the_module() -> None:
    login = kafka_python_options(OAUTH).login
    assert isinstance(login, OAuthLogin)
    assert (login.client_id, login.client_secret, login.scope) == ("me", "s3cret", "all")
    assert login.extensions == {"tenant": "blue"}
    assert "s3cret" not in repr(login)
    newer = OAUTH | {
        "sasl.oauthbearer.client.credentials.client.id": "you",
        "sasl.oauthbearer.client.credentials.client.secret": "other",
        "sasl.oauthbearer.scope": "few",
    }
    login = kafka_python_options(newer).login
    assert isinstance(login, OAuthLogin)
    assert (login.client_id, login.client_secret, login.scope) == ("you", "other", "few")
    assert librdkafka_options(OAUTH)["sasl.oauthbearer.method"] == "oidc"


def test_a_token_file_is_named_as_an_address(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "a token"
    path.write_text("abc.def.ghi\n")
    login = kafka_python_options(OAUTH | {ENDPOINT: path.as_uri()}).login
    assert isinstance(login, OAuthLogin)
    assert (login.token_file, login.token, login.endpoint_url) == (str(path), "abc.def.ghi", None)
    with pytest.raises(Refused) as caught:
        librdkafka_options(OAUTH | {ENDPOINT: path.as_uri()})
    golden(caught.value)


@pytest.mark.parametrize("url", ["https://login.example/token", "FILE"])
def test_a_list_of_token_endpoints_counts_for_files_too(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("abc.def.ghi\n")
    properties = OAUTH | {ENDPOINT: url.replace("FILE", path.as_uri())}
    monkeypatch.setenv(KAFKA_OPTS, f"-D{ALLOWED_URLS}=https://other.example/token")
    with pytest.raises(BadInput, match=ALLOWED_URLS):
        kafka_python_options(properties)
    monkeypatch.setenv(KAFKA_OPTS, f"-D{ALLOWED_URLS}=https://other.example/token,{properties[ENDPOINT]}")
    assert isinstance(kafka_python_options(properties).login, OAuthLogin)


@pytest.fixture
def keytab(tmp_path: Path) -> Path:
    path = tmp_path / "me.keytab"
    path.write_bytes(b"\x05\x02 and keys")
    return path


def kerberos(options: str) -> dict[str, str]:
    return SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": f"{KRB5} required {options};"}


def test_kerberos_by_keytab_takes_its_bytes_along(keytab: Path) -> None:
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="me@HERE" serviceName="kafka"'
    login = kafka_python_options(kerberos(options)).login  # GSSAPI is Java's default mechanism
    assert login == KerberosLogin(
        service_name="kafka",
        principal="me@HERE",
        keytab_path=str(keytab),
        keytab=keytab.read_bytes(),
        ticket_cache=None,
    )
    assert "and keys" not in repr(login)


def test_kerberos_by_ticket_cache() -> None:
    found = kerberos('useTicketCache=true ticketCache="/tmp/krb5cc_7"') | {"sasl.kerberos.service.name": "broker"}
    login = kafka_python_options(found).login
    assert isinstance(login, KerberosLogin)
    assert (login.ticket_cache, login.principal, login.service_name) == ("/tmp/krb5cc_7", None, "broker")


def test_a_jaas_file_serves_where_the_configuration_has_none(
    keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mirrormaker jaas.conf"
    path.write_text(
        f"""
        // as MirrorMaker's users have it
        KafkaServer {{ {KRB5} required keyTab="/other"; }};
        KafkaClient {{
            {KRB5} required
            useKeyTab=true  /* with a comment */
            keyTab="{keytab}"
            storeKey=true
            useTicketCache=false
            serviceName="kafka"
            principal="mirrormaker/${{where}}@HERE";
        }};
        """
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g '-Djava.security.auth.login.config={path}' -Dwhere=host.example")
    properties = kerberos("")
    login = kafka_python_options({k: v for k, v in properties.items() if k != "sasl.jaas.config"}).login
    assert isinstance(login, KerberosLogin)
    assert login.principal == "mirrormaker/host.example@HERE"
    # The same text may be the value itself, for instance by ${dir:...}: then each cluster has its own file.
    assert kafka_python_options(properties | {"sasl.jaas.config": path.read_text()}).login == login


@pytest.mark.parametrize(
    "text",
    [
        None,
        "KafkaServer { m required; };",
        "KafkaClient { m required; n required; };",
        "KafkaClient { m required; }",
        "KafkaClient { m required a=b };",
        "KafkaClient { m required a='${not.set}'; };",
        "m required;",
    ],
)
def test_a_broken_jaas_file_is_named(
    text: str | None, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jaas.conf"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={path}")
    with pytest.raises(BadInput) as caught:
        kafka_python_options(SERVERS | {"security.protocol": "SASL_PLAINTEXT"})
    golden(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        "useKeyTab=true principal=me serviceName=kafka",
        "useKeyTab=true keyTab=/nowhere principal=me serviceName=kafka",
        "useKeyTab=true keyTab=/etc/passwd principal=me serviceName=kafka",
        "useKeyTab=true keyTab=/etc/passwd serviceName=kafka",
        "useTicketCache=true",
        "serviceName=kafka",
    ],
)
def test_broken_kerberos_logins(changed: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        kafka_python_options(kerberos(changed))
    golden(caught.value)


def test_two_service_names_that_differ_are_refused_as_in_java(golden: Golden) -> None:
    properties = kerberos("useTicketCache=true serviceName=kafka") | {"sasl.kerberos.service.name": "broker"}
    with pytest.raises(BadInput) as wrong:
        kafka_python_options(properties)
    golden(wrong.value)


def test_a_listener_name_before_an_address_is_dropped() -> None:
    assert kafka_python_options({"bootstrap.servers": "SSL://a:1,[::1]:2"}).bootstrap_servers == ("a:1", "[::1]:2")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"bootstrap.servers": ""}, BadInput),
        ({"request.timeout.ms": "soon"}, BadInput),
        ({"receive.buffer.bytes": "-2"}, BadInput),
        ({"security.protocol": "TLS"}, BadInput),
        ({"client.dns.lookup": "default"}, BadInput),
        ({"ssl.endpoint.identification.algorithm": "none"}, BadInput),
        ({"ssl.truststore.location": "/nowhere"}, BadInput),
        ({"ssl.cipher.suites": "X"}, Refused),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, Refused),
        ({"sasl.mechanism": "GSSAPI"}, BadInput),
        ({"sasl.mechanism": "OAUTHBEARER"}, BadInput),
        ({"sasl.mechanism": "PLAIN"}, BadInput),
        ({"sasl.login.class": "x.Y"}, Refused),
        ({"sasl.login.callback.handler.class": "x.Y"}, Refused),
        ({"sasl.jaas.config": f'{SCRAM} required username="a" password="geheim" tokenauth=true;'}, Refused),
        (OAUTH | {ENDPOINT: ""}, BadInput),
        (OAUTH | {ENDPOINT: "ftp://me:geheim@host/x"}, BadInput),
        (OAUTH | {ENDPOINT: "file:///nowhere"}, BadInput),
        (OAUTH | {"sasl.jaas.config": f"{BEARER} required;"}, BadInput),
        (OAUTH | {"sasl.login.callback.handler.class": "x.Y"}, Refused),
        (OAUTH | {"sasl.oauthbearer.jwt.retriever.class": "x.Y"}, Refused),
        (OAUTH | {"sasl.login.read.timeout.ms": "x"}, BadInput),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann";'}, BadInput),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann" password="p"'}, BadInput),
        ({"sasl.jaas.config": "geheim"}, BadInput),
    ],
    ids=brief,
)
def test_what_cannot_be_honoured_is_refused(changed: dict[str, str], error: type[FerryError], golden: Golden) -> None:
    with pytest.raises(error) as caught:
        kafka_python_options(SASL | changed)
    golden(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_login_without_configuration_shows_what_to_write(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        kafka_python_options(SERVERS | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"})
    golden(caught.value)


def test_security_of_a_protocol_that_is_not_in_use_is_not_looked_at() -> None:
    assert kafka_python_options(SERVERS | {"ssl.truststore.location": "/x.jks"}).tls is None


def test_fetch_and_produce_sizes() -> None:
    fetch = fetch_options({"fetch.max.bytes": "5", "max.partition.fetch.bytes": "3", "client.rack": "r1"})
    assert (fetch.max_bytes, fetch.partition_max_bytes, fetch.min_bytes, fetch.rack) == (5, 3, None, "r1")
    assert produce_options({"max.request.size": "9"}).max_request_bytes == 9
    assert produce_options({}).max_request_bytes is None


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, None),
        ({"compression.lz4.level": "5"}, None),
        ({"compression.type": "none"}, Compression(codec=Codec.NONE)),
        ({"compression.type": "snappy"}, Compression(codec=Codec.SNAPPY)),
        ({"compression.type": "lz4", "compression.lz4.level": "17"}, Compression(codec=Codec.LZ4, level=17)),
        ({"compression.type": "gzip", "compression.gzip.level": "-1"}, Compression(codec=Codec.GZIP, level=-1)),
        ({"compression.type": "zstd", "compression.lz4.level": "x"}, Compression(codec=Codec.ZSTD)),
    ],
)
def test_compression_of_a_producer(properties: dict[str, str], wanted: Compression | None) -> None:
    assert produce_options(properties).compression == wanted


@pytest.mark.parametrize(("codec", "level"), [("gzip", "10"), ("gzip", "-2"), ("lz4", "0"), ("zstd", "23")])
def test_levels_have_kafkas_bounds(codec: str, level: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        produce_options({"compression.type": codec, f"compression.{codec}.level": level})
    golden(caught.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ("m REQUIRED a=b c = 'd e' ;", {"a": "b", "c": "d e"}),
        ("m required // why\n a=b /* c=d; */ ;", {"a": "b"}),
        ('m required a="\\101\\t\\q";', {"a": "A\tq"}),
        ('m required\n  a="x\\"y\\\\z"\n  b="";\n', {"a": 'x"y\\z', "b": ""}),
    ],
)
def test_jaas(text: str, options: dict[str, str]) -> None:
    login = parse_jaas(text)
    assert (login.module, login.options) == ("m", options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "m sometimes;",
        "m required a;",
        "m required a=;",
        'm required a="b;',
        'm required a="b"c";',
        'm required a="b\n" c="d";',
        "m required a=b",
        "m required; n required;",
    ],
)
def test_broken_jaas(text: str, golden: Golden) -> None:
    with pytest.raises(BadValue) as caught:
        parse_jaas(text)
    golden(caught.value)
