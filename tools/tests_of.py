"""Print the pure tests of a source file; without a file, their folder.

They are the nearest tests that import the file's module, directly or in steps: through another module or a helper of
the tests. A module that is named in a string (`"ferry.run.micro_run:MicroRuns"`) counts as imported. If
there are more than MOST, those that are further away, or in a folder of another name, are left out. If there is no
pure test, the exit code is 2, so that nothing passes without a test. The nearest other tests are then named.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.durations import KEPT, read  # noqa: E402 - tools are run by their paths
from tests.tiers import PURE  # noqa: E402

SOURCES = (ROOT / "src", ROOT / "plugins", ROOT)
MOST = 8
"""Most test files for one source file: they take a few seconds."""

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
    tests = near(path)
    found = [one for one in tests if Path(one).parts[0] == PURE]
    if not found:
        nearest = " ".join(f"tests/{one}" for one in tests[:MOST])
        told = f'make test ARGS="{nearest}"' if tests else "make test"
        print(f"no pure test imports {name}, nor what imports it: run {told}", file=sys.stderr)
        return 2
    longer = read(KEPT)
    seconds = [one for one in found if one not in longer] or found
    left = len(found) - len(seconds[:MOST])
    if left:
        print(f"the nearest; {left} more test files import it from further away: make quick has all", file=sys.stderr)
    print(*(f"tests/{one}" for one in seconds[:MOST]))
    return 0


def near(path: Path) -> list[str]:
    """Return test files, as paths below tests/: the nearest first, then those whose names or folders are the file's."""
    importers: dict[str, set[Path]] = {}
    for one in (*(ROOT / "src").rglob("*.py"), *(ROOT / "plugins").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        for imported in _imports(one):
            importers.setdefault(imported, set()).add(one)
    steps = {path: 0}
    latest = [path]
    while latest:
        reached = {one for before in latest for one in importers.get(_module(before), ())} - steps.keys()
        steps |= dict.fromkeys(reached, steps[latest[0]] + 1)
        latest = sorted(reached)
    tests = [one for one in steps if one.name.startswith("test_") and one.is_relative_to(ROOT / "tests")]
    tests.sort(key=lambda one: (steps[one], path.stem not in one.stem, one.parent.name not in path.parts, one))
    return [str(one.relative_to(ROOT / "tests")) for one in tests]


def _module(path: Path) -> str:
    source = next(one for one in SOURCES if path.is_relative_to(one))
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


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
