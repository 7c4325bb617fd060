"""`python -m ferry_airflow.demo [--keep | --stop | --drill]`: runs the demo in `.demo` of the checkout.

`make demo` and `make drill` call it.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import httpx
from confluent_kafka import KafkaException

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.dev import ClusterSpec, RunningCluster, down, guard, up_all
from ferry.dev.process import ProcessRecord, find, spawn
from ferry.dev.process import stop as stop_processes
from ferry.errors import FerryError, Refused, Unreachable
from ferry.plan.lag import measure_lag
from ferry.run.micro_run import MicroRuns
from ferry_airflow import local
from ferry_airflow.demo.compare import compare, records_by_offset
from ferry_airflow.demo.data import GROUP, TOPICS, create_topics, fill, group_offsets, let_group_stand
from ferry_airflow.home import PASSWORD_FILE, USER, LocalHome
from ferry_airflow.naming import dag_id
from ferry_airflow.rest import ENDED, AirflowRest
from ferry_airflow.tables import MEGABYTE, table

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / ".demo"
REPORTS = ROOT / ".ferry" / "reports"
"""The reports of drills; they outlive the demo."""
DRILL_SECONDS = 180
"""The longest time for a shadow drill of all that the demo copies; a longer one is a failure."""

FLOW = "primary->backup"
RUNS = 3
RUN_BYTES = 400_000_000
"""The byte budget of a run: the first gigabyte takes more than one run, so that the lag visibly shrinks."""

NEARLY = 4_000
"""The most records of lag that a partition may have when the drill begins, because producers are running."""

MOST_SECONDS = 1_740.0
"""The longest time of all steps together, which take five minutes on a quiet machine.

