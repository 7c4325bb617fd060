"""Copies over TLS and SASL; certificates and sessions that end while a run copies."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.net.sasl.scram import ScramClient

from ferry.dev import ClusterSpec, Listener, RunningCluster, up
from ferry.errors import BadInput, FerryError, Refused
from ferry.jvm import FAST_START
from ferry.ledger.report import RunState
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.kafka.run.certificates import Authority, expiry
from tests.kafka.run.hooks import Hooks, copy_held
from tests.kafka.security.tokens import TokenEndpoint
from tests.program import ferry, finished, start
from tests.quotas import held
from tests.spark.jobs import until
from tests.tiers import ANSWER_S, PATIENCE

IDLE_MS = 1_500
"""After this the broker closes a connection that rests, so that a held run has to connect again."""

SESSION_MS = 1_000
SHORT_SECONDS = 3.0
"""How long a certificate lives with which a copy begins; on a busy machine the next one lives longer."""

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
TOKEN_SECONDS = 2
PATIENCE_SECONDS = 2 * PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A broker with a TLS listener that asks for a client's certificate, and one with logins by SCRAM and by tokens."""

    cluster: RunningCluster
    authority: Authority
    endpoint: TokenEndpoint

    def tls(self, side: str, client: Path) -> dict[str, str]:
        """Settings by which the cluster `side` is reached over TLS, with the client's certificate in a file."""
        return {
            f"{side}.bootstrap.servers": self.cluster.bootstrap_of("SECURE"),
            f"{side}.security.protocol": "SSL",
            f"{side}.ssl.truststore.type": "PEM",
            f"{side}.ssl.truststore.location": str(self.authority.ca_file),
            f"{side}.ssl.keystore.type": "PEM",
            f"{side}.ssl.keystore.location": str(client),
        }

    def login(self, side: str, password: str) -> dict[str, str]:
        """Settings by which the cluster `side` is reached with a SCRAM login of the user `ferry`."""
        return {
            f"{side}.bootstrap.servers": self.cluster.bootstrap_of("LOGIN"),
            f"{side}.security.protocol": "SASL_PLAINTEXT",
            f"{side}.sasl.mechanism": "SCRAM-SHA-256",
            f"{side}.sasl.jaas.config": f'{SCRAM} username="ferry" password="{password}";',
        }

    def token(self, side: str) -> dict[str, str]:
        """Settings by which the cluster `side` is reached with tokens of the endpoint."""
        ((client, secret),) = self.endpoint.clients.items()
        trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{self.authority.ca_file}"'
        return {
            f"{side}.bootstrap.servers": self.cluster.bootstrap_of("LOGIN"),
            f"{side}.security.protocol": "SASL_PLAINTEXT",
            f"{side}.sasl.mechanism": "OAUTHBEARER",
            f"{side}.sasl.oauthbearer.token.endpoint.url": self.endpoint.url,
            f"{side}.sasl.jaas.config": f'{BEARER} clientId="{client}" clientSecret="{secret}" {trust};',
        }

    def show(self, certificate: Path) -> None:
        """Let the broker show another certificate, and wait until it does."""
        name = "listener.name.secure.ssl.keystore.location"
        entry = ConfigEntry(name, str(certificate), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})  # held: its answers die with it
        admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
        host, port = self.cluster.bootstrap_of("SECURE").split(":")
        until = time.monotonic() + ANSWER_S
        while ssl.get_server_certificate((host, int(port))) not in certificate.read_text():
            assert time.monotonic() < until, "the broker does not show the new certificate"
            time.sleep(0.05)

    def permit(self, password: str) -> None:
        """Give the user `ferry` a password."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        self._alter(UserScramCredentialUpsertion("ferry", info, password.encode()))

    def revoke(self) -> None:
        """Take the user's login away; sessions go on until they end."""
        self._alter(UserScramCredentialDeletion("ferry", ScramMechanism.SCRAM_SHA_256))

    def _alter(self, alteration: UserScramCredentialAlteration) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})  # as above
        admin.alter_user_scram_credentials([alteration])["ferry"].result(ANSWER_S)


