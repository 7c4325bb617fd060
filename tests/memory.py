"""How much memory this process has had at most: for those that tests start, each for one thing."""

from __future__ import annotations

from pathlib import Path


def peak_mb() -> float:
    """Peak resident memory so far, in MB.

    From VmHWM: `ru_maxrss` of a started process begins with the memory of the process that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))
