"""Airflow's scheduler, API server and database fail while a flow copies: nothing is lost, doubled or falsely green.

A quota of the source holds the copy until the fault is over. Processes die by SIGKILL. A part that is gone is started
again as systemd or Compose would do it.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import httpx
import psutil
import pytest

from ferry.ledger.report import RunState
from ferry.model import Receipt
from ferry_airflow.home import LocalHome
from ferry_airflow.local import COMPONENTS, HEALTHY, PIDS_FILE, members, spawn
from ferry_airflow.rest import ENDED
from tests.airflow.conftest import RESTARTED, Flows
from tests.airflow.rest import Rest
from tests.airflow.test_flows import job_processes
from tests.harness import Lab, create_topic, numbered, producer, send, whole_ledger
from tests.quotas import held
from tests.spark.jobs import all_gone, until
from tests.tiers import PATIENCE

RECORDS = 6_000
"""Of 300 bytes each, in batches of twenty, each a chunk of its own."""

BUSY_SECONDS = 5
"""How long Airflow waits for SQLite's lock before it gives up (the default of Python's sqlite3)."""

BEATS = {name: f"latest_{name}_heartbeat" for name in HEALTHY if name != "metadatabase"}


@dataclass(kw_only=True)
class Parts:
    """The processes of the session's Airflow, to be killed and started again."""

    home: LocalHome
    rest: Rest
    _left: list[int] = field(default_factory=list)
    """Sessions whose leader was killed; what it started may live on."""

    def process(self, name: str) -> psutil.Process | None:
        """The part's first process, if it lives."""
        pid, _ = self._pids()[name]
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        return None

    def kill(self, name: str, *, whole: bool = False) -> None:
        """Kill a part; `whole`: with all that it started, as when a container ends."""
        first = self.process(name)
        assert first is not None
        every = [first, *(members({first.pid}) if whole else ())]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._left.append(first.pid)
        all_gone(every)

    def start(self, name: str) -> None:
        """Start a part again."""
        started = spawn(self.home, name, self.home.environment)
        pids = self._pids()
        # What stops Airflow looks for what both have started.
        pids[f"{name} before {started[0]}"] = pids[name]
        pids[name] = started
        (self.home.path / PIDS_FILE).write_text(json.dumps(pids))

    def start_missing(self) -> None:
        """Start each part that is gone."""
        for name in COMPONENTS:
            if self.process(name) is None:
                self.start(name)

    def health(self) -> dict[str, dict[str, str]]:
        """How Airflow finds its parts; empty while its API server does not say."""
        with suppress(httpx.HTTPError, ValueError):
            answer = httpx.get(f"{self.home.url}/api/v2/monitor/health", timeout=10 * PATIENCE)
            found: dict[str, dict[str, str]] = answer.json() if answer.is_success else {}
            return found
        return {}

    def wait_at_work(self) -> None:
        """Wait until each part gives a sign of life; whichever ends by then is started again."""
        since = datetime.now(UTC)

        def beats() -> bool:
            self.start_missing()
            found = self.health()
            last = [found.get(name, {}).get(beat) for name, beat in BEATS.items()]
            return all(beat is not None and datetime.fromisoformat(beat) > since for beat in last)

        until(beats, "signs of life of all parts")

    def wait_given_up(self) -> None:
        """Wait until Airflow takes its scheduler for dead: from then on the next one begins its tasks again."""
        until(lambda: self.health().get("scheduler", {}).get("status") == "unhealthy", "a scheduler taken for dead")

    def restore(self) -> None:
        """Make Airflow whole again, whatever a test did with it."""
        self.wait_at_work()
        for process in members(set(self._left)):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _pids(self) -> dict[str, list[float]]:
        pids: dict[str, list[float]] = json.loads((self.home.path / PIDS_FILE).read_text())
        return pids


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A run whose copy goes on slowly until it is released."""

    flows: Flows
    lab: Lab
    topic: str
    run: str
    task: psutil.Process
    """The process of the copy task's first try."""
    release: Callable[[], None]

    @property
    def dag(self) -> str:
        """The run's DAG."""
        return self.flows.dag(RESTARTED)

    def receipts(self) -> list[Receipt]:
        """What the run has committed."""
        return [receipt for receipt in self.lab.receipts() if receipt.origin.dag_run_id == self.run]

    def tries(self) -> dict[int, str | None]:
        """The states of the copy task's tries."""
        return self.flows.rest.tries(self.dag, self.run, "copy")

    def assert_half_done(self) -> None:
        """Neither the ledger nor Airflow takes the run for done."""
        state = self.flows.rest.run(self.dag, self.run)["state"]
        assert state not in ENDED
        assert sum(receipt.records for receipt in self.receipts()) < RECORDS, "the copy was not held"
        assert "success" not in self.tries().values()

    def assert_done(self, *, kept: bool | None) -> None:
        """The run ends right: with the copy task's first try where that is `kept`, else with a later one; None: either.

        While no API server answers, each later try fails, too, within seconds and without a delay before the next one.
        How many do depends on how long the server takes to start.
        """
        assert self.flows.rest.wait_run(self.dag, self.run, seconds=300) == "success"
        states = self.flows.rest.states(self.dag, self.run)
        assert states == dict.fromkeys(("plan", "copy", "checkpoint", "report"), "success")
        found = dict(sorted(self.tries().items()))
        *given_up, ended = found.values()
        assert (set(given_up) <= {"failed"}, ended) == (True, "success"), found
        assert kept in (None, not given_up), found

        receipts = self.receipts()
        wrote: dict[int, list[int]] = {}
        for receipt in receipts:
            wrote.setdefault(receipt.source.partition, []).append(receipt.origin.try_number)
        assert all(numbers == sorted(numbers) for numbers in wrote.values()), "a try wrote after it was shut out"
        assert {number for numbers in wrote.values() for number in numbers} <= found.keys()
        assert sum(receipt.records for receipt in receipts) == RECORDS
        with self.lab.runs() as runs:
            report = runs.report(self.run)
            assert not whole_ledger(runs).open
        assert (report.state, report.records, report.unfinished) == (RunState.SUCCESS, RECORDS, ())
        last = max(self.flows.rest.tries(self.dag, self.run, "report"))
        assert self.topic in self.flows.rest.log(self.dag, self.run, "report", last)
        assert self.lab.assert_equal() % RECORDS == 0
        until(lambda: not job_processes(self.run), "the end of Spark")


