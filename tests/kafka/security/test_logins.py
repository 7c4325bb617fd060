"""Micro-runs between clusters that are secured in different ways, each side its own, compared record by record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ferry.errors import BadInput, FerryError, Refused, Unreachable
from ferry.ledger.report import RunState
from ferry.plan.rules.permissions import required_acls
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.kafka.security import pki
from tests.kafka.security.clusters import BEARER, KRB5, PLAIN, SCRAM, Secured
from tests.kafka.security.conftest import Pair
from tests.kafka.security.pki import KEY_PASSWORD, PASSWORD

RECORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way into a cluster: the listener, whom the broker then sees, and the client's settings."""

    listener: str
    principal: str
    settings: Mapping[str, str]


def trusting(side: Secured) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(side.file("ca.pem"))}


def login(side: Secured, mechanism: str, jaas: str, principal: str, **more: str) -> Way:
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return Way(listener="LOGIN", principal=principal, settings=trusting(side) | settings | more)


def pem(side: Secured) -> Way:
    me = side.authority.issue("ferry-pem")
    path = pki.pem_store(side.file("ferry.pem"), me, side.authority.own, password=KEY_PASSWORD)
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.key.password": KEY_PASSWORD,
    }
    return Way(listener="TLS", principal="User:CN=ferry-pem", settings=trusting(side) | settings)


def p12(side: Secured) -> Way:
    path = pki.p12_store(side.file("ferry.p12"), side.authority.issue("ferry-p12"), side.authority.own)
    trust = side.file("trust.p12")
    if not trust.exists():
        pki.java_truststore(trust, side.file("ca.pem"), "PKCS12")
    settings = {
        "security.protocol": "SSL",
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": PASSWORD,
    }
    return Way(listener="TLS", principal="User:CN=ferry-p12", settings=settings)


def jks(side: Secured) -> Way:
    path, trust = side.file("ferry.jks"), side.file("trust.jks")
    if not path.exists():
        made = pki.p12_store(side.file("for-jks.p12"), side.authority.issue("ferry-jks"), side.authority.own)
        pki.jks_store(path, made)
        pki.java_truststore(trust, side.file("ca.pem"), "JKS")
    settings = {  # without types: JKS is Kafka's default
        "security.protocol": "SSL",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": KEY_PASSWORD,
    }
    return Way(listener="TLS", principal="User:CN=ferry-jks", settings=settings)


def plain(side: Secured) -> Way:
    return login(side, "PLAIN", f'{PLAIN} required username="plain" password="{side.password}";', "User:plain")


def scram256(side: Secured) -> Way:
    jaas = f'{SCRAM} required username="scram=256,user" password="{side.password}";'
    return login(side, "SCRAM-SHA-256", jaas, "User:scram=256,user")


def scram512(side: Secured) -> Way:
    jaas = f'{SCRAM} required username="scram512" password="{side.password}";'
    return login(side, "SCRAM-SHA-512", jaas, "User:scram512")


def client_credentials(side: Secured) -> Way:
    (client, secret), *_ = side.endpoint.clients.items()
    # Both endpoints show a certificate of the source's authority.
    trust = side.folder.parent / "source" / "ca.pem"
    jaas = (
        f'{BEARER} required clientId="{client}" clientSecret="{secret}" scope="kafka" '
        f'ssl.truststore.type="PEM" ssl.truststore.location="{trust}";'
    )
    more = {
        "sasl.oauthbearer.token.endpoint.url": side.endpoint.url,
        "sasl.login.callback.handler.class": BEARER.replace("LoginModule", "LoginCallbackHandler"),
    }
    return login(side, "OAUTHBEARER", jaas, f"User:{client}", **more)


def token_file(side: Secured) -> Way:
    path = side.file("a token")
    path.write_text(side.endpoint.token("from-a-file"))
    more = {"sasl.oauthbearer.token.endpoint.url": path.as_uri()}
    return login(side, "OAUTHBEARER", f"{BEARER} required;", "User:from-a-file", **more)


def kerberos(side: Secured, jaas: str) -> Way:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": jaas}
    return Way(listener="KERBEROS", principal=f"User:ferry.{side.realm.name}", settings=settings)


def keytab(side: Secured) -> Way:
    """By a keytab; GSSAPI is the default mechanism."""
    options = f'useKeyTab=true storeKey=true keyTab="{side.file("ferry.keytab")}" principal="ferry@{side.realm.name}"'
    return kerberos(side, f'{KRB5} required {options} serviceName="kafka";')


def ticket_cache(side: Secured) -> Way:
    """By a cache that kinit filled."""
    cache = side.realm.ticket_cache(side.file("tickets"), side.file("ferry.keytab"), "ferry")
    return kerberos(side, f'{KRB5} required useTicketCache=true ticketCache="{cache}" serviceName="kafka";')


