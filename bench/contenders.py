"""Starts the contenders' processes, each on a target of its own, and measures what they took."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from usage import TreeMeter, Usage

from ferry.dev import RunningCluster
from ferry.run.spark.submit import submit_conf

HERE = Path(__file__).resolve().parent
PATIENCE_S = 600

SETTINGS = """\
clusters = {alias}, target
{alias}.bootstrap.servers = {source}
target.bootstrap.servers = {target}
{alias}->target.enabled = true
{alias}->target.topics = {topic}
replication.factor = 1
tasks.max = {tasks}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What Ferry took: to plan (its process and connections included), and to copy, all its processes together."""

    planning: Usage
    copying: Usage
    bytes: int
    records: int

    @property
    def whole(self) -> Usage:
        """Return plan and copy together."""
        return Usage(
            wall=self.planning.wall + self.copying.wall,
            cpu=self.planning.cpu + self.copying.cpu,
            peak_mb=max(self.planning.peak_mb, self.copying.peak_mb),
        )


class Part:
    """A Python process of the bench that answers with one line of JSON."""

    def __init__(self, script: str, *arguments: str, prefix: tuple[str, ...] = ()) -> None:
        command = [*prefix, sys.executable, str(HERE / script), *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_ready(self) -> None:
        """Wait until it has imported and connected what it needs."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "ready\n", f"a part of the bench ended early: {line!r}"

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def outcome(self) -> Any:
        """Wait for its end and its answer."""
        output, _ = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, f"a part of the bench failed with exit code {self._process.returncode}"
        return json.loads(output.splitlines()[-1])


IDENTICAL = """\
{alias}->target.ferry.offsets = identical
{alias}->target.ferry.offsets.may.lose = true
"""
"""The lines of a flow with identical offsets; brokers of the bench have one replica."""


def configuration(
    folder: Path, alias: str, source: str, target: str, topic: str, tasks: int, *, identical: bool = False
) -> Path:
    """Write Ferry's configuration file for one contender; `identical`: with identical offsets."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{alias}.properties"
    text = SETTINGS.format(alias=alias, source=source, target=target, topic=topic, tasks=tasks)
    path.write_text(text + (IDENTICAL.format(alias=alias) if identical else ""))
    return path


def ferry(
    folder: Path, alias: str, source: str, target: str, *, topic: str, tasks: int, identical: bool = False
) -> Copied:
    """Run Ferry's engine: one process plans, then one process for each slot copies; no Spark."""
    path = configuration(folder, alias, source, target, topic, tasks, identical=identical)
    specs = folder / f"{alias}.specs"
    began = time.monotonic()
    planned = Part("engine.py", "plan", str(path), "run-1", str(specs)).outcome()
    planning = Usage(**{**planned["usage"], "wall": time.monotonic() - began})
    parts = [Part("engine.py", "slot", str(specs), str(slot)) for slot in planned["slots"]]
    for part in parts:
        part.wait_ready()
    for part in parts:
        part.go()
    outcomes = [part.outcome() for part in parts]
    usages = [Usage(**outcome["usage"]) for outcome in outcomes]
    return Copied(
        planning=planning,
        copying=Usage(
            # All begin at once, so the slowest one's time is that of all.
            wall=max(usage.wall for usage in usages),
            cpu=sum(usage.cpu for usage in usages),
            peak_mb=max(usage.peak_mb for usage in usages),
        ),
        bytes=sum(outcome["bytes"] for outcome in outcomes),
        records=sum(outcome["records"] for outcome in outcomes),
    )


def verify(folder: Path, alias: str, records: int, size: int) -> Usage:
    """Run Ferry's comparison of what the contender `alias` has copied: so many records, and twice so many bytes."""
    part = Part("engine.py", "verify", str(folder / f"{alias}.properties"))
    part.wait_ready()
    part.go()
    outcome = part.outcome()
    assert (outcome["records"], outcome["bytes"]) == (records, 2 * size), (
        f"{outcome} of {records} records, {size} bytes"
    )
    return Usage(**outcome["usage"])