@pytest.fixture
def parts(flows: Flows) -> Iterator[Parts]:
    """The parts of Airflow; whole again after the test."""
    parts = Parts(home=flows.home, rest=flows.rest)
    try:
        yield parts
    finally:
        parts.restore()


@pytest.fixture
def at_work(flows: Flows, parts: Parts, topic: str) -> Iterator[AtWork]:
    """A run whose copy is at work, and has committed something; it has ended when `parts` are made whole."""
    lab, topic = flows.lab(RESTARTED), f"{RESTARTED}-{topic}"
    create_topic(flows.source, topic, 4)
    send(producer(flows.source, batch_num_messages=20), topic, numbered(RECORDS, partitions=4, size=300))
    with held(lab) as release:
        dag = flows.dag(RESTARTED)
        run = flows.rest.trigger(dag)
        try:
            flows.rest.wait_task(dag, run, "copy", ("running",))
            begun = partial(_first, lab, run)
            until(lambda: begun() is not None, "a first receipt")
            first = begun()
            assert first is not None
            task = psutil.Process(int(first.origin.host.rpartition(":")[2]))
            assert job_processes(run)
            yield AtWork(flows=flows, lab=lab, topic=topic, run=run, task=task, release=release)
        finally:
            parts.start_missing()
            if flows.rest.run(dag, run)["state"] not in ENDED:
                flows.rest.fail(dag, run)
                flows.rest.wait_run(dag, run)


