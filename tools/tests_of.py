"""Print the pure tests of a source file; without a file, their folder.

First the tests that tests/mutants.toml names for the file, and those that import its module themselves: all of them.
Then come up to MOST that use a helper of the tests which imports the module, those of its folder first. Of those that
take seconds (tests/durations.json), it takes SECONDS. While there are fewer than MOST in all, the nearest follow that
import the module over other modules and take less.

A module that is named in a string (`"ferry.run.micro_run:MicroRuns"`) counts as imported. The exit code is 2 if no pure
test is there, so that nothing passes without a test; then the nearest other tests are named.
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
SECONDS = 30.0
"""How long these may take together, as tests/durations.json lists them; those that are not listed count as none."""

# Not by a parser, because parsing all files takes four seconds.
_IMPORT = re.compile(r"^[ \t]*(?:from +([\w.]+) +import +(\([^)]*\)|[^(\n]*)|import +([\w., ]+))", re.MULTILINE)
_STRING = re.compile(r"[\"'](ferry(?:_airflow)?(?:\.\w+)+)[\"':]")
_NAME = re.compile(r"^ *(\w+)", re.MULTILINE)


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
    if not named and not any(Path(one).parts[0] == PURE for one in tests):
        nearest = " ".join(f"tests/{one}" for one in tests[:MOST])
        told = f'make test ARGS="{nearest}"' if tests else "make test"
        print(f"no pure test imports {name}, nor what imports it: run {told}", file=sys.stderr)
        return 2
    pure = [one for one in tests if Path(one).parts[0] == PURE]
    direct = [one for one in pure if _module(path) in _imports(ROOT / "tests" / one)]
    first = [one for one in dict.fromkeys([*named, *direct]) if not {*map(str, Path(one).parents)} & {*named}]
    others = [one for one in pure if one not in first and not {*map(str, Path(one).parents)} & {*named}]
    chosen = [*first, *_quick(others, steps, len(first))]
    left = len(first) + len(others) - len(chosen)
    if left:
        print(f"the nearest; {left} more test files import it from further away: make quick has all", file=sys.stderr)
    print(*(f"tests/{one}" for one in chosen))
    return 0


def _of_faults(path: Path) -> list[str]:
    """Files and folders below tests/ that notice the faults of a source file."""
    table = tomllib.loads(MUTANTS.read_text())
    tests = [one["tests"].split() for one in table.values() if ROOT / one["file"] == path]
    return sorted({test.partition("::")[0].removeprefix("tests/") for names in tests for test in names})


def _quick(tests: Sequence[str], steps: dict[str, int], more: int) -> list[str]:
    """The first tests that are quick, after `more` that run in any case."""
    listed = read(KEPT)
    found: list[str] = []
    left = SECONDS
    for one in tests:
        is_near = steps[one] == 1
        takes = listed.get(one, 0)
        if (takes <= left if is_near else not takes) and len(found) + (0 if is_near else more) < MOST:
            found.append(one)
            left -= takes
    return found or list(tests[: 0 if more else 1])


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
