"""Put plausible faults into the code, one at a time, and check whether the named tests notice them: `make mutants`.

The table is tests/mutants.toml. Each entry replaces one piece of text in a copy of the sources, where it must
be exactly once. Its tests run against that copy, as `make quick` does. The same tests first run without a fault: when
they fail then, no fault is tried. AT_ONCE faults are tried at the same time, each in a copy of its own.

A test that fails has noticed the fault. So has one that takes longer than its time; such a fault is printed as "timed
out". A fault that no test notices is printed as survived, with the reason of the table (`survives`), if it has one. The
last lines show how many each area noticed.

The exit code is 1 when a fault survived without a reason. It is also 1 when the tests notice fewer than 90 % of all
faults, or 95 % of those of `copy` and `write` together. `NAME ...` runs the entries whose names begin so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "mutants.toml"
SOURCES = ("src", "plugins")
SECONDS = 300
AT_ONCE = 2
"""How many copies of the sources there are: one for each core, as for `make quick`."""
QUICK = "not slow and not extra and not soak"
ALONE = ("-n", "0", "-p", "no:cacheprovider")
AREAS = (
    *("write", "copy", "fetch", "plan", "ledger", "groups"),
    *("verify", "switch", "spark", "sink", "rows", "identical"),
)
WRITERS = ("copy", "write")
"""Their faults lose or double records, so fewer of them may survive."""
LEAST = 90
LEAST_OF_WRITERS = 95
FAILED = 1
"""Pytest's exit code when tests ran and some failed."""
ONE_TIMED_OUT = "from pytest-timeout"
"""What pytest prints when one test took longer than its own time."""


class Outcome(StrEnum):
    """The result of the tests on a copy of the sources."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"


def main(names: list[str]) -> int:
    """Run the table, or the entries whose names begin with one of `names`; return the exit code."""
    table = tomllib.loads(TABLE.read_text())
    chosen = {name: one for name, one in table.items() if not names or name.startswith(tuple(names))}
    if not chosen:
        raise SystemExit(f"no fault of {TABLE.relative_to(ROOT)} has a name that begins with {' or '.join(names)}")
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="ferry-mutants-") as folder:
        copies = [Path(folder) / str(number) for number in range(AT_ONCE)]
        for copy, source in product(copies, SOURCES):
            shutil.copytree(ROOT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
        for line in _each(copies, _try_without_a_fault, dict.fromkeys(one["tests"] for one in chosen.values())):
            print(line, flush=True)
        for name, (outcome, seconds) in zip(chosen, _each(copies, _with_fault, chosen.values()), strict=True):
            outcomes[name] = outcome
            said = _said(outcome, chosen[name].get("survives", ""))
            print(f"{name:<40} {said} in {seconds:.0f} s: {chosen[name]['what']}", flush=True)
    for line in summary(outcomes):
        print(line)
    found = shortcomings(outcomes, {name for name, one in chosen.items() if one.get("survives")})
    for line in found:
        print(line)
    return 1 if found else 0


def summary(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Make a line for each area that was run, and one for all: how many faults are noticed, of how many."""
    by_area = {area: _of(outcomes, (area,)) for area in AREAS}
    return [f"{area:<9} {_share(some)}" for area, some in {**by_area, "all": outcomes}.items() if some]


def shortcomings(outcomes: Mapping[str, Outcome], reasoned: set[str]) -> list[str]:
    """Say why the exit code is 1, in a sentence each; the table has a reason for the survival of `reasoned` faults."""
    survived = [name for name, outcome in outcomes.items() if outcome is Outcome.PASSED and name not in reasoned]
    found = [f"no test notices, and no reason is given: {', '.join(survived)}"] if survived else []
    writers = _of(outcomes, WRITERS)
    for what, some, least in (("all", outcomes, LEAST), ("copy and write", writers, LEAST_OF_WRITERS)):
        if 100 * _noticed(some) < least * len(some):
            found.append(f"of {what} {_share(some)} are noticed, and {least} % are the least")
    return found


def _of(outcomes: Mapping[str, Outcome], areas: tuple[str, ...]) -> dict[str, Outcome]:
    return {name: outcome for name, outcome in outcomes.items() if name.partition("-")[0] in areas}


def _noticed(outcomes: Mapping[str, Outcome]) -> int:
    return sum(outcome is not Outcome.PASSED for outcome in outcomes.values())


def _share(outcomes: Mapping[str, Outcome]) -> str:
    noticed = _noticed(outcomes)
    return f"{noticed} of {len(outcomes)}, {100 * noticed / len(outcomes):.1f} %"


def _said(outcome: Outcome, why: str) -> str:
    if outcome is Outcome.PASSED:
        return f"SURVIVED{f' ({why})' if why else ''}"
    return "killed" if outcome is Outcome.FAILED else "timed out"


def _each(copies: Iterable[Path], act: Callable[[Path, T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield what `act` returns for each item, in their order; each copy is used for one item at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(item: T) -> R:
        copy = free.get()
        try:
            return act(copy, item)
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(one, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _try_without_a_fault(copy: Path, tests: str) -> str:
    began = time.monotonic()
    outcome = _outcome(copy, tests)
    if outcome is not Outcome.PASSED:
        how = "fail" if outcome is Outcome.FAILED else "take longer than their time"
        raise SystemExit(f"{tests}: these tests {how} without any fault, so they show nothing; fix them first")
    return f"{tests} passes without a fault in {time.monotonic() - began:.0f} s"


def _with_fault(copy: Path, one: dict[str, str]) -> tuple[Outcome, float]:
    """Return the outcome, and how many seconds it took."""
    began, path = time.monotonic(), copy / one["file"]
    text = path.read_text()
    if text.count(one["old"]) != 1:
        raise SystemExit(f"{one['file']} has {text.count(one['old'])} times, not once: {one['old']!r}")
    path.write_text(text.replace(one["old"], one["new"]))
    compiled = Path(importlib.util.cache_from_source(str(path)))
    compiled.unlink(missing_ok=True)
    try:
        return _outcome(copy, one["tests"]), time.monotonic() - began
    finally:
        path.write_text(text)
        compiled.unlink(missing_ok=True)  # it has the fault, and its time and size may be those of the next one


def _outcome(copy: Path, tests: str) -> Outcome:
    # The copies come before the checkout, which the environment has installed.
    found = os.pathsep.join([*(str(copy / source) for source in SOURCES), str(ROOT)])
    fixed = {"FERRY_SEED": "1", "HYPOTHESIS_PROFILE": "quick"}  # the settings of `make quick`
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", QUICK, "-q", "-x", *ALONE, *tests.split()],
            cwd=ROOT,
            env={**fixed, **os.environ, "PYTHONPATH": found},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome.TIMED_OUT
    if done.returncode not in (0, FAILED):
        raise SystemExit(f"{tests} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if done.returncode == 0:
        return Outcome.PASSED
    return Outcome.TIMED_OUT if ONE_TIMED_OUT in done.stdout else Outcome.FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
