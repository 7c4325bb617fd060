"""The copy job by spark-submit in local mode: what it copies, says, refuses, and leaves behind when it is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.ledger.runs import newer_attempt
from ferry.model import Attempt
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, whole_ledger
from tests.quotas import held
from tests.spark.jobs import (
    JOB,
    SLOW_RATE,
    Job,
    all_gone,
    copying,
    job_arguments,
    plan,
    random_point,
    slow_lab,
    submit,
    until,
)
from tests.tiers import ANSWER_S

MOST_WORKER_BYTES = 300 * 1024 * 1024


def report_state(lab: Lab, run: str) -> RunState:
    """How the ledger says that the run ended."""
    with lab.runs() as runs:
        return runs.report(run).state


def without_spark(arguments: list[str]) -> tuple[int, str]:
    """The job under plain Python, with no Spark installed as far as it can see: exit code and output."""
    job = subprocess.run(
        [sys.executable, str(JOB), *arguments],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SPARK_HOME": "/no/such/folder"},
    )
    return job.returncode, job.stdout


def limit_message_size(cluster: RunningCluster, topic: str, size: int) -> None:
    """Let the target refuse batches above `size` bytes."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)


def open_records(lab: Lab) -> int:
    """Ledger records of transactions that nobody has ended."""
    with lab.runs() as runs:
        return len(whole_ledger(runs).open)


def peak_worker_bytes(job: Job) -> int:
    """Sample the resident memory of the Python workers until the job ends."""
    peak = 0

    def ended() -> bool:
        nonlocal peak
        for worker in job.workers():
            try:
                peak = max(peak, worker.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        return job.process.poll() is not None

    until(ended, "the end of the job", 300)
    return peak


def test_a_job_copies_what_the_plan_says_within_its_memory(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 4)
    send(producer(source_cluster), topic, numbered(200_000, partitions=4, size=1_000))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    plan(lab, "whole")
    job = submit(lab, "whole", tmp_path)
    peak = peak_worker_bytes(job)
    assert job.wait() == 0, job.text()
    assert lab.assert_equal() == 200_000
    assert report_state(lab, "whole") is RunState.SUCCESS
    assert {receipt.slot for receipt in lab.receipts()} == {0, 1}
    origin = lab.receipts()[0].origin
    assert (origin.dag_id, origin.dag_run_id, origin.try_number, origin.host) == ("a-dag", "whole", 3, "a-host")
    assert "4 slices in 2 tasks" in job.text()
    assert "copied 200000 records" in job.text()
    assert 0 < peak < MOST_WORKER_BYTES, f"{peak >> 20} MiB"


def test_a_job_says_how_far_it_is(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 4)
    send(producer(source_cluster), topic, numbered(20_000, partitions=4, size=1_000))
    rate = {"ferry.throttle.bytes.per.second": "1MB"}  # 20 s, and a line is due each 5 s
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=rate)
    plan(lab, "throttled")
    job = submit(lab, "throttled", tmp_path)
    assert job.wait() == 0, job.text()
    assert " of 4 slices, " in job.text(), "no line of progress"
    assert lab.assert_equal() == 20_000


def test_a_refused_partition_is_for_the_report_not_for_the_job(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(2_000, partitions=2))
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"sync.topic.configs.enabled": "false", "ferry.throttle.bytes.per.second": "1000000"},
    )
    assert lab.micro_run().state is RunState.SUCCESS
    limit_message_size(target_cluster, lab.target_topic(topic), 10_000)
    send(producer(source_cluster), topic, numbered(1, size=20_000))
    send(producer(source_cluster), topic, [message for message in numbered(40_000, partitions=2) if message.partition])
    plan(lab, "second")
    job = submit(lab, "second", tmp_path)
    assert job.wait() == 0, job.text()
    assert f"{lab.target_topic(topic)}-0" in next(line for line in job.text().splitlines() if "refused: " in line)
    assert " s by ferry.throttle.bytes.per.second" in job.text()
    with lab.runs() as runs:
        report = runs.report("second")
    assert report.state is RunState.PARTIAL
    assert {(refusal.topic, refusal.partition) for refusal in report.refusals} == {(topic, 0)}
    assert not report.unfinished


