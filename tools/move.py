"""Move modules to new packages, and every name of them: `python tools/move.py` (once; tools/move.toml says where to).

Rewrites imports, dotted names, and paths of files in Python, documents and settings. What users import stays: STABLE.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MOVES: dict[str, str] = tomllib.loads((ROOT / "tools" / "move.toml").read_text())["modules"]
STABLE = {"ferry.spark.sink", "ferry.spark.records.source", "ferry.spark.records.selection"}
"""What documents tell users to import."""

SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".sh", ".in", ".ini"}
KEPT = ("tests/pure/decide/museum/", "CHANGELOG.md", "tools/move.")
DOTTED = re.compile(r"\bferry(?:\.\w+)+")
PATHS = re.compile(
    r"(?<![\w/.-])((?:src/)?ferry/|(?=(?:decide|run|net|cli|spark|mm1)/))"
    r"((?:\w+/)+\w+)(\.py\b|/(?!\w)|(?=[\s`)\"',:;]))"
)


def moved(name: str) -> str:
    """The new name of a module, or of something in it."""
    parts = name.split(".")
    for count in range(len(parts), 1, -1):
        new = MOVES.get(".".join(parts[:count]))
        if new is not None:
            return ".".join([new, *parts[count:]])
    return name


def modules() -> dict[str, Path]:
    """All modules by their names."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of_submodules(text: str, known: dict[str, Path]) -> str:
    """`from package import module` where the modules of a package part, or get another name."""
    lines = text.splitlines(keepends=True)
    for node in sorted(ast.walk(ast.parse(text)), key=lambda node: -getattr(node, "lineno", 0)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("ferry") or node.level:
            continue
        package = node.module or ""
        by_parent: defaultdict[str, list[str]] = defaultdict(list)
        for alias in node.names:
            full = f"{package}.{alias.name}"
            parent, name = moved(full).rsplit(".", 1) if full in known else (moved(package), alias.name)
            given = alias.asname or alias.name
            by_parent[parent].append(name if name == given else f"{name} as {given}")
        same = [f"{package}.{alias.name}" for alias in node.names]
        if all(one not in known or moved(one) == f"{moved(package)}.{one.rpartition('.')[2]}" for one in same):
            continue
        indent = lines[node.lineno - 1][: node.col_offset]
        tail = lines[(node.end_lineno or 0) - 1][node.end_col_offset :]
        new = [f"{indent}from {parent} import {', '.join(names)}" for parent, names in by_parent.items()]
        lines[node.lineno - 1 : node.end_lineno] = ["\n".join(new) + tail]
    return "".join(lines)


def rewritten(path: Path, known: dict[str, Path]) -> str:
    """The text of a file with the new names."""
    text = path.read_text()
    shown = path.relative_to(ROOT).as_posix()
    if path.suffix == ".py":
        text = imports_of_submodules(text, known)
    stable = STABLE if shown.startswith(("docs/", "README")) else set()

    def dotted(match: re.Match[str]) -> str:
        name = match[0]
        return name if any(name == one or name.startswith(f"{one}.") for one in stable) else moved(name)

    def as_path(match: re.Match[str]) -> str:
        name = f"ferry.{match[2].replace('/', '.')}"
        parent = name.rpartition(".")[0]
        if name not in known and parent not in known:
            return match[0]
        new = moved(name)
        if new == name:
            return match[0]
        return match[1] + new.removeprefix("ferry.").replace(".", "/") + match[3]

    return PATHS.sub(as_path, DOTTED.sub(dotted, text))


def files() -> list[Path]:
    """All files of the repository that may name a module."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    names = [one for one in listed if one and not one.startswith(KEPT)]
    return [
        ROOT / one for one in names if Path(one).suffix in SUFFIXES or Path(one).name in ("Makefile", "NOTICE", "run")
    ]


def main() -> None:
    """Rewrite, then move."""
    known = modules()
    for path in files():
        old = path.read_text()
        new = rewritten(path, known)
        if new != old:
            path.write_text(new)
    made = set()
    for name, path in sorted(known.items()):
        new = moved(name)
        if new == name:
            continue
        target = SOURCE / Path(*new.split("."))
        target = target / "__init__.py" if path.name == "__init__.py" else target.with_suffix(".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", str(path), str(target)], cwd=ROOT, check=True)
        made.add(target.parent)
    for name, path in known.items():
        for beside in path.parent.glob("*") if path.name == "__init__.py" and moved(name) != name else ():
            if beside.is_file() and beside.suffix not in (".py", ".pyc"):
                target = SOURCE / Path(*moved(name).split(".")) / beside.name
                subprocess.run(["git", "mv", str(beside), str(target)], cwd=ROOT, check=True)
    for folder in made:
        for above in (folder, *folder.parents):
            if above == SOURCE / "ferry":
                break
            if not (above / "__init__.py").exists():
                (above / "__init__.py").write_text("")


if __name__ == "__main__":
    main()
