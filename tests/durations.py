"""How long each test file takes: kept in durations.json, used for dealing, measured in each session.

A session writes what it measured to build/durations.json: seconds per file, set-up and clean-up included. What a
fixture of a session or of a package takes to start is no file's own: the first file to ask waits for it.
`python -m tests.durations` compares the two. Its exit code is 1 when a file takes more than twice its time and
MORE_SECONDS, and again so when it is run alone. It is 1, too, when all files together take more than BUDGET_SECONDS:
the listed ones, and those of more than MORE_SECONDS that are not listed yet. `--write` looks at the listed ones.
The speed of the machine does not count: times are divided by the median of all ratios in the first session, where that
is more than 1. `--write` lists the last session's times, and no others if it ran most of the listed files.
"""

import itertools
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.tiers import PURE

TESTS = Path(__file__).parent
KEPT = TESTS / "durations.json"
MEASURED = TESTS.parent / "build" / "durations.json"

LISTED_SECONDS = 2.0
"""Shorter files are not listed."""

MORE_SECONDS = 10.0
"""What a file may take more than twice its time: short ones vary by seconds, with what runs at the same time."""

WARM_SECONDS = 30.0
"""What a file of Spark may take more: the first jobs of a session take that (classes, generated code, workers).

Which file of a process is the first changes with the list, and a file that runs alone always is.
"""

BUDGET_SECONDS = 3_400.0
"""How long all files may take together: three processes have 3,600 s in the 20 minutes of `make test`.

Short files, the collection, and what many files share take the other 200.
"""

SHARED_SCOPES = ("session", "package")
SHARED = "shared seconds"
"""The property of a report that says how long its test waited for fixtures of these scopes."""


def read(path: Path) -> dict[str, float]:
    """Seconds per file, its path below tests/."""
    seconds: dict[str, float] = json.loads(path.read_text())
    return seconds


def file_of(nodeid: str) -> str:
    """The path below tests/ of a test's file."""
    return nodeid.partition("::")[0].removeprefix("tests/")