@pytest.fixture(scope="module")
def guarded(cluster_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One broker for the module."""
    authority = Authority.create(tmp_path_factory.mktemp("certificates"))
    endpoint = TokenEndpoint({"ferry": "geheim"}, life=TOKEN_SECONDS)
    keys = endpoint.write_keys(authority.folder / "keys.json").as_uri()
    secure, login = "listener.name.secure", "listener.name.login"
    spec = ClusterSpec(
        name="credentials",
        listeners=(
            Listener(name="PLAINTEXT", protocol="PLAINTEXT"),
            Listener(name="SECURE", protocol="SSL"),
            Listener(name="LOGIN", protocol="SASL_PLAINTEXT"),
        ),
        properties={
            f"{secure}.ssl.client.auth": "required",
            f"{secure}.ssl.keystore.type": "PEM",
            f"{secure}.ssl.keystore.location": str(authority.issue("broker")),
            f"{secure}.ssl.truststore.type": "PEM",
            f"{secure}.ssl.truststore.location": str(authority.ca_file),
            f"{login}.sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
            f"{login}.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
            f"{login}.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
            f"{login}.oauthbearer.sasl.jaas.config": f"{BEARER};",
            f"{login}.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{login}.oauthbearer.connections.max.reauth.ms": str(1000 * TOKEN_SECONDS),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "connections.max.idle.ms": str(IDLE_MS),
            "num.network.threads": "1",  # each one takes over a new certificate in its own time
        },
        java_options=(*FAST_START, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"),
    )
    cluster = up(spec, home=cluster_home)
    with endpoint.serving(authority.issue("endpoint")):
        yield Guarded(cluster=cluster, authority=authority, endpoint=endpoint)
    cluster.stop()


def new_lab(source: RunningCluster, target: RunningCluster, topic: str, *, records: int = 4_000) -> Lab:
    """Four partitions, two slots, small batches and chunks."""
    create_topic(source, topic, 4)
    send(producer(source, batch_num_messages=50), topic, numbered(records, partitions=4, size=300))
    settings = {"ferry.chunk.bytes": "200000"}
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=settings)


def having(lab: Lab, settings: dict[str, str]) -> Lab:
    """The same flow with further settings."""
    return replace(lab, settings={**lab.settings, **settings})


def copy_through(lab: Lab, run: str, hooks: Hooks) -> None:
    """Plan a run and copy its first slot with hooks."""
    with lab.runs() as runs:
        plan = runs.open_run(run, local_origin())
        copy_held(runs, plan, plan.used_slots[0], hooks)


def outlast(ends: float) -> None:
    """Wait until a certificate has expired, and a connection that rested is closed: the receipts need a new one."""
    pass_by(max(ends, time.time() + IDLE_MS / 1000) + 1)


def expired(lab: Lab, renew: Callable[[float], Path]) -> FerryError:
    """What ends a copy whose certificate expires when its first chunk is about to be committed.

    `renew` makes a certificate that is valid for so many seconds. If it expires before the chunk is there, it lived too
    short for this machine, and a new run has one that lives twice as long: the limit of the test is the only bound.
    """
    life = SHORT_SECONDS
    while True:
        hooks = Hooks(before={"append_receipts": partial(outlast, expiry(renew(life)))})
        with pytest.raises(FerryError) as caught:
            copy_through(lab, f"through-{life:g}", hooks)
        if not hooks.before:
            return caught.value
        life *= 2


def pass_by(moment: float) -> None:
    """Wait until the wall clock has passed a moment; only certificates and sessions look at it."""
    while (left := moment - time.time()) > 0:
        time.sleep(left)


@pytest.mark.parametrize("at", ["source", "target"])
def test_a_copy_over_tls_is_equal(
    source_cluster: RunningCluster, target_cluster: RunningCluster, guarded: Guarded, topic: str, at: str
) -> None:
    pair = (guarded.cluster, target_cluster) if at == "source" else (source_cluster, guarded.cluster)
    create_topic(pair[0], topic, 3)
    # Batches longer and shorter than a TLS record, which holds 16 KiB.
    for size, count in ((20, 3_000), (2_000, 3_000), (200_000, 60)):
        send(producer(pair[0], compression_type="lz4"), topic, numbered(count, partitions=3, size=size))
        send(producer(pair[0]), topic, numbered(count, partitions=3, size=size))
    lab = Lab(source=pair[0], target=pair[1], alias=new_alias(), topics=(topic,))
    side = lab.alias if at == "source" else f"t{lab.alias}"
    lab = having(lab, guarded.tls(side, guarded.authority.issue("client")))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 12_120)
    assert lab.assert_equal() == 12_120


def test_a_client_without_a_certificate_is_told_so(
    source_cluster: RunningCluster, guarded: Guarded, topic: str
) -> None:
    lab = Lab(source=source_cluster, target=guarded.cluster, alias=new_alias(), topics=(topic,))
    settings = guarded.tls(f"t{lab.alias}", guarded.authority.ca_file)
    del settings[f"t{lab.alias}.ssl.keystore.location"]
    with pytest.raises(Refused, match=r"certificate .*ssl\.keystore\.location"):
        having(lab, settings).micro_run()


@pytest.mark.parametrize("whose", ["client", "broker"])
def test_a_certificate_that_expires_mid_run_is_named_and_the_next_run_completes(
    source_cluster: RunningCluster, guarded: Guarded, topic: str, tmp_path: Path, whose: str
) -> None:
    lab = new_lab(source_cluster, guarded.cluster, topic)
    client = guarded.authority.issue("client")
    lab = having(lab, guarded.tls(f"t{lab.alias}", client))
    assert lab.micro_run().state is RunState.SUCCESS
    send(producer(source_cluster, batch_num_messages=50), topic, numbered(4_000, partitions=4, size=300))

    def renew(seconds: float) -> Path:
        """The certificate of the side in question, valid for some seconds; connections are made with it from now on."""
        if whose == "client":
            return guarded.authority.issue("client", seconds=seconds, path=client)
        shown = guarded.authority.issue("broker", seconds=seconds)
        guarded.show(shown)
        return shown

    words = {
        "client": "our certificate .*expired",
        "broker": "trusted .*expired",
    }
    try:
        with pytest.raises(Refused, match=f"t{lab.alias} .*{words[whose]}") as caught:
            raise expired(lab, renew)
        assert "\n" not in str(caught.value)
        said = ferry("run", str(lab.flow.flow), config=lab.write(tmp_path))
        assert (said.code, said.out) == (2, "")
        assert str(caught.value) in said.err
    finally:
        renew(86_400)
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == 8_000


def test_a_run_outlives_its_sessions(
    source_cluster: RunningCluster, guarded: Guarded, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The throttle makes the copy longer than three sessions, however fast the machine is."""
    logins: list[str] = []
    first_message = ScramClient.first_message

    def login(self: ScramClient) -> object:
        logins.append("one")
        return first_message(self)

    monkeypatch.setattr(ScramClient, "first_message", login)
    guarded.permit("secret")
    create_topic(source_cluster, topic)
    client = producer(source_cluster, batch_num_messages=10)
    send(client, topic, numbered(3_000))
    lab = Lab(source=source_cluster, target=guarded.cluster, alias=new_alias(), topics=(topic,))
    slow = {"ferry.chunk.bytes": "1", "ferry.throttle.bytes.per.second": "100000"}
    lab = having(lab, {**guarded.login(f"t{lab.alias}", "secret"), **slow})
    with lab.runs() as runs:
        begun: list[int] = []
        hooks = Hooks(after={"commit": lambda: begun.append(len(logins))})
        copy_held(runs, runs.open_run("long", local_origin()), 0, hooks)
        assert begun, "the first commit"
        assert len(logins) > begun[0], "no session ended while the copy ran"
        assert runs.report("long").state is RunState.SUCCESS
        # A run that is held sleeps over the end of its session; the broker hangs up on the next request.
        send(client, topic, numbered(100, start=3_000))
        hooks = Hooks(before={"commit": lambda: pass_by(time.time() + 2 * SESSION_MS / 1000)})
        copy_held(runs, runs.open_run("held", local_origin()), 0, hooks)
        assert not hooks.before
        assert runs.report("held").state is RunState.SUCCESS
    assert lab.assert_equal() == 3_100


def test_a_login_that_is_taken_away_mid_run_is_named_and_the_next_run_completes(
    source_cluster: RunningCluster, guarded: Guarded, topic: str, tmp_path: Path
) -> None:
    guarded.permit("before")
    lab = new_lab(source_cluster, guarded.cluster, topic, records=20_000)
    lab = having(lab, {"ferry.chunk.bytes": "1"})
    before = having(lab, guarded.login(f"t{lab.alias}", "before"))

    with held(lab, 100_000):
        process = start("run", str(lab.flow.flow), config=before.write(tmp_path))
        until(lambda: has_receipts(lab), "a first receipt")
        guarded.revoke()
        said = finished(process)

    assert said.code in (1, 2), said
    assert (
        f"cluster t{lab.alias} at {guarded.cluster.bootstrap_of('LOGIN')} refused the credentials"
        in said.err + said.out
    )
    assert "correct its sasl settings" in said.err + said.out
    assert "Traceback" not in said.err
    assert 0 < sum(receipt.records for receipt in lab.receipts()) < 20_000
    guarded.permit("after")
    after = having(lab, guarded.login(f"t{lab.alias}", "after"))
    assert after.micro_run().state is RunState.SUCCESS
    assert after.assert_equal() == 20_000


def test_a_token_that_is_not_renewed_mid_run_is_named_and_the_next_run_completes(
    source_cluster: RunningCluster, guarded: Guarded, topic: str, tmp_path: Path
) -> None:
    lab = new_lab(source_cluster, guarded.cluster, topic, records=40_000)
    lab = having(lab, {"ferry.chunk.bytes": "1"})
    by_token = having(lab, guarded.token(f"t{lab.alias}"))

    with held(lab, 100_000):
        process = start(
            "run", str(lab.flow.flow), "--quiet", "--patience", f"{PATIENCE_SECONDS:g}", config=by_token.write(tmp_path)
        )
        until(lambda: has_receipts(lab), "a first receipt")
        asked = len(guarded.endpoint.asked)
        guarded.endpoint.failures.extend([503] * 10_000)
        said = finished(process, 120)
        guarded.endpoint.failures.clear()

    assert said.code == 1, said  # some of it is copied
    assert "Traceback" not in said.err
    *_, sentence = said.err.splitlines()
    assert sentence.startswith(f"ferry: cluster t{lab.alias}"), said.err
    assert f" {guarded.endpoint.url} does not answer (503 " in sentence, said.err
    assert "geheim" not in said.err + said.out
    assert len(guarded.endpoint.asked) > asked, "no token ran out"
    assert 0 < sum(receipt.records for receipt in lab.receipts()) < 40_000
    assert by_token.micro_run().state is RunState.SUCCESS
    assert by_token.assert_equal() == 40_000


def has_receipts(lab: Lab) -> bool:
    """Whether the flow has committed anything."""
    try:
        return bool(lab.receipts())
    except BadInput:
        return False  # there is no ledger yet
