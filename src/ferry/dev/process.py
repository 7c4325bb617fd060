"""Processes that outlive the command which started them, told apart from others that get their pid later."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from ferry.dev.files import read_json, write_json

# Start times are computed from the boot time, which the kernel shifts when the clock is set.
CLOCK_SLACK_SECONDS = 2.0
POLL_SECONDS = 0.02
EXEC_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """A started process: pid, start time (seconds since the epoch) and an argument that only this process has."""

    pid: int
    started: float
    argument: str

    def write(self, path: Path) -> None:
        """Record it at `path`, whole or not at all."""
        write_json(path, {"pid": self.pid, "started": self.started, "argument": self.argument})

    @classmethod
    def read(cls, path: Path) -> "ProcessRecord | None":
        """Return the record at `path`, or None when nothing was started there."""
        content = read_json(path)
        if content is None:
            return None
        return cls(pid=int(content["pid"]), started=float(content["started"]), argument=str(content["argument"]))


def spawn(command: Sequence[str], *, argument: str, log: Path) -> ProcessRecord:
    """Start `command` in a session of its own, output appended to `log`; `argument` must be one of its arguments.

    It returns when the new program shows its arguments, so that a reader of the record can identify the process by
    them.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    started = psutil.Process(child.pid).create_time()
    # Reaps the child when it ends; without it a killed broker stays in the process table as a zombie.
    threading.Thread(target=child.wait, name=f"reap-{child.pid}", daemon=True).start()
    record = ProcessRecord(pid=child.pid, started=started, argument=argument)
    wait_for(lambda: not find(record) or _shows(record), seconds=EXEC_SECONDS)
    return record


def find(record: ProcessRecord) -> psutil.Process | None:
    """Return the recorded process while it lives; None when it ended, even if another process has its pid by now."""
    try:
        process = psutil.Process(record.pid)
        if abs(process.create_time() - record.started) > CLOCK_SLACK_SECONDS:
            return None
        # An ending process no longer has its arguments, but may still hold its sockets and files.
        with suppress(psutil.ZombieProcess):  # its status shows less than its threads do
            arguments = process.cmdline()
            if arguments and record.argument not in arguments:
                return None
        if process.status() == psutil.STATUS_ZOMBIE:
            # A killed process is a zombie once its first thread has ended; the others still hold its sockets and files.
            return process if process.num_threads() > 1 else None
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return process


def _shows(record: ProcessRecord) -> bool:
    """Return whether the pid belongs to a process with the recorded argument, which a signal requires."""
    try:
        return record.argument in psutil.Process(record.pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def is_paused(record: ProcessRecord) -> bool:
    """Return whether the recorded process lives and was stopped by SIGSTOP."""
    process = find(record)
    try:
        return process is not None and bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def send(record: ProcessRecord, number: signal.Signals) -> bool:
    """Send a signal to the recorded process and no other; False when it had ended already."""
    process = find(record)
    if process is None or not _shows(record):
        return False
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True


def wait_for(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Check `condition` until it holds or `seconds` have passed; return whether it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def wait_gone(records: Iterable[ProcessRecord], *, seconds: float) -> list[ProcessRecord]:
    """Wait until the recorded processes have ended; return those that still live after `seconds`."""
    living = list(records)

    def gone() -> bool:
        living[:] = [record for record in living if find(record)]
        return not living

    wait_for(gone, seconds=seconds)
    return living


def stop(records: Iterable[ProcessRecord], *, grace_seconds: float) -> None:
    """End the recorded processes: SIGTERM to all, and SIGKILL to those that live after `grace_seconds`."""
    living = [record for record in records if find(record)]
    if grace_seconds > 0:
        for record in living:
            send(record, signal.SIGTERM)
            send(record, signal.SIGCONT)
        living = wait_gone(living, seconds=grace_seconds)
    for record in living:
        send(record, signal.SIGKILL)
    wait_gone(living, seconds=10)
