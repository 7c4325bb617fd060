"""The copy job under test, started as anybody would start it, and the Spark processes around it."""

from __future__ import annotations

import os
import pwd
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from ferry.dev import RunningCluster
from ferry.ledger.receipts import receipts as committed
from ferry.model import Plan, Receipt
from ferry.ports import free_ports
from ferry.run.ledger.access import LedgerAccess
from ferry.run.micro_run import local_origin
from ferry.run.spark.submit import ARCHIVE_FOLDER, java_options, submit_conf
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.tiers import ANSWER_S, PATIENCE

ROOT = Path(__file__).parents[2]
SMALL_CHUNKS = {"ferry.chunk.bytes": "1", "ferry.transaction.timeout.ms": "900000"}
"""A transaction for every request; the most time that brokers give one, unless they are configured otherwise."""
JOB = ROOT / "jobs" / "copy_job.py"
BIN = Path(sys.executable).parent
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
QUICK = java_options(ROOT / ARCHIVE_FOLDER)
"""For what Spark starts beside the driver; Ferry leaves that to its cluster."""
SMALL = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": QUICK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A started job; its output is in a file, so that nothing waits for a reader."""

    process: subprocess.Popen[bytes]
    output: Path

    def text(self) -> str:
        """What it has said until now."""
        return self.output.read_text(errors="replace")

    def wait(self, seconds: float = 300) -> int:
        """Its exit code; the output is in the assertion when it does not end, and has to be killed."""
        try:
            return self.process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            for one in self.tree():
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            raise AssertionError(f"the job did not end in {seconds * PATIENCE:g} s:\n{self.text()}") from None

    def tree(self) -> list[psutil.Process]:
        """Its living processes: the JVM, the driver, Spark's daemon and workers."""
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        return []

    def driver(self) -> psutil.Process:
        """The Python driver."""
        return next(p for p in self.tree() if p.pid != self.process.pid and str(JOB) in _cmdline(p))

    def workers(self) -> list[psutil.Process]:
        """Spark's Python workers on this machine that copy for this job in local mode."""
        return [p for p in self.tree() if "pyspark.daemon" in _cmdline(p)]


def submit(
    lab: Lab,
    run: str,
    folder: Path,
    *,
    master: str = "local[2,4]",
    arguments: tuple[str, ...] = (),
    job: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Job:
    """spark-submit of the copy job; `arguments` are Spark's, `job` are the job's own, which win over the usual."""
    settings = {**submit_conf(), "spark.executor.extraJavaOptions": QUICK}
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command = [str(BIN / "spark-submit"), "--master", master, *conf, *arguments, str(JOB)]
    return _start([*command, *job_arguments(lab, run, folder), *job], folder / f"{run}.out", environment)


def run_connected(lab: Lab, run: str, folder: Path, remote: str) -> Job:
    """The same job as a client of a Spark Connect server."""
    command = [sys.executable, str(JOB), *job_arguments(lab, run, folder)]
    return _start(command, folder / f"{run}.out", {"SPARK_REMOTE": remote})


def job_arguments(lab: Lab, run: str, folder: Path) -> list[str]:
    """The job's own command line."""
    return [
        *("--config", str(lab.write(folder)), "--flow", str(lab.flow.flow), "--run", run),
        *("--dag-id", "a-dag", "--dag-run-id", run, "--try-number", "3", "--host", "a-host"),
    ]


def _start(command: list[str], output: Path, environment: Mapping[str, str]) -> Job:
    with output.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **LOCAL, **environment},
            cwd=ROOT,
        )
    return Job(process=process, output=output)


def plan(lab: Lab, run: str) -> Plan:
    """Open a run, as the `plan` task does."""
    with lab.runs() as runs:
        return runs.open_run(run, local_origin())


SLOW_RATE = 200_000
"""Bytes a second, for `tests/quotas.py`: the first third of a `slow_lab` comes at once, and the rest takes 25 s."""


def slow_lab(source: RunningCluster, target: RunningCluster, topic: str, records: int = 24_000) -> Lab:
    """A flow whose run takes seconds: small batches, and a transaction for every request.

    The broker leaves an abandoned transaction open for so long that a test can see whether Ferry ended it.
    """
    create_topic(source, topic, 4)
    send(producer(source, batch_num_messages=20), topic, numbered(records, partitions=4, size=300))
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=SMALL_CHUNKS)