def spark_job(folder: Path, alias: str, source: str, target: str, *, topic: str, tasks: int) -> tuple[Usage, Usage]:
    """Run the whole job as Airflow submits it, from spark-submit's start to its end; and the plan before it."""
    path = configuration(folder, alias, source, target, topic, tasks)
    began = time.monotonic()
    planned = Part("engine.py", "plan", str(path), "run-1", str(folder / f"{alias}.specs")).outcome()
    planning = Usage(**{**planned["usage"], "wall": time.monotonic() - began})
    settings = [f"--conf={name}={value}" for name, value in submit_conf(HERE.parent / ".spark").items()]
    command = [str(Path(sys.executable).with_name("spark-submit")), f"--master=local[{tasks}]", *settings]
    command += [str(HERE.parent / "jobs" / "copy_job.py")]
    command += [f"--config={path}", f"--flow={alias}->target", "--run=run-1"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = folder / f"{alias}.log"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        meter = TreeMeter(process.pid)
        spent = 0.0
        while process.poll() is None:
            spent = meter.cpu()
            time.sleep(0.1)
        wall = time.monotonic() - began
    assert process.returncode == 0, f"the Spark job failed; its log ends with {log.read_text()[-2000:]}"
    return planning, Usage(wall=wall, cpu=spent, peak_mb=meter.worker_peak_mb)


def plans(folder: Path, alias: str, source: str, target: str, *, topic: str, slices: int) -> tuple[Usage, Usage]:
    """Plan one flow twice, each time in a process of its own: with the target's topics to create, and with none."""
    path = configuration(folder, alias, source, target, topic, 4)
    usages = []
    for run in ("run-1", "run-2"):
        began = time.monotonic()
        planned = Part("engine.py", "plan", str(path), run, str(folder / f"{alias}.specs")).outcome()
        usages.append(Usage(**{**planned["usage"], "wall": time.monotonic() - began}))
        assert planned["slices"] == slices, f"{planned['slices']} of {slices} partitions were planned"
        wait_until_led(target, f"{alias}.")
    return usages[0], usages[1]


def readiness(folder: Path, alias: str, partitions: int) -> Usage:
    """Run `ferry readiness` of what the contender `alias` has copied, in a process of its own, from start to end."""
    began = time.monotonic()
    outcome = Part("engine.py", "readiness", str(folder / f"{alias}.properties")).outcome()
    assert (outcome["partitions"], outcome["failed"]) == (partitions, []), outcome
    return Usage(**{**outcome["usage"], "wall": time.monotonic() - began})


def wait_until_led(bootstrap: str, prefix: str) -> None:
    """Wait until each partition of the topics with this prefix answers: a broker creates thousands in a minute."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=PATIENCE_S).topics
    left = {
        TopicPartition(name, number): OffsetSpec.latest()
        for name, topic in topics.items()
        if name.startswith(prefix)
        for number in topic.partitions
    }
    until = time.monotonic() + PATIENCE_S
    while left:
        assert time.monotonic() < until, f"{len(left)} partitions of {prefix}* have no leader after {PATIENCE_S} s"
        futures = admin.list_offsets(left, request_timeout=PATIENCE_S)
        left = {place: left[place] for place, future in futures.items() if future.exception() is not None}
        time.sleep(0.2)


def run_command(config: Path, flow: str) -> None:
    """Run `ferry run` for a flow."""
    command = [str(Path(sys.executable).with_name("ferry")), "--config", str(config), "run", flow]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def empty_command(folder: Path, alias: str, source: str, target: str, *, topic: str) -> Usage:
    """Run `ferry run` when there is nothing new, from the shell."""
    path = configuration(folder, alias, source, target, topic, 2)
    run_command(path, f"{alias}->target")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run_command(path, f"{alias}->target")
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(wall=wall, cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def empty_run(folder: Path, alias: str, source: str, target: str, *, topic: str, identical: bool = False) -> Usage:
    """Run a micro-run that finds nothing new, after one that copied: its process from start to end."""
    path = configuration(folder, alias, source, target, topic, 2, identical=identical)
    Part("engine.py", "whole", str(path), "run-1").outcome()
    began = time.monotonic()
    outcome = Part("engine.py", "whole", str(path), "run-2").outcome()
    assert outcome["records"] == 0, outcome
    return Usage(**{**outcome["usage"], "wall": time.monotonic() - began})


def bare_pump(source: str, target: str, *, topic: str, target_topic: str, partitions: int) -> tuple[Usage, str] | None:
    """Run the bare pump in one process, into a topic made for it; return what it took, and the topic.

    On a busy machine a request may have no answer. The pump then begins again, once, with another topic. It returns
    None if that has no answer either: then this pair has no figure of the pump.
    """
    for name in (target_topic, f"again-{target_topic}"):
        outcome = pumped(source, target, topic, name, partitions)
        if outcome is not None:
            return Usage(**outcome["usage"]), name
        delete_topic(target, name)
    return None


def pumped(source: str, target: str, topic: str, target_topic: str, partitions: int) -> dict[str, Any] | None:
    """Run the pump once; None if a request had no answer."""
    admin = AdminClient({"bootstrap.servers": target})
    admin.create_topics([NewTopic(target_topic, partitions, 1)])[target_topic].result()
    asked = {TopicPartition(target_topic, number): OffsetSpec.latest() for number in range(partitions)}
    until = time.monotonic() + PATIENCE_S
    while any(answer.exception() for answer in admin.list_offsets(asked).values()):  # it has no leader yet
        assert time.monotonic() < until, f"topic {target_topic} gets no leader"
    part = Part("bare_pump.py", source, target, topic, target_topic)
    part.wait_ready()
    part.go()
    outcome: dict[str, Any] | None = part.outcome()
    return outcome


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic, to free its disk space."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # the future's answer does not keep its client alive
    admin.delete_topics([topic])[topic].result()


def wait_until_deleted(cluster: RunningCluster, prefix: str) -> None:
    """Wait until no broker has a folder for a topic with this prefix."""
    until = time.monotonic() + PATIENCE_S
    while any(next(broker.data.glob(f"{prefix}*"), None) for broker in cluster.brokers):
        assert time.monotonic() < until, f"topics {prefix}* are not deleted after {PATIENCE_S} s"
        time.sleep(0.2)
