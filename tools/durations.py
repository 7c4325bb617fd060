"""Compare how long the test files took in the last session with tests/durations.json.

Exit code 1 when a file takes more than twice its time, or is long and not listed; `--write` lists the last session's
times. The speed of the machine does not count: times are compared after the median of all ratios.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.durations import KEPT, MEASURED, read  # noqa: E402 - tools are run by their paths

LISTED_SECONDS = 5.0
"""Shorter files are not listed."""

SLACK_SECONDS = 30.0
"""A file may take so much more than twice its time: the first user of a broker waits for its start."""


def main(*arguments: str) -> int:
    """Compare or list; the exit code."""
    measured = read(MEASURED)
    if "--write" in arguments:
        listed = read(KEPT) | measured if KEPT.exists() else measured
        there = {name: seconds for name, seconds in listed.items() if (ROOT / "tests" / name).exists()}
        long = {name: seconds for name, seconds in sorted(there.items()) if seconds >= LISTED_SECONDS}
        KEPT.write_text(json.dumps(long, indent=0) + "\n")
        return 0
    slower, scale = grown(measured, read(KEPT))
    print(f"{sum(measured.values()):.0f} s of tests; this machine takes {scale:.2f} times as long as the list says")
    for name, (seconds, usual) in slower.items():
        print(
            f"tests/{name} took {seconds:.0f} s; the list says {usual:.0f} s: make it faster, or run "
            "tools/durations.py --write and say in the commit why it takes longer",
            file=sys.stderr,
        )
    return 1 if slower else 0


def grown(measured: Mapping[str, float], kept: Mapping[str, float]) -> tuple[dict[str, tuple[float, float]], float]:
    """Files that took more than twice their time: seconds now and as listed (0: not); and the median of all ratios."""
    ratios = [measured[name] / seconds for name, seconds in kept.items() if name in measured]
    scale = max(1.0, statistics.median(ratios)) if ratios else 1.0
    slower = {}
    for name, seconds in measured.items():
        usual = kept.get(name, LISTED_SECONDS)
        if seconds > scale * (2 * usual + SLACK_SECONDS):
            slower[name] = (seconds, kept.get(name, 0.0))
    return slower, scale


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