A minute remains to stop everything within half an hour.
"""

IDENTICAL_FLOW = "exact->backup"
IDENTICAL_FILE = "identical.properties"
IDENTICAL_TOPIC = "payments"
"""The topic that is also copied with identical offsets. Its producer commits and aborts transactions."""

POLL_SECONDS = 1.0
LIVE_FILE = "live.json"
LIVE_LOG = "live.log"
SUCCESS = "success"
STOP = ".venv/bin/python -m ferry_airflow.demo --stop"
GOES_ON = f"What was started continues to run. To stop it: {STOP}; make demo begins again."
STOPPED = "Everything is stopped and its logs are deleted; make demo KEEP=1 keeps both."


def main(arguments: Sequence[str]) -> int:
    """Return exit code 0 when source and target are equal, 1 when not; else that of the error, which is printed."""
    parser = argparse.ArgumentParser(prog="python -m ferry_airflow.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running")
    parser.add_argument("--stop", action="store_true", help="stop what --keep left")
    parser.add_argument("--drill", action="store_true", help="a shadow drill instead, of a kept demo if one is running")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs that brokers are still starting
    try:
        if given.drill and is_live():
            return drill()
        clean()
        if given.stop:
            return 0
        demo = Demo(keep=given.keep)
        return demo.run_drill() if given.drill else demo.run()
    except FerryError as error:
        complain(f"demo failed: {error}")
        return error.exit_code
    except (KafkaException, httpx.HTTPError) as error:
        complain(f"demo failed: a cluster or Airflow does not answer as it should ({error}): see the logs in {HOME}")
        return Unreachable.exit_code
    except KeyboardInterrupt:
        complain("demo interrupted")
        return 130
    except Exception:
        complain("demo failed")
        raise


def complain(sentence: str) -> None:
    """Print how the demo failed and what is left of it."""
    print(f"{sentence}\n{GOES_ON if HOME.exists() else STOPPED}", file=sys.stderr)


def clean() -> None:
    """Stop what an earlier demo left running, and delete its data."""
    if not HOME.exists():
        return
    stop_live()
    local.stop(HOME / "airflow")
    down(HOME / "clusters", delete=True, grace_seconds=0)
    shutil.rmtree(HOME)


@contextmanager
def at_most(seconds: float, step: Callable[[], str]) -> Iterator[None]:
    """End the block after some seconds, whatever it waits for; Unreachable names the step. Main thread only."""

    def over(number: int, frame: FrameType | None) -> None:
        raise Unreachable(f"the demo took more than {seconds:.0f} s; the last step was: {step()}; logs are in {HOME}")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Demo:
    """One demo, step by step."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self.step = ""
        HOME.mkdir()
        (HOME / ".gitignore").write_text("*\n")

    def run(self) -> int:
        """Run all steps; what was started is stopped at the end unless it is to be kept."""
        with ExitStack() as stack:
            if not self.keep:
                stack.callback(clean)
                stack.enter_context(guard(HOME / "clusters"))
                stack.enter_context(local.guarded(HOME / "airflow"))
            stack.enter_context(at_most(MOST_SECONDS, lambda: self.step))
            source, target, flow, count = self.fill_source()
            self.say("starting Airflow: api-server, scheduler, dag-processor, triggerer")
            airflow = local.start(HOME / "airflow", config=HOME / "ferry.properties").home
            login = f"login {USER}, password {airflow.password}"
            print(f"    {_address(airflow)}  {login}: open it now, there are receipts after the first run", flush=True)
            with AirflowRest(airflow) as rest:
                self.replicate(rest, flow)
            self.say("comparing both sides with another client (librdkafka, read_committed), record by record")
            equal = show_comparison(flow, source, target, at_least=count)
            show_group(flow, source, target)
            self.say(f"copying {IDENTICAL_TOPIC} once more, with identical offsets: {IDENTICAL_FILE}")
            equal &= show_identical(flow, source, target)
            self.farewell(airflow, source)
        return 0 if equal else 1

    def fill_source(self) -> tuple[RunningCluster, RunningCluster, FlowConfig, int]:
        """Return both clusters, the flow, and how many records the source has; producers continue meanwhile."""
        self.say("starting two Kafka clusters: primary and backup")
        source, target = up_all([ClusterSpec(name="primary"), ClusterSpec(name="backup")], home=HOME / "clusters")
        flow = load(write_config(source, target)).flow(FLOW)
        self.say(f"producing about 1 GB to {len(TOPICS)} topics of primary")
        create_topics(source.bootstrap)
        count = fill(source.bootstrap)
        let_group_stand(source.bootstrap)
        self.say(f"{count} records are there; producers continue from now on")
        start_live(source, alone=False)
        return source, target, flow, count

    def run_drill(self) -> int:
        """Copy the existing records without Airflow, and drill while the producers run."""
        with ExitStack() as stack:
            if not self.keep:
                stack.callback(clean)
                stack.enter_context(guard(HOME / "clusters"))
            stack.enter_context(at_most(MOST_SECONDS, lambda: self.step))
            self.fill_source()
            self.say("copying it to backup by runs of the live lane")
            while ferry("lag", FLOW, "--rpo-records", str(NEARLY), "--quiet", shown=False):
                if ferry("run", FLOW, "--quiet"):
                    raise Refused(f"a run failed: see above; clusters are in {HOME}")
            self.say("a shadow drill: scratch topics and groups, everything compared, everything removed")
            return drill()

    def replicate(self, rest: AirflowRest, flow: FlowConfig) -> None:
        """Let Airflow run the flow on its schedule until nothing is left to copy; Refused when a run failed."""
        dag = dag_id(flow.flow)
        rest.wait_dag(dag)
        before = lag(flow)
        self.say(f"unpausing DAG {dag} (schedule {flow.airflow.schedule}); waiting for {RUNS} runs to finish")
        rest.pause(dag, paused=False)
        told: set[str] = set()
        self.wait_runs(rest, dag, told, RUNS)
        self.say("stopping the producers; further runs copy what they left")
        if not stop_live():
            raise Unreachable(f"the producers ended too early: see {HOME}/{LIVE_LOG}")
        begun = {run["dag_run_id"] for run in rest.runs(dag)}
        while not told - begun or lag(flow):
            self.wait_runs(rest, dag, told, len(told) + 1)
        show_runs(flow, [run["dag_run_id"] for run in rest.runs(dag) if run["dag_run_id"] in told])
        print(f"lag before: {before} records; lag after: 0 records")

    def wait_runs(self, rest: AirflowRest, dag: str, told: set[str], count: int) -> None:
        """Print every finished run and add it to `told`, until these are `count`; Refused when one failed."""
        pause = threading.Event()
        while True:
            for run in rest.runs(dag):
                if run["state"] in ENDED and run["dag_run_id"] not in told:
                    told.add(run["dag_run_id"])
                    print(f"    {run['dag_run_id']}: {run['state']}", flush=True)
                    if run["state"] != SUCCESS:
                        raise Refused(f"run {run['dag_run_id']} failed: see its tasks in {HOME}/airflow/logs")
            if len(told) >= count:
                return
            pause.wait(POLL_SECONDS)

    def say(self, text: str) -> None:
        """Begin a step."""
        self.step = text
        print(f"==> {text}", flush=True)

    def farewell(self, airflow: LocalHome, source: RunningCluster) -> None:
        """Print where the user interface is, and how to stop."""
        print(f"\n{_address(airflow)}  login {USER}, password as above (also in {airflow.path / PASSWORD_FILE})")
        if not self.keep:
            print("Stopping everything now; make demo KEEP=1 leaves it running.")
            return
        start_live(source, alone=True)
        print(f"Everything keeps running, producers too. To stop it: {STOP}")


