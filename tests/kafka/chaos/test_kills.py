"""SIGKILL of drivers and brokers at random points; afterwards source and target are equal, record by record.

The kills of `make test-all` at points that the seed of the header chooses: 9 times `ferry run` and 4 brokers here, of
which `make test` has 2 and 1; in `tests/spark` two executors, a driver, its JVM, a Python worker and a client of Spark
Connect; in `tests/airflow` the process of a task. 20 in all; kills at chosen steps are in `tests/kafka/run`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ferry.dev import RunningCluster
from ferry.errors import FerryError
from ferry.ledger.report import Report, RunState
from ferry.protocol.names import ledger_topic
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.program import start
from tests.tiers import ANSWER_S, IN_PART

DRIVERS, BROKERS = (2, 1) if IN_PART else (9, 4)
"""How many are killed."""

DRIVER = """
import sys, secrets
from pathlib import Path
from ferry.config.settings import load
from ferry.copy.slot_end import end_of
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.copy.task import run_slot
flow = load(Path(sys.argv[1])).flow(sys.argv[2])
with MicroRuns(flow) as runs:
    print("opening", flush=True)
    plan = runs.open_run("run-" + secrets.token_hex(4), local_origin())
    print("planned", flush=True)
    attempt = runs.begin(plan, local_origin())
    specs = [runs.slot_task(plan, slot, attempt) for slot in plan.used_slots]
    ends = [end_of(spec.ref.slot, run_slot(spec, lambda: False, lambda _: None)) for spec in specs]
    runs.record_outcome(plan, attempt, ends)
print("done", flush=True)
"""


def start_driver(lab: Lab, folder: Path) -> subprocess.Popen[str]:
    """A whole micro-run in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(lab.write(folder)), str(lab.flow.flow)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path.cwd(),
    )


def wait_for_line(process: subprocess.Popen[str], word: str) -> bool:
    """Until the process says `word`; False when it ended before."""
    assert process.stdout is not None
    return any(line.strip() == word for line in process.stdout)


class LedgerEnd:
    """How far a flow's ledger reaches, committed or not: what a run has done so far, seen from outside."""

    def __init__(self, lab: Lab, consumer: Consumer) -> None:
        self._place = TopicPartition(ledger_topic(lab.alias), 0)
        self._consumer = consumer

    def now(self) -> int:
        """The offset behind its last record; its leader may be changing."""
        until = time.monotonic() + 2 * ANSWER_S
        while True:
            try:
                end: int = self._consumer.get_watermark_offsets(self._place, timeout=ANSWER_S)[1]
            except KafkaException:
                assert time.monotonic() < until, "the ledger has no leader"
                pause(0.1)
            else:
                return end

    def passes(self, offset: int, driver: subprocess.Popen[str]) -> bool:
        """Wait until a record lies at `offset`; False when the driver ended before."""
        while self.now() <= offset:
            if driver.poll() is not None:
                return False
        return True


@contextmanager
def ledger_end(lab: Lab) -> Iterator[LedgerEnd]:
    """The end of the ledger of a flow that has run."""
    consumer = Consumer(
        {
            "bootstrap.servers": lab.target.bootstrap,
            "group.id": lab.alias,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        yield LedgerEnd(lab, consumer)
    finally:
        consumer.close()


def kill(driver: subprocess.Popen[str], *, alone: bool) -> bool:
    """SIGKILL to `ferry run`, alone, so that its workers outlive it, or with them; False when it had ended before."""
    with driver:  # which closes its pipes
        if driver.poll() is None:  # until it is waited for, its number is its own
            (os.kill if alone else os.killpg)(driver.pid, signal.SIGKILL)
        return driver.wait(ANSWER_S) == -signal.SIGKILL


def test_ferry_run_killed_at_random_points_loses_and_doubles_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 4)
    writer = producer(source_cluster, batch_num_messages=20)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "40000"},
    )
    send(writer, topic, numbered(3_000, partitions=4, size=300))
    assert lab.micro_run().state is RunState.SUCCESS
    sent, killed, rounds = 3_000, 0, 0
    with ledger_end(lab) as ledger:
        whole = ledger.now()  # so many records a run like those to come leaves
        while killed < DRIVERS:
            rounds += 1
            assert rounds <= 2 * DRIVERS, "most drivers end before they are hit"
            send(writer, topic, numbered(3_000, partitions=4, size=300, start=sent))
            sent += 3_000
            begin = ledger.now()
            # Mostly one slot: a process for each takes longer to start than all the rest.
            slots = {"tasks.max": rng.choice(["1", "1", "2"])}
            config = replace(lab, settings={**lab.settings, **slots}).write(tmp_path)
            driver = start("run", str(lab.flow.flow), "--quiet", config=config)
            # After its run record, its plan, a chunk: wherever it has come to then, within a moment.
            if ledger.passes(begin + rng.randrange(whole * 2 // 3), driver):
                pause(rng.uniform(0.0, 0.02))
            killed += kill(driver, alone=rng.random() < 0.5)
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == sent


def test_brokers_killed_at_random_points_lose_and_double_nothing(
    source_cluster: RunningCluster, three_brokers: RunningCluster, topic: str, rng: random.Random, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 6)
    writer = producer(source_cluster, batch_num_messages=20)
    lab = Lab(
        source=source_cluster,
        target=three_brokers,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "100000", "replication.factor": "3"},
    )
    assert lab.micro_run().state is RunState.SUCCESS
    sent = hit = 0
    for _ in range(BROKERS):
        send(writer, topic, numbered(6_000, partitions=6, size=300, start=sent))
        sent += 6_000
        with start_driver(lab, tmp_path) as driver:
            assert wait_for_line(driver, "opening")
            pause(rng.uniform(0.05, 0.4))
            broker = rng.choice(three_brokers.brokers)
            hit += driver.poll() is None
            broker.kill(signal.SIGKILL)
            driver.wait(4 * ANSWER_S)
        broker.start()
    three_brokers.wait_ready()
    assert finished(lab).state is RunState.SUCCESS
    assert lab.assert_equal() == sent
    assert hit, "each run had ended before a broker was killed"


def finished(lab: Lab) -> Report:
    """A run that succeeds once the cluster has settled."""
    until = time.monotonic() + 3 * ANSWER_S
    while True:
        try:
            report = lab.micro_run()
            if report.state is RunState.SUCCESS:
                return report
        except FerryError:
            if time.monotonic() > until:
                raise
        assert time.monotonic() < until, "no run succeeds"


def pause(seconds: float) -> None:
    """Let the run go on for a moment that the seed chose."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.005)