def flow(secured: Pair, source: Way, target: Way, topic: str, **more: str) -> Lab:
    """A flow whose sides are reached in these ways."""
    alias = new_alias()
    settings = {"heartbeats.replication.enabled": "false"}
    for name, side, way in ((alias, secured.source, source), (f"t{alias}", secured.target, target)):
        settings[f"{name}.bootstrap.servers"] = side.cluster.bootstrap_of(way.listener)
        settings |= {f"{name}.{key}": value.replace("\\", "\\\\") for key, value in way.settings.items()}
    return Lab(
        source=secured.source.cluster,
        target=secured.target.cluster,
        alias=alias,
        topics=(topic,),
        settings=settings | more,
    )


def permit(secured: Pair, lab: Lab, source: Way, target: Way) -> None:
    """Exactly what `ferry acls required` says."""
    acls = [acl for acl in required_acls(lab.flow) if not acl.optional]
    secured.source.grant(source.principal, [acl for acl in acls if acl.side == "source"])
    secured.target.grant(target.principal, [acl for acl in acls if acl.side == "target"])


def fill(secured: Pair, topic: str) -> None:
    create_topic(secured.source.cluster, topic, 2)
    send(producer(secured.source.cluster), topic, numbered(RECORDS, partitions=2))


WAYS: list[tuple[Callable[[Secured], Way], Callable[[Secured], Way]]] = [
    (pem, jks),
    (jks, p12),
    (p12, plain),
    (plain, scram256),
    (scram256, scram512),
    (scram512, client_credentials),
    (client_credentials, token_file),
    (token_file, keytab),
    (keytab, keytab),
    (ticket_cache, pem),
]


@pytest.mark.parametrize(("source", "target"), WAYS, ids=lambda way: way.__name__)
def test_sides_secured_in_their_own_ways(
    secured: Pair, topic: str, source: Callable[[Secured], Way], target: Callable[[Secured], Way]
) -> None:
    fill(secured, topic)
    ways = source(secured.source), target(secured.target)
    lab = flow(secured, *ways, topic)
    permit(secured, lab, *ways)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, RECORDS), report.refusals
    assert lab.assert_equal() == RECORDS