def test_a_scheduler_that_is_killed_and_back_at_once_leaves_a_copy_to_end_right(parts: Parts, at_work: AtWork) -> None:
    parts.kill("scheduler")
    parts.start("scheduler")
    parts.wait_at_work()
    at_work.assert_half_done()
    at_work.release()
    at_work.assert_done(kept=None)  # on a slow machine Airflow may have given the try up


def test_a_copy_that_a_new_scheduler_starts_again_shuts_out_the_one_that_is_still_at_work(
    parts: Parts, at_work: AtWork
) -> None:
    parts.kill("scheduler")
    parts.wait_given_up()
    assert at_work.task.is_running()
    at_work.assert_half_done()
    parts.start("scheduler")
    until(lambda: 2 in at_work.tries(), "a second try")
    at_work.assert_half_done()
    all_gone([at_work.task])
    at_work.release()
    at_work.assert_done(kept=False)


def test_a_copy_that_died_with_its_scheduler_goes_on_in_a_new_try(parts: Parts, at_work: AtWork) -> None:
    parts.kill("scheduler", whole=True)
    all_gone([at_work.task])
    parts.wait_given_up()
    at_work.assert_half_done()
    parts.start("scheduler")
    at_work.release()
    at_work.assert_done(kept=False)


def test_an_api_server_that_is_killed_and_back_at_once_leaves_a_copy_to_end_right(
    parts: Parts, at_work: AtWork
) -> None:
    parts.kill("api-server")
    parts.start("api-server")
    parts.wait_at_work()
    at_work.assert_half_done()
    at_work.release()
    at_work.assert_done(kept=None)  # on a slow machine Airflow may have given the try up


def test_a_copy_that_is_ended_because_no_api_server_hears_of_it_goes_on_in_a_new_try(
    parts: Parts, at_work: AtWork
) -> None:
    parts.kill("api-server")
    all_gone([at_work.task], 300)
    assert not job_processes(at_work.run)
    parts.start("api-server")
    at_work.assert_half_done()
    at_work.release()
    at_work.assert_done(kept=False)


def test_a_copy_that_is_done_while_no_api_server_hears_of_it_is_done_once(parts: Parts, at_work: AtWork) -> None:
    parts.kill("api-server")
    worker = at_work.task.parent()
    assert worker is not None
    at_work.release()
    until(lambda: "<idle>" in " ".join(worker.cmdline()), "a worker that has not reported the end")
    wrote = at_work.receipts()
    parts.start("api-server")
    at_work.assert_done(kept=False)
    assert at_work.receipts() == wrote


def test_a_database_that_is_locked_for_less_than_airflow_waits_costs_a_copy_at_work_nothing(
    parts: Parts, at_work: AtWork, rng: random.Random
) -> None:
    seconds = rng.uniform(0.5, BUSY_SECONDS - 1)
    with locked(parts.home):
        time.sleep(seconds)  # the lock's length is the case
    parts.wait_at_work()
    at_work.assert_half_done()
    at_work.release()
    at_work.assert_done(kept=True)


def test_a_copy_that_is_ended_because_the_database_is_locked_goes_on_in_a_new_try(
    parts: Parts, at_work: AtWork
) -> None:
    with locked(parts.home):
        all_gone([at_work.task], 400)
    parts.wait_at_work()
    at_work.assert_half_done()
    at_work.release()
    at_work.assert_done(kept=False)


@contextmanager
def locked(home: LocalHome) -> Iterator[None]:
    """Nobody reads or writes Airflow's database until the block ends."""
    with closing(sqlite3.connect(home.path / "airflow.db", timeout=60, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            database.execute("ROLLBACK")


def _first(lab: Lab, run: str) -> Receipt | None:
    return next((receipt for receipt in lab.receipts() if receipt.origin.dag_run_id == run), None)
