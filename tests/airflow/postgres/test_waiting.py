"""A copy that waits in the triggerer outlives the triggerer and its workers; a copy outlives Airflow's database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import psutil
import pytest

from ferry.dev import RunningCluster
from tests.airflow.parts import RECORDS, AtWork, working
from tests.airflow.postgres.conftest import STORED, WAITING, Stored
from tests.spark.jobs import all_gone, until


def copying(
    stored: Stored, alias: str, topic: str, before: Callable[[], None] = lambda: None
) -> AbstractContextManager[AtWork]:
    """A run of the flow whose copy is at work."""
    return working(stored.rest, stored.parts, stored.lab(alias), stored.dag(alias), f"{alias}-{topic}", before)


def test_a_copy_whose_triggerer_is_killed_continues_in_the_next_one_in_the_same_try(stored: Stored, topic: str) -> None:
    with copying(stored, WAITING, topic) as work:
        assert stored.rest.states(work.dag, work.run)["copy"] == "deferred"
        stored.parts.kill("triggerer", whole=True)
        all_gone([work.task])
        work.assert_half_done()
        stored.parts.start("triggerer")
        until(lambda: len(hosts(work)) == 2, "a receipt of the next triggerer")
        work.assert_half_done()
        work.release()
        work.assert_done(kept=True)


def test_a_triggerer_that_was_taken_for_dead_does_not_end_the_copy_that_the_next_one_has(
    stored: Stored, topic: str
) -> None:
    with copying(stored, WAITING, topic) as work:
        # Its process with the database does nothing, as in a query without an answer. That of its triggers copies.
        stalled = stored.parts.stall("triggerer")
        stored.parts.start("triggerer")
        until(lambda: len(hosts(work)) == 2, "a receipt of the next triggerer")
        until(lambda: not is_connected(work.task, stored.target), "the end of the first copy")
        stalled.resume()
        until(lambda: len(work.attempts()) > 2 or work.ended, "an attempt after the event of the first triggerer")
        work.assert_half_done()
        work.release()
        work.assert_done(kept=True)


def test_a_worker_that_is_killed_before_its_task_waits_is_followed_by_the_next_try(stored: Stored, topic: str) -> None:
    stored.want()
    with copying(stored, WAITING, topic, stored.kill_caught) as work:
        work.release()
        work.assert_done(kept=False)
        assert {one.origin.try_number for one in work.receipts()} == {2}


def test_a_worker_that_is_killed_after_its_task_has_waited_is_followed_by_a_try_that_copies_nothing(
    stored: Stored, topic: str
) -> None:
    with copying(stored, WAITING, topic) as work:
        stored.want()
        work.release()
        stored.kill_caught()
        wrote = work.receipts()
        assert sum(one.records for one in wrote) == RECORDS
        work.assert_done(kept=False)
        assert work.receipts() == wrote


@pytest.mark.parametrize(("alias", "kept"), [(STORED, None), (WAITING, True)])
def test_a_copy_at_work_while_the_database_is_stopped_ends_right(
    alias: str, kept: bool | None, stored: Stored, topic: str
) -> None:
    with copying(stored, alias, topic) as work:
        stored.database.stop()
        until(lambda: stored.parts.process("scheduler") is None, "the end of the scheduler")
        until(lambda: stored.parts.process("triggerer") is None, "the end of the triggerer")
        stored.database.start()
        stored.parts.wait_at_work()
        work.assert_half_done()
        work.release()
        work.assert_done(kept=kept)


def is_connected(process: psutil.Process, cluster: RunningCluster) -> bool:
    """Whether a process has a connection to the cluster's broker."""
    port = int(cluster.bootstrap.rpartition(":")[2])
    return any(port in each.raddr for each in process.net_connections("tcp"))


def hosts(work: AtWork) -> set[str]:
    """The processes that receipts of the run name."""
    return {receipt.origin.host for receipt in work.receipts()}