def test_two_realms_and_a_jaas_file(secured: Pair, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source by the file in KAFKA_OPTS, as MirrorMaker has it; the target by the text of one, as its own."""
    fill(secured, topic)
    ways = keytab(secured.source), keytab(secured.target)
    files = [tmp_path / "source.conf", tmp_path / "target.conf"]
    for path, way in zip(files, ways, strict=True):
        path.write_text(f"KafkaClient {{\n  {way.settings['sasl.jaas.config']}\n}};\n")
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={files[0]}")
    unnamed = {key: value for key, value in ways[0].settings.items() if key != "sasl.jaas.config"}
    by_file = dict(ways[1].settings) | {"sasl.jaas.config": f"${{dir:{tmp_path}:target.conf}}"}
    source, target = (
        Way(listener=way.listener, principal=way.principal, settings=settings)
        for way, settings in zip(ways, (unnamed, by_file), strict=True)
    )
    lab = flow(secured, source, target, topic)
    permit(secured, lab, source, target)
    assert lab.micro_run().records == RECORDS
    assert lab.assert_equal() == RECORDS


def test_an_endpoint_that_fails_for_a_moment_is_asked_again(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    ways = client_credentials(secured.source), pem(secured.target)
    lab = flow(secured, *ways, topic)
    permit(secured, lab, *ways)
    secured.source.endpoint.failures.extend([503, 500])
    before = len(secured.source.endpoint.asked)
    assert lab.micro_run().records == RECORDS
    assert secured.source.endpoint.asked[before]["grant_type"] == ["client_credentials"]
    assert secured.source.endpoint.asked[before]["scope"] == ["kafka"]
    assert not secured.source.endpoint.failures


def without(way: Way, *keys: str) -> Way:
    kept = {key: value for key, value in way.settings.items() if not key.startswith(keys)}
    return Way(listener=way.listener, principal=way.principal, settings=kept)


def changed(way: Way, listener: str = "", **settings: str) -> Way:
    more = {key.replace("_", "."): value for key, value in settings.items()}
    return Way(listener=listener or way.listener, principal=way.principal, settings=dict(way.settings) | more)


def with_jaas(way: Way, old: str, new: str) -> Way:
    jaas = way.settings["sasl.jaas.config"]
    assert old in jaas
    return changed(way, sasl_jaas_config=jaas.replace(old, new))


BAD: dict[str, tuple[Callable[[Secured], Way], type[FerryError], str]] = {
    "another host": (
        lambda side: changed(pem(side), listener="ELSEWHERE"),
        Refused,
        r"shows a certificate for another host \(.*127\.0\.0\.1.*\): correct the address or the certificate, or empty",
    ),
    "an authority that is not trusted": (
        lambda side: changed(pem(side), ssl_truststore_location=str(side.folder.parent / "source" / "ca.pem")),
        Refused,
        r"shows a certificate that cannot be trusted .*correct ssl\.truststore\.location",
    ),
    "no client certificate": (
        lambda side: without(pem(side), "ssl.key"),
        Refused,
        r"refused our certificate .*put one into ssl\.keystore\.location",
    ),
    "a client certificate of somebody else": (
        lambda side: changed(
            pem(side),
            ssl_keystore_location=str(
                pki.pem_store(side.file("stranger.pem"), pki.Authority.create("nobody").issue("stranger"))
            ),
        ),
        Refused,
        r"refused our certificate",
    ),
    "no TLS on that port": (
        lambda side: changed(pem(side), listener="KERBEROS"),
        Unreachable,  # the broker hangs up without a word
        r"does not answer within 5 s .*: check the address, the port and the security settings",
    ),
    "a login where none is expected": (
        lambda side: changed(keytab(side), listener="PLAINTEXT"),
        Refused,
        r"expects no login on this listener: correct the port",
    ),
    "a mechanism that the listener lacks": (
        lambda side: changed(plain(side), listener="KERBEROS", security_protocol="SASL_PLAINTEXT"),
        Refused,
        r"does not offer that sasl\.mechanism",
    ),
    "a wrong PLAIN password": (
        lambda side: with_jaas(plain(side), side.password, "geheim-1"),
        Refused,
        r"refused the credentials .*correct its sasl settings",
    ),
    "a wrong SCRAM password": (
        lambda side: with_jaas(scram512(side), side.password, "geheim-2"),
        Refused,
        r"refused the credentials",
    ),
    "a wrong client secret": (
        lambda side: with_jaas(client_credentials(side), "client-geheim", "client-geheim-3"),
        Refused,
        r"the token endpoint https://127\.0\.0\.1:.*/token answers 401 .*\[hidden\].*correct clientId",
    ),
    "an endpoint that is not trusted": (
        lambda side: with_jaas(client_credentials(side), "/source/ca.pem", "/target/ca.pem"),
        Refused,
        r"the token endpoint .* shows a certificate that is not trusted",
    ),
    "a token that is none": (
        lambda side: changed(token_file(side), sasl_oauthbearer_token_endpoint_url=side.file("ca.pem").as_uri()),
        Refused,
        r"what the token file .* gave is not a token",
    ),
    "a principal that the keytab lacks": (
        lambda side: with_jaas(keytab(side), '"ferry@', '"nobody@'),
        Refused,
        r"Kerberos login of nobody@TARGET\.TEST failed .*correct principal and keyTab",
    ),
    "a service that the realm lacks": (
        lambda side: with_jaas(keytab(side), 'serviceName="kafka"', 'serviceName="broker"'),
        Refused,
        r"getting a Kerberos ticket of ferry@TARGET\.TEST for broker@127\.0\.0\.1 failed .*service\.name",
    ),
    "an empty ticket cache": (
        lambda side: with_jaas(ticket_cache(side), str(side.file("tickets")), str(side.file("none"))),
        Refused,
        r"Kerberos login of the ticket cache failed .*with kinit, or use a keytab",
    ),
    "a wrong store password": (
        lambda side: changed(jks(side), ssl_keystore_password="geheim-4"),
        BadInput,
        r"ssl\.keystore\.password: does not open .*ferry\.jks",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_at_once_in_one_sentence_without_secrets(secured: Pair, case: str) -> None:
    way, error, said = BAD[case]
    lab = flow(secured, pem(secured.source), way(secured.target), "none")
    with pytest.raises(error, match=said) as caught, lab.runs(patience_s=5) as runs:
        runs.preview()
    sentence = str(caught.value)
    # By the cluster, or by the line that is wrong.
    assert re.search(rf"(cluster t{lab.alias}\b|lab\.properties:\d+: t{lab.alias}\.)", sentence), sentence
    assert "geheim" not in sentence
    assert "\n" not in sentence


def test_an_empty_algorithm_switches_host_names_off_and_nothing_else(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    source = changed(pem(secured.source), listener="ELSEWHERE", ssl_endpoint_identification_algorithm="")
    target = pem(secured.target)
    lab = flow(secured, source, target, topic)
    permit(secured, lab, source, target)
    assert lab.micro_run().records == RECORDS
    stranger = changed(source, ssl_truststore_location=str(secured.target.file("ca.pem")))
    with pytest.raises(Refused, match="trusted"), flow(secured, stranger, target, topic).runs() as runs:
        runs.preview()
