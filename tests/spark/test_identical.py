"""Identical offsets copied by Spark: tasks that are killed, tried again, or at work twice never shift a record."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.run.spark.package import zip_package
from tests.harness import Lab, create_topic
from tests.kafka.identical.test_run import PARTITIONS, assert_identical, end_of_copy, feed, lab
from tests.program import finished, start
from tests.spark.jobs import Standalone, plan, standalone, submit, until

RECORDS = 12_000
SLOW = {"ferry.throttle.bytes.per.second": str(1 << 20), "ferry.chunk.seconds": "2"}
"""12 MB take 12 s, in some six chunks; each has several requests before its receipts."""
TWICE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "500ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
}
"""Spark starts a task once more if it takes longer than others took that have ended."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers, on two hosts: speculation takes another one."""
    with standalone(tmp_path_factory.mktemp("standalone"), ("127.0.0.1", "127.0.0.2")) as cluster:
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
    until(lambda: end_of_copy(it, topic) > 0, "the first records")
    until(lambda: least <= received(it) < end_of_copy(it, topic), "records without a receipt")


def assert_whole(it: Lab, topic: str) -> None:
    """Each record is there once, at its offset, and has one receipt."""
    assert assert_identical(it, topic) == RECORDS
    assert received(it) == RECORDS
    assert all(receipt.identical for receipt in it.receipts())


def python_of(process: psutil.Process) -> list[psutil.Process]:
    """The Python workers of an executor, or of a Spark in local mode: the children of its daemon."""
    found = []
    for one in process.children(recursive=True):
        with suppress(psutil.Error):
            if "pyspark.daemon" in one.cmdline() and "pyspark.daemon" in psutil.Process(one.ppid()).cmdline():
                found.append(one)
    return found


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[list[psutil.Process]]:
    """Processes sleep, and are killed when the block ends."""
    for one in processes:
        one.suspend()
    try:
        yield processes
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
    workers = python_of(psutil.Process(running.pid))
    assert workers
    workers[-1].kill()
    assert received(it) < RECORDS
    done = finished(running, 300)
    assert done.code == 0, done.err
    assert_whole(it, topic)


def test_a_task_that_spark_starts_twice_shifts_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, spark: Standalone
) -> None:
    """Both belong to one attempt, so the ledger shows neither a newer one, and both write at once.

    The first one sleeps until Spark's speculation has started the other one, on the other worker.
    """
    it = slow_lab(source_cluster, target_cluster, topic)
    plan(it, "twice")
    package = zip_package(tmp_path / "ferry.zip")
    settings = [part for key, value in TWICE.items() for part in ("--conf", f"{key}={value}")]
    arguments = ("--py-files", str(package), "--executor-memory", "512m", *settings)
    job = submit(it, "twice", tmp_path, master=spark.url, arguments=arguments)
    unreceived(it, topic, 1)
    executor = next(one for one in spark.executors() if python_of(one))
    with frozen(python_of(executor)) as workers:
        before = received_of(it)
        until(lambda: all(received_of(it)[number] > before[number] for number in before), "the second try")
        assert job.process.poll() is None, "the copy was over before the first task woke"
        for worker in workers:
            worker.resume()
        assert job.wait() == 0, job.text()
        with it.runs() as runs:
            assert runs.report("twice").state is RunState.SUCCESS
    assert_whole(it, topic)