@pytest.mark.parametrize("hit", ["driver", "jvm"])
def test_sigterm_ends_the_open_chunk_at_once_and_keeps_the_receipts(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, hit: str
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    plan(lab, "killed")
    with held(lab):
        job = submit(lab, "killed", tmp_path)
        copying(lab, job)
        tree = job.tree()
        (job.driver() if hit == "driver" else psutil.Process(job.process.pid)).send_signal(signal.SIGTERM)
        assert job.wait() == 143, job.text()
        all_gone(tree)
        until(lambda: open_records(lab) == 0, "the end of the open chunks")
    kept = len(lab.receipts())
    assert kept > 0
    assert report_state(lab, "killed") is RunState.PARTIAL
    with lab.runs() as runs:
        assert lab.copy(runs, runs.sealed_plan("killed")).state is RunState.SUCCESS
    assert lab.assert_equal() == 24_000


@pytest.mark.parametrize("hit", ["driver", "jvm", "worker"])
def test_sigkill_is_harmless(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    hit: str,
    rng: random.Random,
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    plan(lab, "killed")
    with held(lab, SLOW_RATE):
        job = submit(lab, "killed", tmp_path)
        copying(lab, job, random_point(rng))
        tree = job.tree()
        victims: dict[str, Callable[[], psutil.Process]]
        victims = {"driver": job.driver, "jvm": lambda: tree[0], "worker": lambda: job.workers()[-1]}
        victims[hit]().kill()
    code = job.wait()
    if hit == "worker":
        assert code == 0, job.text()  # Spark repeats the task
    else:
        assert code != 0
        all_gone(tree)
        again = submit(lab, "killed", tmp_path)
        assert again.wait() == 0, again.text()
    assert report_state(lab, "killed") is RunState.SUCCESS
    assert lab.assert_equal() == 24_000


def test_a_second_job_of_the_same_run_takes_over(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    made = plan(lab, "twice")
    (tmp_path / "other").mkdir()

    def attempt_after(number: int) -> Attempt | None:
        with lab.runs() as runs:
            return newer_attempt(whole_ledger(runs), made.lane, made.run, made.generation, number)

    with held(lab) as go_on:
        first = submit(lab, "twice", tmp_path)
        copying(lab, first)
        began = attempt_after(-1)
        assert began is not None
        second = submit(lab, "twice", tmp_path / "other")
        until(lambda: attempt_after(began.number) is not None, "the second attempt")
        go_on()
        assert second.wait() == 0, "the first one disturbed it:\n" + first.text() + second.text()
    assert first.wait() == 2, first.text()
    assert "is superseded by attempt" in first.text()
    assert report_state(lab, "twice") is RunState.SUCCESS
    assert lab.assert_equal() == 24_000


def test_a_superseded_run_copies_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(1_000, partitions=2))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    plan(lab, "old")
    plan(lab, "new")
    code, said = without_spark(job_arguments(lab, "old", tmp_path))
    assert (code, "superseded by new" in said) == (2, True), said
    assert lab.receipts() == []
    with lab.runs() as runs:
        lab.copy(runs, runs.sealed_plan("new"))
    code, said = without_spark(job_arguments(lab, "old", tmp_path))
    assert (code, "nothing is left" in said) == (0, True), said
    assert lab.assert_equal() == 1_000


@pytest.mark.parametrize(
    ("changed", "code", "sentence"),
    [
        ({}, 2, "run the flow once"),
        ({"--flow": "no->where"}, 2, "is not enabled"),
        ({"--config": "/no/such/file"}, 2, "cannot be read"),
    ],
)
def test_a_wrong_request_starts_no_spark(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    changed: dict[str, str],
    code: int,
    sentence: str,
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    given = job_arguments(lab, "never", tmp_path)
    options = {**dict(zip(given[::2], given[1::2], strict=True)), **changed}
    said_code, said = without_spark([part for option in options.items() for part in option])
    assert (said_code, sentence in said) == (code, True), said
