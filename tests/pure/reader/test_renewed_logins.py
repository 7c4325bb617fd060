"""Logins that a cluster refuses: they are brought again, at a pace, and the connections are made again with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.errors import EmptyFilter, FerryError, Refused, Unreachable
from ferry.ledger.ledger import UNREAD
from ferry.reader import watcher
from ferry.reader.client import Reader
from ferry.reader.documents import Status
from ferry.reader.flows import Flows
from ferry.reader.questions import Begin
from ferry.reader.service import Service
from ferry.reader.watch import FlowPoll
from ferry.reader.watcher import Watchers
from tests.tiers import ANSWER_S

FLOW = "a->b"
TEXT = """clusters = a, b
a.ferry.airflow.conn.id = kafka_a
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
a->b.topics = .*
"""
REFUSED = Refused("a refused the credentials")


class World:
    """A cluster and a secrets backend that know one password each, and what is done with them."""

    def __init__(self) -> None:
        self.password = self.held = "old"
        self.error: FerryError | None = None
        """What every poll meets with, whatever the password is."""
        self.polls: list[str] = []
        """The password of each poll."""
        self.lookups = self.opened = self.closed = 0

    def lookup(self, conn_id: str) -> Mapping[str, str]:
        self.lookups += 1
        return {"bootstrap.servers": "127.0.0.1:1", "sasl.jaas.config": self.held}

    def watch(self, flow: FlowConfig, *, patience_s: float, settings: object) -> Scripted:
        self.opened += 1
        return Scripted(self, flow)


class Scripted:
    """A FlowWatch that keeps the password with which it was opened."""

    def __init__(self, world: World, flow: FlowConfig) -> None:
        self.flow, self._world = flow, world
        self.password = flow.clients.properties["source", "consumer"]["sasl.jaas.config"]

    def look(self) -> FlowPoll:
        self._world.polls.append(self.password)
        error = self._world.error or (REFUSED if self.password != self._world.password else None)
        return FlowPoll(view=UNREAD, lags=(), troubles={}) if error is None else FlowPoll.hindered(None, {"a": error})

    @property
    def settings(self) -> NoReturn:
        """What the job of a readiness begins with."""
        raise REFUSED

    def close(self) -> None:
        self._world.closed += 1


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(watcher, "FlowWatch", made.watch)
    monkeypatch.setattr(watcher, "rest_after", lambda *_, **__: 0.01)
    return made


@pytest.fixture
def reader(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A page that asks a reader; all passes as between two processes."""
    config = tmp_path / "flows.properties"
    config.write_text(TEXT)
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    flows, watchers = Flows(), Watchers()
    service = Service(flows, watchers)
    yield Reader(lambda message, _: service.reply(message), config=str(config), lookup=world.lookup)
    watchers.of((FLOW, config, flows.now().stamp), lambda: pytest.fail("it was never asked for")).close()


def asked(reader: Reader, holds: Callable[[Status], object], what: str) -> Status:
    """Ask for the flow again and again, as an open page does, until that holds."""
    end = time.monotonic() + ANSWER_S
    while not holds(seen := reader.status(FLOW)):
        assert time.monotonic() < end, what
        time.sleep(0.01)
    return seen


def polled(reader: Reader, world: World, more: int) -> Status:
    """The flow after some more polls."""
    enough = len(world.polls) + more
    return asked(reader, lambda _: len(world.polls) >= enough, "it is not polled")


def test_a_password_that_was_changed_is_brought_while_the_page_stays_open(reader: Reader, world: World) -> None:
    asked(reader, lambda seen: seen.ledger_ms, "it is never seen")
    world.password = world.held = "new"
    asked(reader, lambda seen: seen.hindrances or "new" in world.polls, "the old password is not refused")
    seen = asked(reader, lambda seen: not seen.hindrances and world.polls[-1] == "new", "the old password stays")
    assert (seen.hindrances, world.closed >= 1) == ((), True)


@pytest.mark.slow
def test_a_secrets_backend_is_not_asked_at_every_poll_that_fails(reader: Reader, world: World) -> None:
    world.password = "another"
    asked(reader, lambda seen: seen.hindrances, "it is not refused")
    polled(reader, world, 20)
    assert (world.lookups, world.opened) == (2, 2), "at first, and once after the first refusal"


@pytest.mark.slow
def test_it_is_asked_again_after_a_while(reader: Reader, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "RENEW_SECONDS", 0.05)
    world.password = "new"
    asked(reader, lambda _: world.lookups >= 4, "it is asked no more")
    world.held = "new"
    asked(reader, lambda seen: world.polls[-1] == "new" and not seen.hindrances, "the old password stays")


@pytest.mark.slow
@pytest.mark.parametrize("error", [Unreachable("a is silent"), EmptyFilter("no topic")])
def test_no_login_is_to_blame_for_an_outage_or_a_filter(reader: Reader, world: World, error: FerryError) -> None:
    world.error = error
    polled(reader, world, 10)
    assert (world.lookups, world.opened, world.closed) == (1, 1, 0)


def test_a_job_that_is_refused_has_the_login_brought_although_polls_succeed(
    reader: Reader, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that are open outlive a password; a job makes its own."""
    asked(reader, lambda seen: seen.ledger_ms, "it is never seen")
    world.held = world.password = "new"
    with monkeypatch.context() as patch:
        patch.setattr(Scripted, "look", lambda self: FlowPoll(view=UNREAD, lags=(), troubles={}))
        reader.act(FLOW, Begin(who="ada", what="readiness", event="readiness"))
        asked(reader, lambda _: world.opened == 2, "the connections are not made again")
    polled(reader, world, 2)
    assert world.polls[-1] == "new"
