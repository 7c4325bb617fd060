"""A local Airflow as four processes, each in a session of its own: started, waited for, and stopped without remains.

`airflow standalone` would be one command, but ignores SIGINT and orphans its children on SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from ferry.errors import Refused, Unreachable
from ferry_airflow.home import LocalHome, prepare

COMPONENTS = {
    "api-server": ("api-server",),
    # Logs are read from the files; serving them would listen on every interface.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
HEALTHY = ("metadatabase", "scheduler", "dag_processor", "triggerer")
START_SECONDS = 120.0
GRACE_SECONDS = 12.0
POLL_SECONDS = 0.2
CLOCK_SLACK_SECONDS = 2.0
PIDS_FILE = "pids.json"
LOG_TAIL = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAirflow:
    """A running Airflow; any process can stop it by its home."""

    home: LocalHome


def start(path: Path, *, config: Path, dags: Path | None = None) -> LocalAirflow:
    """Prepare the home at `path`, start the four processes and wait until all are healthy.

    Raises:
        Refused: the home cannot be set up; the sentence has the reason.
        Unreachable: not healthy in time; what was started is stopped again, logs are in `path`/processes.
    """
    home = prepare(path, config=config, dags=dags)
    stop(path)
    environment = {**os.environ, **home.environment}
    setup = subprocess.run(
        [sys.executable, "-m", "ferry_airflow.setup", "--local", str(path)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    if setup.returncode:
        raise Refused(f"Airflow home {path} cannot be set up: {(setup.stdout + setup.stderr)[-LOG_TAIL:].strip()}")
    pids: dict[str, list[float]] = {}
    for name in COMPONENTS:
        pids[name] = spawn(home, name, environment)
        (home.path / PIDS_FILE).write_text(json.dumps(pids))
    try:
        _wait_healthy(home)
    except BaseException:
        stop(path)
        raise
    return LocalAirflow(home=home)


def stop(path: Path, *, grace_seconds: float = GRACE_SECONDS) -> None:
    """End the processes of the home and all that they started: SIGTERM, and SIGKILL after the grace."""
    file = path / PIDS_FILE
    if not file.exists():
        return
    leaders = {int(pid): started for pid, started in json.loads(file.read_text()).values()}
    for pid, started in leaders.items():
        if _is(pid, started):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    sessions = set(leaders)
    _wait_gone(sessions, grace_seconds)
    for process in members(sessions):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    _wait_gone(sessions, grace_seconds)
    file.unlink(missing_ok=True)


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Stop the Airflow of `path` when the block or this process ends, however it ends."""
    path.mkdir(parents=True, exist_ok=True)
    watcher = subprocess.Popen(
        [sys.executable, "-m", "ferry_airflow.local", str(path)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        stop(path)
        watcher.communicate()


def spawn(home: LocalHome, name: str, environment: Mapping[str, str]) -> list[float]:
    """Start one of COMPONENTS in a session of its own; return its pid, and when it began (psutil's create_time)."""
    with (home.log_folder / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(
            [str(Path(sys.executable).parent / "airflow"), *COMPONENTS[name]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
            cwd=home.path,
        )
    started = psutil.Process(child.pid).create_time()
    threading.Thread(target=child.wait, name=f"reap-{child.pid}", daemon=True).start()
    return [child.pid, started]


def _wait_healthy(home: LocalHome) -> None:
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    pids = {name: (int(pid), started) for name, (pid, started) in _pids(home).items()}
    while True:
        ended = [name for name, (pid, started) in pids.items() if not _is(pid, started)]
        if ended or time.monotonic() > deadline:
            name = ended[0] if ended else "api-server"
            why = "ended" if ended else f"is not healthy after {START_SECONDS:.0f} s"
            log = (home.log_folder / f"{name}.log").read_text(errors="replace")[-LOG_TAIL:]
            raise Unreachable(f"Airflow's {name} {why}; the end of its log:\n{log}")
        with suppress(httpx.HTTPError, ValueError):
            answer = httpx.get(f"{home.url}/api/v2/monitor/health", timeout=2).json()
            if all(answer[part]["status"] == "healthy" for part in HEALTHY):
                return
        pause.wait(POLL_SECONDS)


def _pids(home: LocalHome) -> dict[str, list[float]]:
    pids: dict[str, list[float]] = json.loads((home.path / PIDS_FILE).read_text())
    return pids


def _is(pid: int, started: float) -> bool:
    """Return whether the process lives and is the one that was started: pids are reused."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < CLOCK_SLACK_SECONDS and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def members(sessions: set[int]) -> list[psutil.Process]:
    """Return living processes of these sessions: Airflow's forks, their tasks, and Spark below them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _wait_gone(sessions: set[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while members(sessions) and time.monotonic() < deadline:
        pause.wait(POLL_SECONDS)


def main(arguments: list[str]) -> None:
    """Wait for the end of standard input, then stop the Airflow of the given home."""
    while os.read(0, 1024):
        pass
    stop(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
