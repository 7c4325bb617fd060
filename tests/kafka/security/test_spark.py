"""Workers of a Spark cluster between secured clusters: certificate and login reach them with the task, and only so."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ferry.ledger.report import RunState
from ferry.ports import free_ports
from ferry.run.spark.credentials_pipe import emptied, offered
from ferry.run.spark.package import zip_package
from tests.airflow import planted
from tests.harness import create_topic, numbered, producer, send
from tests.kafka.security import pki
from tests.kafka.security.clusters import Secured
from tests.kafka.security.conftest import Pair
from tests.kafka.security.test_logins import Way, changed, flow, keytab, pem, permit, with_jaas
from tests.spark.jobs import Standalone, plan, standalone, submit, ui_conf, until
from tests.tiers import ANSWER_S

RECORDS = 2_400
VARIABLE = "FERRY_KEY_PASSWORD"
CONTROL = {"an executor": "CoarseGrainedExecutorBackend"}
"""No secret; that it is found shows that the executors were looked at."""

Hidden = tuple[Way, planted.Secrets]
"""A way into a cluster whose secrets are references, or files of the test's own, and these secrets."""


@pytest.fixture(scope="module")
def spark(secured: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers. They know the realms by krb5.conf, as every machine does, and no secret."""
    with standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


def certificate(side: Secured, vault: Path) -> Hidden:
    """TLS with a client certificate; the password of its key is in a variable."""
    password, me = secrets.token_hex(16), side.authority.issue("ferry-pem")
    store = pki.pem_store(vault / "client.pem", me, side.authority.own, password=password)
    way = changed(pem(side), ssl_keystore_location=str(store), ssl_key_password=f"${{env:{VARIABLE}}}")
    return way, {VARIABLE: password, "key": me.key_pem().splitlines()[2]}


def key_table(side: Secured, vault: Path) -> Hidden:
    """Kerberos; the login is in a file of its own, and the keytab beside it."""
    own = vault / "client.keytab"
    content = side.file("ferry.keytab").read_bytes()
    own.write_bytes(content)
    way = with_jaas(keytab(side), str(side.file("ferry.keytab")), str(own))
    path = vault / "logins.properties"
    path.write_text(f"login = {way.settings['sasl.jaas.config']}\n")
    # Of the last key; behind it stands its version.
    return changed(way, sasl_jaas_config=f"${{file:{path}:login}}"), {"keytab": content[-20:-4]}


def test_executors_log_in_with_what_the_task_brings(
    secured: Pair,
    spark: Standalone,
    topic: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(secured.source.cluster, topic, 4)
    send(producer(secured.source.cluster, batch_num_messages=20), topic, numbered(RECORDS, partitions=4))
    vault, away = tmp_path / "vault", tmp_path / "away"
    vault.mkdir()
    of_source, hidden = key_table(secured.source, vault)
    of_target, more = certificate(secured.target, vault)
    hidden = {**hidden, **more}
    monkeypatch.setenv(VARIABLE, str(hidden[VARIABLE]))
    lab = flow(secured, of_source, of_target, topic, **{"ferry.chunk.bytes": "1"})
    permit(secured, lab, of_source, of_target)
    plan(lab, "secured")
    package = zip_package(tmp_path / "ferry.zip")
    logged = planted.environment(tmp_path)[planted.LOGGED]
    (ui,) = free_ports(1)
    with planted.Watch({**hidden, **CONTROL}) as watch, offered(lab.flow, tmp_path / "clients") as pipe:
        job = submit(
            lab,
            "secured",
            tmp_path,
            master=spark.url,
            arguments=(
                *("--py-files", str(package), "--executor-memory", "512m"),
                *(word for key, value in ui_conf(ui).items() for word in ("--conf", f"{key}={value}")),
            ),
            job=("--clients", str(pipe)),
            environment={**emptied(lab.flow, os.environ), planted.LOGGED: logged},
        )
        page = f"http://127.0.0.1:{ui}"
        until(lambda: planted.shows(f"{page}/environment/", b"spark.submit.pyFiles"), "the pages of the driver")
        shown = list(planted.pages(page, f"{page}/api/v1/applications"))
        # Asked of the open listener: logging in again and again would take the executors' cores.
        reader = Consumer({"bootstrap.servers": lab.target.bootstrap, "group.id": "nobody"})
        copy = TopicPartition(lab.target_topic(topic), 0)
        until(lambda: reader.get_watermark_offsets(copy, timeout=ANSWER_S)[1] > 0, "the first records")
        reader.close()
        # From here on nobody can read the files; fresh executors have to log in all the same.
        vault.rename(away)
        until(lambda: len(spark.executors()) == 2, "two executors", 30)
        assert job.process.poll() is None, f"ended before it was hit:\n{job.text()}"
        for executor in spark.executors():
            executor.kill()
        assert job.wait() == 0, job.text()
    away.rename(vault)
    with lab.runs() as runs:
        assert runs.report("secured").state is RunState.SUCCESS
    assert lab.assert_equal() == RECORDS

    assert watch.carried == {(name, "argv", "other") for name in CONTROL}
    assert not planted.found([("output", job.output.read_bytes())], hidden)
    events = list(planted.files(tmp_path / "events"))
    assert any(b"SparkListenerEnvironmentUpdate" in content for _, content in events), "properties are among them"
    assert not planted.found(events, hidden)
    assert not planted.found(shown, hidden)
    shown = list(planted.pages(*spark.pages))
    assert sum("/logPage" in url and b"stderr" in content for url, content in shown) >= 4, "executors' logs as pages"
    assert not planted.found(shown, hidden)
    kept = [piece for folder in tmp_path_factory.getbasetemp().glob("standalone*") for piece in planted.files(folder)]
    assert sum(name.endswith("stderr") for name, _ in kept) >= 4, "the executors' folders are among them"
    assert not planted.found(kept, hidden)