def _address(airflow: LocalHome) -> str:
    return f"Airflow: {airflow.url}"


def write_config(source: RunningCluster, target: RunningCluster) -> Path:
    """Write the demo's configuration file, in MirrorMaker 2's format; return its path."""
    path = HOME / "ferry.properties"
    path.write_text(
        f"""clusters = primary, backup
primary.bootstrap.servers = {source.bootstrap}
backup.bootstrap.servers = {target.bootstrap}
primary->backup.enabled = true
primary->backup.topics = {", ".join(topic.name for topic in TOPICS)}
primary->backup.sync.group.offsets.enabled = true
replication.factor = 1
tasks.max = 2
primary->backup.ferry.schedule = @continuous
ferry.approve.own = true
ferry.page.records = true
primary->backup.ferry.run.max.bytes = {RUN_BYTES}
# The way back, for switchovers and full drills: it copies nothing before clients have moved.
backup->primary.enabled = true
backup->primary.topics = {", ".join(topic.name for topic in TOPICS)}
backup->primary.ferry.schedule = none
ferry.report.dir = {REPORTS}
"""
    )
    return path


def lag(flow: FlowConfig) -> int:
    """Return how many records of the demo's topics are not yet copied, at most; Unreachable when it is not known."""
    parts = measure_lag(flow, only={topic.name for topic in TOPICS})
    unknown = [part.source for part in parts if part.records is None]
    if unknown:
        raise Unreachable(f"how far {unknown[0]} is copied is not known: see the logs of both clusters in {HOME}")
    return sum(part.records or 0 for part in parts)


def show_runs(flow: FlowConfig, runs: Sequence[str]) -> None:
    """Print one line per run that has a plan."""
    rows = []
    with MicroRuns(flow) as micro_runs:
        for run in runs:
            report = micro_runs.report(run)
            seconds = report.seconds
            rate = report.bytes / MEGABYTE / seconds if seconds else 0.0
            rows.append(
                [
                    *(run, str(report.state), str(len({receipt.source for receipt in report.kept}))),
                    *(str(report.records), f"{report.bytes / MEGABYTE:.1f}", f"{seconds:.1f}", f"{rate:.1f}"),
                ]
            )
    print("\n" + "\n".join(table(["run", "state", "ranges", "records", "MB", "seconds", "MB/s"], rows)))


def show_comparison(flow: FlowConfig, source: RunningCluster, target: RunningCluster, *, at_least: int) -> bool:
    """Compare all that both sides hold; return whether it is equal and the source has `at_least` as many records."""
    copies = {topic.name: flow.copy_of(topic.name) for topic in TOPICS}
    found = compare(source.bootstrap, target.bootstrap, copies)
    rows = [[each.topic, str(each.partitions), str(each.records), str(len(each.differences))] for each in found]
    print("\n".join(table(["topic", "partitions", "records", "differences"], rows)))
    differences = [line for each in found for line in each.differences]
    records = sum(each.records for each in found)
    if records < at_least:
        differences.append(f"the source has {records} records, and acknowledged {at_least} before the first run")
    for line in differences:
        print(f"DIFFERENT  {line}")
    if not differences:
        print("Source and target are equal: keys, values, headers, timestamps, order.")
    return not differences


def show_group(flow: FlowConfig, source: RunningCluster, target: RunningCluster) -> None:
    """Print the offsets of the demo's consumer group on both sides."""
    topic = TOPICS[0].name
    copy = flow.copy_of(topic)
    sides = group_offsets(source.bootstrap, topic), group_offsets(target.bootstrap, copy)
    rows = [[f"{topic}-{number}", str(one), str(other)] for number, (one, other) in enumerate(zip(*sides, strict=True))]
    print(f"Group {GROUP}, which had read half of the records, continues at the same records of backup:")
    print("\n".join(table(["partition", "offset at primary", "offset at backup"], rows)))


