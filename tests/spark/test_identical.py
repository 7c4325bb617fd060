"""Identical offsets copied by Spark: tasks that are killed, tried again, or at work twice never shift a record."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.spark.package import zip_package
from tests.harness import Lab, create_topic
from tests.kafka.identical.test_run import PARTITIONS, assert_identical, end_of_copy, feed, lab
from tests.program import finished, start
from tests.spark.jobs import Standalone, plan, standalone, submit, until

RECORDS = 12_000
SLOW = {"ferry.throttle.bytes.per.second": str(1 << 19), "ferry.chunk.seconds": "2"}
"""12 MB take 24 s, in some twelve chunks; each has several requests before its receipts."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers."""
    with standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


def slow_lab(source: RunningCluster, target: RunningCluster, topic: str, **settings: str) -> Lab:
    """A flow with identical offsets whose run takes seconds."""
    create_topic(source, topic, partitions=PARTITIONS)
    feed(source, topic, RECORDS, size=1_000, codecs=["none"])  # compressed ones would be there at once
    return lab(source, target, topic, **SLOW, **settings)


def received(it: Lab) -> int:
    """How many records have a receipt."""
    return sum(receipt.records for receipt in it.receipts())


def received_of(it: Lab) -> Counter[int]:
    """How many records have a receipt, by partition; one slot copies each."""
    found = Counter(dict.fromkeys(range(PARTITIONS), 0))
    for receipt in it.receipts():
        found[receipt.source.partition] += receipt.records
    return found


def unreceived(it: Lab, topic: str, least: int) -> None:
    """Wait until the target has records without a receipt, after so many with one."""
    until(lambda: least <= received(it) < end_of_copy(it, topic), "records without a receipt")


def assert_whole(it: Lab, topic: str) -> None:
    """Each record is there once, at its offset, and has one receipt."""
    assert assert_identical(it, topic) == RECORDS
    assert received(it) == RECORDS
    assert all(receipt.identical for receipt in it.receipts())


def python_of(executor: psutil.Process) -> list[psutil.Process]:
    """An executor's Python processes: the daemon, then the workers that it made."""
    found = [one for one in executor.children(recursive=True) if "pyspark.daemon" in one.cmdline()]
    return sorted(found, key=lambda one: (one.ppid() != executor.pid, one.create_time()))


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[None]:
    """Processes sleep, and are killed when the block ends."""
    for one in processes:
        one.suspend()
    try:
        yield
    finally:
        for one in processes:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def test_a_task_that_is_killed_mid_copy_is_tried_again_at_the_same_offsets(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, rng: random.Random
) -> None:
    """By `ferry run --spark`, in one run: Spark starts the task once more."""
    it = slow_lab(source_cluster, target_cluster, topic)
    running = start("run", "--spark", "--json", config=it.write(tmp_path))
    unreceived(it, topic, rng.randint(1, RECORDS // 3))
    workers = [
        one
        for one in psutil.Process(running.pid).children(recursive=True)
        if "pyspark.daemon" in one.cmdline() and not one.children()
    ]
    assert workers
    for worker in workers:
        worker.kill()
    assert received(it) < RECORDS
    done = finished(running, 300)
    assert done.code == 0, done.err
    assert_whole(it, topic)


@pytest.mark.parametrize("share", [0.0, 0.8], ids=["at-once", "late"])
def test_a_task_that_wakes_while_its_slot_is_tried_again_shifts_nothing(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    spark: Standalone,
    share: float,
) -> None:
    """Both belong to one attempt, so the ledger shows neither a newer one.

    The first one is frozen with its parent, so that it does not see that its executor is gone. When it wakes, its
    reading of the target is young, or as old as its lease permits.
    """
    it = slow_lab(source_cluster, target_cluster, topic)
    plan(it, "twice")
    package = zip_package(tmp_path / "ferry.zip")
    arguments = ("--py-files", str(package), "--executor-memory", "512m")
    job = submit(it, "twice", tmp_path, master=spark.url, arguments=arguments)
    unreceived(it, topic, 1)
    executor = next(one for one in spark.executors() if len(python_of(one)) > 1)
    python = python_of(executor)
    with frozen(python):
        executor.kill()
        before = received_of(it)
        until(lambda: all(received_of(it)[number] > before[number] for number in before), "the second try")
        until(lambda: received(it) >= share * RECORDS, "that share of the copy")
        assert job.process.poll() is None, "the copy was over before the first task woke"
        for worker in python[1:]:
            worker.send_signal(signal.SIGCONT)
        if job.wait() != 0:  # each of the two may fence the other one, until an attempt of its own takes over
            assert submit(it, "twice", tmp_path, master=spark.url, arguments=arguments).wait() == 0, job.text()
        with it.runs() as runs:
            assert runs.report("twice").state is RunState.SUCCESS
        until(lambda: not any(_writes(worker) for worker in python[1:]), "the end of the first task")
    assert_whole(it, topic)


def _writes(worker: psutil.Process) -> bool:
    """Whether it is alive and has connections, as a task that copies."""
    with suppress(psutil.NoSuchProcess):
        return worker.status() != psutil.STATUS_ZOMBIE and bool(worker.net_connections("tcp"))
    return False
