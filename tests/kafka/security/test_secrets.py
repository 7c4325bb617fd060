"""Planted secrets are in nothing that a run shows, keeps or hands on: arguments, environments, logs, plans, the ledger.

Airflow, Spark and their pages are looked at in their own folders.
"""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ferry.errors import FerryError
from ferry.ledger.report import RunState
from ferry.run.micro_run import local_origin
from tests.harness import Lab, read_topic
from tests.kafka.security.clusters import Secured
from tests.kafka.security.conftest import Pair
from tests.kafka.security.pki import KEY_PASSWORD, PASSWORD
from tests.kafka.security.test_logins import (
    Way,
    client_credentials,
    fill,
    flow,
    jks,
    keytab,
    pem,
    permit,
    plain,
    scram512,
    token_file,
    with_jaas,
)
from tests.program import ferry, finished, start


def planted(side: Secured) -> Iterator[str]:
    """What must not be seen of one side, in each form that it takes on its way."""
    yield side.password
    yield base64.b64encode(side.password.encode()).decode()[4:-4]
    for client, secret in side.endpoint.clients.items():
        yield secret
        yield base64.b64encode(f"{client}:{secret}".encode()).decode()
    # The header of every token, and of every PKCS #8 key on this curve.
    yield side.endpoint.token("anybody").partition(".")[0]
    yield "BEGIN PRIVATE KEY"
    yield "BEGIN ENCRYPTED PRIVATE KEY"


@pytest.fixture
def secrets_of(secured: Pair) -> tuple[str, ...]:
    """All planted secrets."""
    return (*planted(secured.source), *planted(secured.target), PASSWORD, KEY_PASSWORD)


def assert_clean(texts: Mapping[str, str], secrets: tuple[str, ...]) -> None:
    """No text holds a secret; says where and which, by its length alone."""
    for where, text in texts.items():
        assert text, f"nothing was collected from {where}"
        found = [f"a secret of {len(secret)} characters" for secret in secrets if secret in text]
        assert not found, f"{where} shows {found}"


PAIRS: list[tuple[Callable[[Secured], Way], Callable[[Secured], Way]]] = [
    (client_credentials, jks),
    (token_file, plain),
    (keytab, scram512),
]


def by_provider(lab: Lab, folder: Path) -> Lab:
    """The same flow with its secrets in a file of their own, as users are told to keep them."""
    hidden = {key: value for key, value in lab.settings.items() if "password" in key or "jaas" in key}
    path = folder / "secrets.properties"
    path.write_text("".join(f"{key} = {value.replace(chr(92), chr(92) * 2)}\n" for key, value in hidden.items()))
    return replace(lab, settings={**lab.settings, **{key: f"${{file:{path}:{key}}}" for key in hidden}})


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(way.__name__ for way in pair))
def test_a_verbose_run_shows_no_secret(
    secured: Pair,
    topic: str,
    tmp_path: Path,
    secrets_of: tuple[str, ...],
    pair: tuple[Callable[[Secured], Way], Callable[[Secured], Way]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    fill(secured, topic)
    ways = pair[0](secured.source), pair[1](secured.target)
    lab = flow(secured, *ways, topic)
    permit(secured, lab, *ways)
    config = by_provider(lab, tmp_path).write(tmp_path)
    running = start("run", "--verbose", "--json", config=config)
    processes = watched(psutil.Process(running.pid))
    done = finished(running)
    assert done.code == 0, done.err
    assert any("spawn_main" in text for text in processes.values()), "no worker process was seen"
    shown = {
        "standard output": done.out,
        "the log": done.err,
        "arguments and environments": "\n".join(processes.values()),
        "plan": str(ferry("plan", "--json", "--verbose", config=config)),
        "ledger": str(ferry("ledger", "--json", config=config)),
        "the ledger topic": str(read_topic(lab.target.bootstrap, f"ferry-ledger.{lab.alias}.internal")),
        "flows": str(ferry("flows", "--json", config=config)),
    }
    assert_clean(shown, secrets_of)
    assert list(temporary.rglob("*")) == []


def watched(process: psutil.Process) -> dict[int, str]:
    """Arguments and environment of a process and all below it, looked at until it ends."""
    seen: dict[int, str] = {}
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        for one in [process, *children(process)]:
            try:
                text = f"{one.cmdline()} {one.environ()}"
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            if text not in seen.get(one.pid, ""):
                seen[one.pid] = seen.get(one.pid, "") + text
    return seen


def children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(way.__name__ for way in pair))
def test_debug_logs_of_all_libraries_and_reprs_show_no_secret(
    secured: Pair,
    topic: str,
    secrets_of: tuple[str, ...],
    pair: tuple[Callable[[Secured], Way], Callable[[Secured], Way]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As on an Airflow whose level is DEBUG for everything."""
    for name in ("", "ferry", "kafka"):  # a command that ran in this process may have set its own levels
        caplog.set_level(logging.DEBUG, logger=name)
    fill(secured, topic)
    ways = pair[0](secured.source), pair[1](secured.target)
    lab = flow(secured, *ways, topic)
    permit(secured, lab, *ways)
    assert lab.micro_run().state is RunState.SUCCESS
    with lab.runs() as runs:
        plan = runs.open_run("shown", local_origin())
        attempt = runs.begin(plan, local_origin())
        values = [repr(lab.flow), repr(plan)]
        values += [repr(runs.slot_task(plan, slot, attempt)) for slot in plan.used_slots]
    assert "SaslAuthenticateRequest" in caplog.text, "the libraries' debug log was not seen"
    assert_clean({"the log": caplog.text, "values": "\n".join(values)}, secrets_of)


FAILURES: list[Callable[[Secured], Way]] = [
    lambda side: with_jaas(plain(side), side.password, f"{side.password}-x"),
    lambda side: with_jaas(scram512(side), side.password, f"{side.password}-x"),
    lambda side: with_jaas(client_credentials(side), "client-geheim", "client-geheim-x"),
    lambda side: with_jaas(keytab(side), '"ferry@', '"nobody@'),
    lambda side: with_jaas(plain(side), f'{side.password}";', side.password),  # no closing quote
    lambda side: replace(jks(side), settings=dict(jks(side).settings) | {"ssl.key.password": f"{PASSWORD}-x"}),
    lambda side: replace(pem(side), settings=dict(pem(side).settings) | {"ssl.key.password": f"{KEY_PASSWORD}-x"}),
]


@pytest.mark.parametrize("way", FAILURES)
def test_an_exception_with_all_its_causes_shows_no_secret(
    secured: Pair,
    secrets_of: tuple[str, ...],
    way: Callable[[Secured], Way],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("", "ferry", "kafka"):  # a command that ran in this process may have set its own levels
        caplog.set_level(logging.DEBUG, logger=name)
    lab = flow(secured, pem(secured.source), way(secured.target), "none")
    with pytest.raises(FerryError) as caught, lab.runs(patience_s=5) as runs:
        runs.preview()
    text = "".join(traceback.format_exception(caught.value))
    assert_clean({"the traceback": text, "the log": caplog.text or "nothing logged"}, secrets_of)
