"""How long each test file takes: kept in durations.json, used for dealing, measured in each session.

A session writes what it measured to build/durations.json: seconds per file, set-up and clean-up included.
`tools/durations.py` compares the two.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
KEPT = TESTS / "durations.json"
MEASURED = TESTS.parent / "build" / "durations.json"


def read(path: Path) -> dict[str, float]:
    """Seconds per file, its path below tests/pure/."""
    seconds: dict[str, float] = json.loads(path.read_text())
    return seconds


def file_of(nodeid: str) -> str:
    """The path below tests/ of a test's file."""
    return nodeid.partition("::")[0].removeprefix("tests/")


class Durations:
    """A plugin that counts the seconds of each file; with `pytest -n`, in the process that has the reports of all."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a set-up, a call or a clean-up."""
        self._seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file; a session of no tests leaves that of the last one."""
        if self._seconds:
            MEASURED.parent.mkdir(exist_ok=True)
            measured = {name: round(seconds, 1) for name, seconds in sorted(self._seconds.items())}
            MEASURED.write_text(json.dumps(measured, indent=0) + "\n")
