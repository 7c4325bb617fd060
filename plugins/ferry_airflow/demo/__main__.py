"""`python -m ferry_airflow.demo [--keep | --stop]`: runs the demo in `.demo` of the checkout; `make demo` calls it."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from ferry.config.flow import FlowConfig
from ferry.config.settings import load
from ferry.decide.ledger import last_receipts
from ferry.dev import ClusterSpec, RunningCluster, down, guard, up_all
from ferry.dev.process import ProcessRecord, spawn
from ferry.dev.process import stop as stop_processes
from ferry.errors import FerryError, Refused, Unreachable
from ferry.run.lag import measure_lag
from ferry.run.micro_run import MicroRuns
from ferry_airflow import local
from ferry_airflow.demo.compare import compare
from ferry_airflow.demo.data import TOPICS, create_topics, fill
from ferry_airflow.home import PASSWORD, USER, LocalHome
from ferry_airflow.naming import dag_id
from ferry_airflow.rest import AirflowRest
from ferry_airflow.tables import MEGABYTE, table

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / ".demo"
FLOW = "primary->backup"
RUNS = 3
RUN_BYTES = 400_000_000
"""Budget of a run: the first gigabyte takes more than one, so that the lag is seen to shrink."""

MOST_SECONDS = 570.0
POLL_SECONDS = 1.0
LIVE_FILE = "live.json"


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 when source and target are equal, 1 when not; else that of the error, which is said."""
    parser = argparse.ArgumentParser(prog="python -m ferry_airflow.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running")
    parser.add_argument("--stop", action="store_true", help="stop what --keep left")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it tells of brokers that are still starting
    try:
        clean()
        return 0 if given.stop else Demo(keep=given.keep).run()
    except FerryError as error:
        print(f"demo failed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("demo interrupted; everything is stopped", file=sys.stderr)
        return 130


def clean() -> None:
    """Stop what an earlier demo left running, and delete its data."""
    if not HOME.exists():
        return
    stop_live()
    local.stop(HOME / "airflow")
    down(HOME / "clusters", delete=True, grace_seconds=0)
    shutil.rmtree(HOME)


class Demo:
    """One demo, step by step."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self.deadline = time.monotonic() + MOST_SECONDS
        HOME.mkdir()
        (HOME / ".gitignore").write_text("*\n")

    def run(self) -> int:
        """All steps; what was started is stopped at the end unless it is to be kept."""
        with ExitStack() as stack:
            if not self.keep:
                stack.callback(clean)
                stack.enter_context(guard(HOME / "clusters"))
                stack.enter_context(local.guarded(HOME / "airflow"))
            say("starting two Kafka clusters: primary and backup")
            source, target = up_all([ClusterSpec(name="primary"), ClusterSpec(name="backup")], home=HOME / "clusters")
            flow = load(write_config(source, target)).flow(FLOW)
            say(f"producing about 1 GB to {len(TOPICS)} topics of primary")
            create_topics(source.bootstrap)
            count = fill(source.bootstrap)
            say(f"{count} records are there; producers go on from now")
            start_live(source, alone=False)
            say("starting Airflow: api-server, scheduler, dag-processor, triggerer")
            airflow = local.start(HOME / "airflow", config=HOME / "ferry.properties").home
            with AirflowRest(airflow) as rest:
                equal = self.replicate(rest, flow, source, target)
            self.farewell(airflow, source)
        return 0 if equal else 1

    def replicate(self, rest: AirflowRest, flow: FlowConfig, source: RunningCluster, target: RunningCluster) -> bool:
        """Let Airflow run the flow on its schedule, then compare; whether both sides are equal."""
        dag = dag_id(flow.flow)
        rest.wait_dag(dag)
        before = lag(flow)
        say(f"unpausing DAG {dag} (schedule {flow.schedule}); waiting for {RUNS} runs to finish")
        rest.pause(dag, paused=False)
        told: set[str] = set()
        self.wait_runs(rest, dag, told, lambda: len(told) >= RUNS)
        say("stopping the producers; one more run copies what they left")
        stop_live()
        seen = {run["dag_run_id"] for run in rest.runs(dag)}
        self.wait_runs(rest, dag, told, lambda: bool(told - seen))
        finished = [run for run in rest.runs(dag) if run["dag_run_id"] in told]
        failed = [run["dag_run_id"] for run in finished if run["state"] != "success"]
        show_runs(flow, [run["dag_run_id"] for run in finished])
        print(f"lag before: {before} records; lag after: {lag(flow)} records")
        say("comparing both sides with another client (librdkafka, read_committed), record by record")
        equal = show_comparison(flow, source, target)
        if failed:
            raise Refused(f"runs {', '.join(failed)} failed: see their report task in {HOME}/airflow/logs")
        return equal

    def wait_runs(self, rest: AirflowRest, dag: str, told: set[str], enough: Callable[[], bool]) -> None:
        """Announce every run that has finished, and keep it in `told`, until there are `enough`."""
        pause = threading.Event()
        while not enough():
            for run in rest.runs(dag):
                if run["state"] in ("success", "failed") and run["dag_run_id"] not in told:
                    told.add(run["dag_run_id"])
                    print(f"    {run['dag_run_id']}: {run['state']}", flush=True)
            if time.monotonic() > self.deadline:
                raise Unreachable(f"the runs of {dag} took more than {MOST_SECONDS:.0f} s: see {HOME}/airflow/logs")
            pause.wait(POLL_SECONDS)

    def farewell(self, airflow: LocalHome, source: RunningCluster) -> None:
        """Say where the user interface is, and how to stop."""
        print(f"\nAirflow: {airflow.url}  login {USER}, password {PASSWORD}")
        if not self.keep:
            print("Stopping everything now; make demo KEEP=1 leaves it running.")
            return
        start_live(source, alone=True)
        print("Everything goes on running, producers too. To stop it: .venv/bin/python -m ferry_airflow.demo --stop")


def write_config(source: RunningCluster, target: RunningCluster) -> Path:
    """The demo's configuration file, in MirrorMaker 2's format."""
    path = HOME / "ferry.properties"
    path.write_text(
        f"""clusters = primary, backup
primary.bootstrap.servers = {source.bootstrap}
backup.bootstrap.servers = {target.bootstrap}
primary->backup.enabled = true
primary->backup.topics = {", ".join(topic.name for topic in TOPICS)}
replication.factor = 1
tasks.max = 2
primary->backup.ferry.schedule = @continuous
primary->backup.ferry.run.max.bytes = {RUN_BYTES}
"""
    )
    return path


def lag(flow: FlowConfig) -> int:
    """Records that are not yet copied, at most."""
    return sum(part.records or 0 for part in measure_lag(flow))


def show_runs(flow: FlowConfig, runs: Sequence[str]) -> None:
    """One line per run that has a plan."""
    rows = []
    with MicroRuns(flow) as micro_runs:
        for run in runs:
            report = micro_runs.report(run)
            seconds = report.seconds
            rate = report.bytes / MEGABYTE / seconds if seconds else 0.0
            rows.append(
                [
                    *(run, str(report.state), str(len({receipt.source for receipt in report.receipts}))),
                    *(str(report.records), f"{report.bytes / MEGABYTE:.1f}", f"{seconds:.1f}", f"{rate:.1f}"),
                ]
            )
    print("\n" + "\n".join(table(["run", "state", "ranges", "records", "MB", "seconds", "MB/s"], rows)))


def show_comparison(flow: FlowConfig, source: RunningCluster, target: RunningCluster) -> bool:
    """Compare up to where the ledger says that the copy stands; whether all is equal."""
    with MicroRuns(flow) as runs:
        last = last_receipts(runs.ledger(), runs.lane)
    ends = {(receipt.source.topic, receipt.source.partition): receipt.end for receipt in last.values()}
    copies = {
        (receipt.source.topic, receipt.source.partition): ((place.topic, place.partition), receipt.target_next)
        for place, receipt in last.items()
    }
    found = compare(source.bootstrap, target.bootstrap, ends, copies)
    rows = [[each.topic, str(each.partitions), str(each.records), str(len(each.differences))] for each in found]
    print("\n".join(table(["topic", "partitions", "records", "differences"], rows)))
    differences = [line for each in found for line in each.differences]
    missing = sorted({topic.name for topic in TOPICS} - {each.topic for each in found})
    for line in [*differences, *(f"{name}: nothing was copied" for name in missing)]:
        print(f"DIFFERENT  {line}")
    if not differences and not missing:
        print("Source and target are equal: keys, values, headers, timestamps, order.")
    return not differences and not missing


def start_live(source: RunningCluster, *, alone: bool) -> None:
    """Start the producers as a process of their own."""
    command = [sys.executable, "-m", "ferry_airflow.demo.live", source.bootstrap, str(HOME)]
    record = spawn([*command, *(["--alone"] if alone else [])], argument=str(HOME), log=HOME / "live.log")
    record.write(HOME / LIVE_FILE)


def stop_live() -> None:
    """End the producers, if they run."""
    record = ProcessRecord.read(HOME / LIVE_FILE)
    if record is not None:
        stop_processes([record], grace_seconds=15)


def say(text: str) -> None:
    """One step of the demo."""
    print(f"==> {text}", flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