def until(condition: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Wait for a condition, for as long as Spark may take."""
    wait_until(condition, what, seconds)


def copying(lab: Lab, job: Job, receipts: int = 1) -> None:
    """Wait until the job has committed so many receipts of the newest run, and is not done."""

    def look() -> None:
        assert job.process.poll() is None, f"ended before it was hit:\n{job.text()}"

    first_receipts(lab, receipts, look)
    look()


def first_receipts(lab: Lab, count: int = 1, look: Callable[[], object] = lambda: None) -> list[Receipt]:
    """The receipts of the newest run, once there are so many; `look` is called until then, and may fail.

    The ledger is read on over one connection: a run that nothing holds (`tests/quotas.py`) is over soon.
    """
    found: list[Receipt] = []
    with LedgerAccess(lab.flow, patience_s=ANSWER_S) as ledger:

        def enough() -> bool:
            look()
            found[:] = committed(ledger.view_with_newest(lab.flow.lane, 1))
            return len(found) >= count

        until(enough, f"receipt {count}")
    return found


def random_point(rng: random.Random) -> int:
    """How many receipts of a `slow_lab` run, which has about 1,200, shall be there before something is killed."""
    return rng.randint(1, 500)


def all_gone(processes: list[psutil.Process], seconds: float = 30) -> None:
    """Wait until none of the processes lives."""
    until(lambda: not any(_lives(process) for process in processes), f"end of {processes}", seconds)


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A standalone master with two workers of one core each."""

    url: str
    pages: tuple[str, ...]
    """Of the master and of each worker."""
    processes: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> list[psutil.Process]:
        """The living executor JVMs."""
        children = [
            child for worker in self.processes[1:] for child in psutil.Process(worker.pid).children(recursive=True)
        ]
        return [
            child for child in children if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in _cmdline(child)
        ]


@contextmanager
def standalone(folder: Path, hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.1")) -> Iterator[Standalone]:
    """Start a master on 127.0.0.1 and a worker on each of the hosts; all end with the block."""
    port, *web = free_ports(4)
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web[0])]
    worker = [f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g"]
    places = [
        ["--host", hosts[n - 1], "--work-dir", str(folder / f"worker-{n}"), "--webui-port", str(web[n]), url]
        for n in (1, 2)
    ]
    commands = [master, *([*worker, *place] for place in places)]
    with ExitStack() as stack:
        started = [
            stack.enter_context(service([str(BIN / "spark-class"), *command], folder / f"spark-{number}.log"))
            for number, command in enumerate(commands)
        ]
        log = folder / "spark-0.log"
        until(lambda: log.read_text().count("Registering worker") == 2, "two registered workers")
        yield Standalone(url=url, pages=tuple(f"http://127.0.0.1:{one}" for one in web), processes=tuple(started))


def ui_conf(port: int | None) -> dict[str, str]:
    """Spark's own pages on that port, which Ferry leaves out; None leaves them out, too."""
    return {} if port is None else {"spark.ui.enabled": "true", "spark.ui.port": str(port)}


@contextmanager
def connect_server(folder: Path, port: int, *, ui: int | None = None, cores: int = 2) -> Iterator[str]:
    """Start a Spark Connect server on 127.0.0.1 with some cores; its address. It logs to connect.log in `folder`.

    With `ui` it has its pages on that port.
    """
    conf = {
        **submit_conf(),
        **ui_conf(ui),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": "INFO",
    }
    command = [str(BIN / "spark-submit"), "--master", f"local[{cores},4]", "--name", "connect"]
    command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "connect.log"
    with service(command, log):
        until(lambda: "Spark Connect server started" in log.read_text(), "the Spark Connect server")
        yield f"sc://127.0.0.1:{port}"


def as_(user: str | None) -> dict[str, Any]:
    """Arguments of `subprocess` for a process of a user's, in no group of ours; none for our own."""
    return {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


@contextmanager
def service(
    command: list[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: str | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends, with all that it started, when the block does.

    `environment` is the whole of its environment, that of a small local Spark unless given. With a `user` it is that
    user's in all.
    """
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **LOCAL, **SMALL} if environment is None else environment,
            cwd=cwd,
            start_new_session=True,
            **as_(user),
        )
    try:
        yield process
    finally:
        tree = []
        with suppress(psutil.NoSuchProcess):
            tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(15 * PATIENCE)
        for member in tree:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait(15 * PATIENCE)