def show_identical(flow: FlowConfig, source: RunningCluster, target: RunningCluster) -> bool:
    """Copy a topic with identical offsets, and print its last offsets; return whether all records have the same ones.

    Raises Refused when the run fails.
    """
    write_identical(source, target)
    if ferry("run", IDENTICAL_FLOW, "--quiet", shown=False, file=IDENTICAL_FILE):
        command = f"ferry run '{IDENTICAL_FLOW}' --config {HOME / IDENTICAL_FILE}"
        raise Refused(f"the run with identical offsets failed: see why with {command}")
    copies = flow.copy_of(IDENTICAL_TOPIC), f"{IDENTICAL_FLOW.partition('->')[0]}.{IDENTICAL_TOPIC}"
    wanted = records_by_offset(source.bootstrap, IDENTICAL_TOPIC)
    translated, identical = (records_by_offset(target.bootstrap, copy) for copy in copies)
    sides = wanted, translated, identical
    rows = [
        [f"{IDENTICAL_TOPIC}-{number}", *(_last_offset(side.get(number, [])) for side in sides)]
        for number in sorted(wanted)
    ]
    print("Offsets of the same record, the last of each partition:")
    print("\n".join(table(["partition", "at primary", f"in {copies[0]}", f"in {copies[1]}"], rows)))
    different = [number for number in wanted if wanted[number] != identical.get(number)]
    for number in different:
        print(f"DIFFERENT  {IDENTICAL_TOPIC}-{number}: records or offsets of {copies[1]} are not those of primary")
    return not different


def _last_offset(records: Sequence[tuple[int, bytes]]) -> str:
    return str(records[-1][0]) if records else "no record"


def write_identical(source: RunningCluster, target: RunningCluster) -> None:
    """Write a file with a flow of identical offsets.

    It has a name of its own for the source, so its copy has a name of its own, too.
    """
    (HOME / IDENTICAL_FILE).write_text(
        f"""clusters = exact, backup
# The same cluster as primary.
exact.bootstrap.servers = {source.bootstrap}
backup.bootstrap.servers = {target.bootstrap}
exact->backup.enabled = true
exact->backup.topics = {IDENTICAL_TOPIC}
exact->backup.ferry.offsets = identical
# A cluster of one broker may lose acknowledged records; with three brokers this line is not needed.
exact->backup.ferry.offsets.may.lose = true
exact->backup.emit.heartbeats.enabled = false
replication.factor = 1
"""
    )


def ferry(*arguments: str, shown: bool = True, file: str = "ferry.properties") -> int:
    """Run the program on a file of the demo; return its exit code."""
    command: list[str | Path] = [
        Path(sys.executable).with_name("ferry"),
        *arguments,
        "--config",
        HOME / file,
    ]
    return subprocess.run(command, check=False, stdout=None if shown else subprocess.DEVNULL).returncode


def drill() -> int:
    """Run a shadow drill of all that the demo's source has; return 0 when all was as it should be."""
    begun = time.monotonic()
    command = ["drills", "shadow", FLOW, "--from", "earliest", "--clean", "--report", str(REPORTS)]
    print(f"$ ferry {shlex.join(command)}", flush=True)
    code = ferry(*command)
    took_s = time.monotonic() - begun
    print(f"{drill_time(took_s)} Reports stay in {REPORTS}.")
    return code or int(took_s > DRILL_SECONDS)


def drill_time(took_s: float) -> str:
    """Return how long a drill took, compared with its aim."""
    verdict = "" if took_s <= DRILL_SECONDS else ": TOO LONG"
    return f"The drill took {took_s:.0f} s, the aim is {DRILL_SECONDS} s at most{verdict}."


def is_live() -> bool:
    """Return whether a demo that was kept is still running, with its producers."""
    record = ProcessRecord.read(HOME / LIVE_FILE)
    return record is not None and find(record) is not None


def start_live(source: RunningCluster, *, alone: bool) -> None:
    """Start the producers as a process of their own."""
    command = [sys.executable, "-m", "ferry_airflow.demo.live", source.bootstrap, str(HOME)]
    record = spawn([*command, *(["--alone"] if alone else [])], argument=str(HOME), log=HOME / LIVE_LOG)
    record.write(HOME / LIVE_FILE)


def stop_live() -> bool:
    """End the producers, if they run; return whether they did."""
    record = ProcessRecord.read(HOME / LIVE_FILE)
    if record is None:
        return False
    lived = find(record) is not None
    stop_processes([record], grace_seconds=15)
    return lived


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
