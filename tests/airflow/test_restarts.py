"""Airflow's scheduler, API server and database fail while a flow copies: nothing is lost, doubled or falsely green.

A quota of the source holds the copy until the fault is over. Processes die by SIGKILL. A part that is gone is started
again as systemd or Compose would do it.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from ferry_airflow.home import LocalHome
from tests.airflow.conftest import RESTARTED, Flows
from tests.airflow.parts import AtWork, Parts, job_processes, working
from tests.spark.jobs import all_gone, until
from tests.tiers import ANSWER_S

BUSY_SECONDS = 5
"""How long Airflow waits for SQLite's lock before it gives up (the default of Python's sqlite3)."""


@pytest.fixture
def parts(flows: Flows) -> Iterator[Parts]:
    """The parts of Airflow; whole again after the test."""
    parts = Parts(home=flows.home)
    try:
        yield parts
    finally:
        parts.restore()


@pytest.fixture
def at_work(flows: Flows, parts: Parts, topic: str) -> Iterator[AtWork]:
    """A run whose copy is at work, and has committed something; it has ended when `parts` are made whole."""
    name = f"{RESTARTED}-{topic}"
    with working(flows.rest, parts, flows.lab(RESTARTED), flows.dag(RESTARTED), name) as found:
        assert job_processes(found.run)
        yield found


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
    with closing(sqlite3.connect(home.path / "airflow.db", timeout=2 * ANSWER_S, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            database.execute("ROLLBACK")