class Shared:
    """A plugin that counts the seconds of fixtures that many files share; with `pytest -n`, in each process.

    Each report carries, as a property, what was counted since the one before.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Count the start of a fixture; what it asks for is in its time."""
        if fixturedef.scope not in SHARED_SCOPES:
            return (yield)
        before, begun = self._seconds, time.perf_counter()
        try:
            return (yield)
        finally:
            self._seconds = before + time.perf_counter() - begun

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the property."""
        report = yield
        report.user_properties.append((SHARED, self._seconds))
        self._seconds = 0.0
        return report


class OneReport:
    """A plugin for the processes of `pytest -n`: a pure test that passes is one report, with its fixtures' seconds.

    Each report costs 0.2 ms of CPU time, here and in the process that has those of all. Tests of other folders report
    as usual: their set-up and clean-up take long.
    """

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a pure test as pytest does, but report it at its end."""
        if not file_of(item.nodeid).startswith(f"{PURE}/"):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in in_one(runtestprotocol(item, log=False, nextitem=nextitem)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def in_one(reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """The report of the call, with the seconds of set-up and clean-up; all of them where one did not pass."""
    calls = [one for one in reports if one.when == "call"]
    if not calls or not all(one.passed for one in reports):
        return reports
    for call in calls:
        call.duration = sum(one.duration for one in reports)
        call.user_properties = [pair for one in reports for pair in one.user_properties]
    return calls


class Durations:
    """A plugin that counts the seconds of each file; with `pytest -n`, in the process that has the reports of all."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a set-up, a call or a clean-up."""
        shared = sum(float(str(value)) for name, value in report.user_properties if name == SHARED)
        self._seconds[file_of(report.nodeid)] += report.duration - shared
        self._tests[file_of(report.nodeid)].add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what ran: tests of each folder, and their seconds in all processes."""
        for folder, names in itertools.groupby(sorted(self._tests), key=lambda file: file.partition("/")[0]):
            files = list(names)
            tests, seconds = sum(len(self._tests[file]) for file in files), sum(self._seconds[file] for file in files)
            terminalreporter.write_line(f"{folder}: {tests} tests of {len(files)} files, {seconds:.0f} s")

    def pytest_sessionfinish(self) -> None:
        """Write the file; a session of no tests leaves that of the last one."""
        if self._seconds:
            MEASURED.parent.mkdir(exist_ok=True)
            write(MEASURED, self._seconds)


def write(path: Path, seconds: Mapping[str, float]) -> None:
    """Write seconds per file, a line each."""
    path.write_text(json.dumps({name: round(took, 1) for name, took in sorted(seconds.items())}, indent=0) + "\n")


def scale_of(measured: Mapping[str, float], kept: Mapping[str, float]) -> float:
    """How many times as long as listed this machine takes: the median of all ratios, at least 1."""
    ratios = [measured[name] / seconds for name, seconds in kept.items() if name in measured]
    return max(1.0, statistics.median(ratios)) if ratios else 1.0


def grown(measured: Mapping[str, float], kept: Mapping[str, float], scale: float) -> list[str]:
    """Files that took too long on a machine that takes `scale` times as long as the list says."""

    def most(name: str) -> float:
        seconds = 2 * kept[name] + MORE_SECONDS
        return scale * (seconds + WARM_SECONDS if name.startswith("spark/") else seconds)

    return sorted(name for name, seconds in measured.items() if name in kept and seconds > most(name))


def unlisted(measured: Mapping[str, float], kept: Mapping[str, float], scale: float) -> dict[str, float]:
    """Files that are to be listed, with the seconds that the list would have."""
    found = {name: seconds / scale for name, seconds in measured.items() if name not in kept}
    return {name: seconds for name, seconds in sorted(found.items()) if seconds >= LISTED_SECONDS}


def is_over_budget(kept: Mapping[str, float]) -> bool:
    """Whether the files of a list take longer together than `make test` may."""
    return sum(kept.values()) > BUDGET_SECONDS


def run_alone(files: Iterable[str]) -> dict[str, float]:
    """Seconds per file of a second session, without other tests beside it.

    Raises:
        subprocess.CalledProcessError: A test failed.
    """
    paths = (str(TESTS / name) for name in files)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", *paths], check=True)
    return read(MEASURED)


def main(*arguments: str) -> int:
    """Compare or list; the exit code."""
    measured = read(MEASURED)
    if "--write" in arguments:
        kept = read(KEPT)
        was_whole = len(measured.keys() & kept.keys()) > len(kept) / 2
        listed = measured if was_whole else kept | measured
        write(KEPT, {name: took for name, took in listed.items() if took >= LISTED_SECONDS and (TESTS / name).exists()})
        return within_budget(read(KEPT))
    kept = read(KEPT)
    scale = scale_of(measured, kept)
    slower = grown(measured, kept, scale)
    print(f"{sum(measured.values()):.0f} s of tests; this machine takes {scale:.2f} times as long as the list says")
    more = unlisted(measured, kept, scale)
    long = {name: seconds for name, seconds in more.items() if seconds > MORE_SECONDS}
    if more:
        print(f"not listed yet (python -m tests.durations --write): {', '.join(more)}")
    if slower:
        print(f"slower than the list permits, so run again alone: {', '.join(slower)}", flush=True)
        again = run_alone(slower)
        measured |= {name: min(seconds, measured[name]) for name, seconds in again.items()}
        write(MEASURED, measured)
        slower = grown(measured, kept, scale)
    for name in slower:
        print(
            f"tests/{name} took {measured[name]:.0f} s; the list says {kept[name]:.0f} s: make it faster, or run "
            "python -m tests.durations --write and say in the commit why it takes longer",
            file=sys.stderr,
        )
    return 1 if slower else within_budget(kept | long)


def within_budget(kept: Mapping[str, float]) -> int:
    """Say how long a list is; the exit code."""
    said = f"the files take {sum(kept.values()):.0f} s; the budget is {BUDGET_SECONDS:.0f} s"
    if not is_over_budget(kept):
        print(said)
        return 0
    print(f"{said}: make tests faster, or leave some to make test-all (tests/extra.toml)", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
