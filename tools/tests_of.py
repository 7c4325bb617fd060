"""Print the tests of the quick tier that a source file concerns; without a file, all of its folders.

They import the file's module, or a module that imports it. Exit code 2 where there is none, so that nothing passes
without a test.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.tiers import QUICK  # noqa: E402 - tools are run by their paths

SOURCES = (ROOT / "src", ROOT / "plugins")


def main(name: str = "") -> int:
    """Print the files or folders; the exit code."""
    if not name:
        print(*(f"tests/{folder}" for folder in QUICK))
        return 0
    wanted = {_module((ROOT / name).resolve())}
    for _ in range(2):
        found = sorted(str(path.relative_to(ROOT)) for path in _tests() if wanted & _imports(path))
        if found:
            print(*found)
            return 0
        wanted = {_module(path) for source in SOURCES for path in source.rglob("*.py") if wanted & _imports(path)}
    print(f"no test of the quick tier imports {name}, nor what imports it: run make test", file=sys.stderr)
    return 2


def _tests() -> Iterator[Path]:
    for folder in QUICK:
        yield from (ROOT / "tests" / folder).glob("test_*.py")


def _module(path: Path) -> str:
    source = next((one for one in SOURCES if path.is_relative_to(one)), None)
    if source is None:
        raise SystemExit(f"{path} is no file of src or plugins")
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
