"""Print the pure tests of a source file that take seconds; without a file, their folder.

First the tests that tests/mutants.toml names for the file: all of them. Then those that import its module themselves,
the nearest first. After them up to MOST that use a helper of the tests which imports the module. While there are
fewer than MOST in all, the nearest follow that import the module over other modules and are too short for
tests/durations.json. All together take SECONDS at most by that list: a longer one is left out, and shorter ones follow.

A module that is named in a string (`"ferry.run.micro_run:MicroRuns"`) counts as imported. A file of which all tests are
`slow` does not count, because `make quick` leaves it out. How many others were left out is printed. The exit code is 2
if no pure test is there, so that nothing passes without a test; then the nearest other tests are named.
"""

from __future__ import annotations

import functools
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.durations import KEPT, read  # noqa: E402 - tools are run by their paths
from tests.tiers import PURE  # noqa: E402

SOURCES = (ROOT / "src", ROOT / "plugins", ROOT)
MUTANTS = ROOT / "tests" / "mutants.toml"
MOST = 8
"""Most test files that a helper leads to; with others that are further away no more than this in all."""
SECONDS = 26.0
"""How long these may take together, as tests/durations.json lists them."""
UNLISTED_SECONDS = 0.5
"""What a file counts that is too short for the list: its mean, with its collection."""

# Not by a parser, because parsing all files takes four seconds.
_IMPORT = re.compile(r"^[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|[^(\n]*)|import +([\w., ]+))", re.MULTILINE)
_STRING = re.compile(r"[\"'](ferry(?:_airflow)?(?:\.\w+)+)[\"':]")
_NAME = re.compile(r"^ *(\w+)", re.MULTILINE)
_SLOW = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)


def main(name: str = "") -> int:
    """Print the files or folders; return the exit code."""
    if not name:
        print(f"tests/{PURE}")
        return 0
    path = (ROOT / name).resolve()
    if not path.is_file() or not path.is_relative_to(ROOT) or path.suffix != ".py":
        print(f"{name} is not a file of src or plugins", file=sys.stderr)
        return 2
    tests, steps = near(path)
    named = _of_faults(path)
    pure = [one for one in tests if Path(one).parts[0] == PURE and not _is_slow(one)]
    if not named and not pure:
        nearest = " ".join(f"tests/{one}" for one in tests[:MOST])
        told = f'make test ARGS="{nearest}"' if tests else "make test"
        print(f"no test of make quick imports {name}, or what imports it: run {told}", file=sys.stderr)
        return 2
    direct = [one for one in pure if _module(path) in _imports(ROOT / "tests" / one)]
    chosen = _within_seconds(named, direct, [one for one in pure if one not in direct], steps)
    left = {*pure} - {*chosen}
    if left:
        files = f"{len(left)} more test files, {len(left & {*direct})} of which import it themselves"
        print(f"the nearest, for some seconds; {files}, are left out: make quick has all", file=sys.stderr)
    print(*(f"tests/{one}" for one in chosen))
    return 0


def _of_faults(path: Path) -> list[str]:
    """Test files, as paths below tests/, that notice the faults of a source file; of a folder, all of them."""
    table = tomllib.loads(MUTANTS.read_text())
    words = [word for one in table.values() if ROOT / one["file"] == path for word in one["tests"].split()]
    places = [ROOT / word.partition("::")[0] for word in words if word.startswith("tests/")]  # not the options
    files = {file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
    return sorted(str(file.relative_to(ROOT / "tests")) for file in files)


def _within_seconds(
    named: Sequence[str], direct: Sequence[str], others: Sequence[str], steps: dict[str, int]
) -> list[str]:
    """All that are named, then those of `direct` and `others` that SECONDS are enough for; at least one file."""
    listed = read(KEPT)
    chosen = [*named]
    led = 0
    left = SECONDS - sum(listed.get(one, UNLISTED_SECONDS) for one in named)
    for one in (*direct, *others):
        takes = listed.get(one, UNLISTED_SECONDS)
        if one in chosen or takes > left:
            continue
        if one not in direct:
            is_near = steps[one] == 1  # a helper leads to it
            if (led if is_near else len(chosen)) >= MOST or (one in listed and not is_near):
                continue
            led += 1
        chosen.append(one)
        left -= takes
    return chosen or [min((*direct, *others), key=lambda one: listed.get(one, 0))]


@functools.cache
def _is_slow(test: str) -> bool:
    """Whether a test file, its path below tests/, marks all of its tests as slow."""
    return bool(_SLOW.search((ROOT / "tests" / test).read_text()))


def near(path: Path) -> tuple[list[str], dict[str, int]]:
    """Return test files, as paths below tests/, and their steps: the nearest first. After them come those in
    the folder of a helper that imports it (not a step), then those whose names or folders are the file's."""
    importers: dict[str, set[Path]] = {}
    for one in (*(ROOT / "src").rglob("*.py"), *(ROOT / "plugins").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        for imported in _imports(one):
            importers.setdefault(imported, set()).add(one)
    steps = {path: 0}
    helpers = {one for one in importers.get(_module(path), ()) if _is_helper(one)}
    latest, step = [path, *sorted(helpers)], 0
    steps |= dict.fromkeys(helpers, 1)
    while latest:
        step += 1
        reached = {one for before in latest for one in importers.get(_module(before), ())} - steps.keys()
        steps |= dict.fromkeys(reached, step)
        latest = sorted(reached)
    tests = [one for one in steps if one.is_relative_to(ROOT / "tests") and not _is_helper(one)]
    beside = {one.parent for one in helpers}
    tests.sort(
        key=lambda one: (
            steps[one],
            one.parent not in beside,
            path.stem not in one.stem,
            one.parent.name not in path.parts,
            len(one.stem),  # a shorter name is mostly that of a test of more
            one,
        )
    )
    names = {str(one.relative_to(ROOT / "tests")): steps[one] for one in tests}
    return list(names), names


def _is_helper(path: Path) -> bool:
    """Whether a file is one of the tests' that has no tests itself."""
    return path.is_relative_to(ROOT / "tests") and not path.name.startswith("test_")


def _module(path: Path) -> str:
    source = next(one for one in SOURCES if path.is_relative_to(one))
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def _imports(path: Path) -> set[str]:
    text = path.read_text()
    found = set(_STRING.findall(text))
    for module, names, modules in _IMPORT.findall(text):
        if module:
            found |= {module, *(f"{module}.{one}" for one in _NAME.findall(names.strip("()").replace(",", "\n")))}
        else:
            found |= {one.split()[0] for one in modules.split(",") if one.strip()}
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
