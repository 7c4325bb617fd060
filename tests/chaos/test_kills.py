"""SIGKILL of drivers and brokers at random points; afterwards source and target are equal, record by record.

The suite's kills at points that the seed of the header chooses: 14 drivers and 4 brokers here; in `tests/spark` two
executors, a driver, its JVM, a Python worker and a client of Spark Connect; in `tests/airflow` the process of a task.
25 in all; kills at chosen steps of the protocol are in `tests/run`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ferry.decide.report import Report, RunState
from ferry.dev import RunningCluster
from ferry.errors import FerryError
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send

DRIVERS, BROKERS = 14, 4
"""How many are killed."""

DRIVER = """
import sys, secrets
from pathlib import Path
from ferry.config.settings import load
from ferry.run.ends import end_of
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.run.task import run_slot
flow = load(Path(sys.argv[1])).flow(sys.argv[2])
with MicroRuns(flow) as runs:
    print("opening", flush=True)
    plan = runs.plan("run-" + secrets.token_hex(4), local_origin())
    print("planned", flush=True)
    attempt = runs.begin(plan, local_origin())
    specs = [runs.task_spec(plan, slot, attempt) for slot in plan.used_slots]
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


def test_a_driver_killed_at_random_points_loses_and_doubles_nothing(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 4)
    writer = producer(source_cluster, batch_num_messages=20)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "100000"},
    )
    sent = killed = rounds = 0
    while killed < DRIVERS:
        rounds += 1
        assert rounds <= 3 * DRIVERS, "most drivers end before they are hit"
        send(writer, topic, numbered(3_000, partitions=4, size=300, start=sent))
        sent += 3_000
        driver = start_driver(lab, tmp_path)
        assert wait_for_line(driver, "opening" if rounds % 3 == 0 else "planned")
        pause(rng.uniform(0.0, 0.25))  # the point is random on purpose; the run takes about this long
        os.kill(driver.pid, signal.SIGKILL)
        killed += driver.wait(30) == -signal.SIGKILL
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
    sent = 0
    for _ in range(BROKERS):
        send(writer, topic, numbered(6_000, partitions=6, size=300, start=sent))
        sent += 6_000
        driver = start_driver(lab, tmp_path)
        assert wait_for_line(driver, "opening")
        pause(rng.uniform(0.05, 0.4))
        broker = rng.choice(three_brokers.brokers)
        broker.kill(signal.SIGKILL)
        driver.wait(120)
        broker.start()
    three_brokers.wait_ready()
    assert finished(lab).state is RunState.SUCCESS
    assert lab.assert_equal() == sent


def finished(lab: Lab) -> Report:
    """A run that succeeds once the cluster has settled."""
    until = time.monotonic() + 90
    while True:
        try:
            report = lab.micro_run()
            if report.state is RunState.SUCCESS:
                return report
        except FerryError:
            if time.monotonic() > until:
                raise
        assert time.monotonic() < until


def pause(seconds: float) -> None:
    """Let the run go on for a moment that the seed chose."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.005)
