"""CPU-seconds, wall seconds and peak memory of a contender, its children included."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a piece of work took: wall seconds, CPU-seconds (user and system), and peak resident memory in MB."""

    wall: float
    cpu: float
    peak_mb: float = 0.0


def peak_mb(pid: int | str = "self") -> float:
    """Return the peak resident memory of a process so far, in MB.

    It is read from VmHWM, because `ru_maxrss` of a started process begins with the memory of the process that started
    it.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


class Stopwatch:
    """Measures wall seconds and CPU-seconds of this process since it was made."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._cpu = time.process_time()

    def usage(self) -> Usage:
        """Return what this process has taken since then."""
        return Usage(wall=time.monotonic() - self._wall, cpu=time.process_time() - self._cpu, peak_mb=peak_mb())


class TreeMeter:
    """Measures CPU-seconds of a process and its descendants, also of those that have ended, if it is asked often."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._seen: dict[tuple[int, float], float] = {}
        self.peak_mb = 0.0
        """The most that the whole tree had resident when it was asked."""
        self.worker_peak_mb = 0.0
        """The most that one of its Spark workers had resident when it was asked."""

    def cpu(self) -> float:
        """Return CPU-seconds of the tree so far. Call it now and then: a child that was never seen is not counted."""
        members = [self._root]
        try:
            members += self._root.children(recursive=True)
        except psutil.NoSuchProcess:
            members = []
        resident = 0
        for member in members:
            try:
                with member.oneshot():
                    times = member.cpu_times()
                    size = member.memory_info().rss
                    resident += size
                    if "pyspark.daemon" in member.cmdline():
                        self.worker_peak_mb = max(self.worker_peak_mb, size / 1e6)
                    self._seen[member.pid, member.create_time()] = times.user + times.system
            except psutil.NoSuchProcess:
                continue
        self.peak_mb = max(self.peak_mb, resident / 1e6)
        return sum(self._seen.values())
