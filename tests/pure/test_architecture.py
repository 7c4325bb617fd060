"""docs/internals/architecture.md names files, names and rules that are there."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ferry"
TEXT = (ROOT / "docs" / "internals" / "architecture.md").read_text()
CONTRACTS = {
    one["id"]: one for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
EXAMPLE = "src/ferry/features/subjects/"
PATHS = sorted({*re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", TEXT)} - {EXAMPLE})


def floors(contract: str) -> list[set[str]]:
    """The layers of a contract from above, without their brackets."""
    return [set(re.findall(r"\w+", layer)) for layer in CONTRACTS[contract]["layers"]]


def drawn(first: str, last: str) -> list[set[str]]:
    """The lines of the picture from one word to another."""
    picture = TEXT.split("```")[1].splitlines()
    lines = [set(re.findall(r"\w+", line)) - {"features", "kernel"} for line in picture if "──" not in line]
    begin = next(at for at, line in enumerate(lines) if first in line)
    end = next(at for at, line in enumerate(lines) if last in line and at >= begin)
    return lines[begin : end + 1]


@pytest.mark.parametrize("path", PATHS)
def test_what_it_names_is_there(path: str) -> None:
    assert any((folder / path).exists() for folder in (ROOT, SOURCE, ROOT / "plugins"))


@pytest.mark.parametrize(
    ("path", "names"), re.findall(r"^\| [ab]?\d+ \| `([\w/.]+)` \| (`.+?`) \|", TEXT, re.MULTILINE)
)
def test_a_file_of_a_run_has_what_it_is_listed_for(path: str, names: str) -> None:
    tree = ast.parse((ROOT / path if (ROOT / path).exists() else SOURCE / path).read_text())
    assert set(re.findall(r"\w+", names)) <= {getattr(node, "name", None) for node in tree.body}


@pytest.mark.parametrize(("noun", "path"), re.findall(r"^\| (\w+) \| .* \| `([\w/.]+)` \|$", TEXT, re.MULTILINE))
def test_a_noun_is_where_it_is_said_to_be(noun: str, path: str) -> None:
    text = (SOURCE / path).read_text()
    assert (
        re.search(rf"^(class|def) \w*{noun}\b|^{noun}\b", text, re.MULTILINE)
        or noun.lower() in text.split('"""')[1].lower()
    )


def test_the_picture_is_the_contract() -> None:
    assert drawn("drill", "evidence") == floors("features")
    above = drawn("commands", "commands")
    assert [{"program"}, *above, {"features"}, *drawn("cli", "errors")] == floors("layers")


def listed(head: str) -> list[str]:
    """The first cells of the table whose first column has this head."""
    table = TEXT.split(f"| {head} | ")[1].split("\n\n")[0]
    return [name for cell in re.findall(r"^\| (`.+?) \| ", table, re.MULTILINE) for name in re.findall("`(.+?)`", cell)]


def test_each_folder_has_a_row() -> None:
    packages = {one.parent.relative_to(SOURCE).as_posix() for one in SOURCE.rglob("*/__init__.py")}
    features = {name.removeprefix("features/") for name in packages if name.startswith("features/")}
    kernel = {name for name in packages if not name.startswith("features")}
    assert sorted(listed("folder of `src/ferry`")) == sorted(name for name in kernel if "/" not in name)
    assert sorted(listed("nested folder")) == sorted(name for name in kernel if "/" in name)
    assert sorted(listed("folder of `src/ferry/features`")) == sorted(name for name in features if "/" not in name)
    assert {"rules", "acts", "cli", "spark"} <= set(listed("in a feature"))


MEMBERS = sorted({*re.findall(r"`([A-Z]\w*[a-z]\w*)\.(\w+)", TEXT)})
FILES = [one.read_text() for root in (SOURCE, ROOT / "plugins") for one in root.rglob("*.py")]


@pytest.mark.parametrize(("owner", "member"), MEMBERS)
def test_a_member_of_a_class_is_there(owner: str, member: str) -> None:
    trees = [ast.parse(text) for text in FILES if re.search(rf"^class {owner}\b", text, re.MULTILINE)]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    parts = [part for one in classes for part in ast.walk(one)]
    named = {getattr(part, "name", None) or getattr(getattr(part, "target", None), "id", None) for part in parts}
    assert member in named


def test_a_feature_has_the_parts_that_have_a_rule() -> None:
    allowed = {"rules", "acts", "cli", "spark", "settings.py", "sentences.py", "__init__.py"}
    for feature in (SOURCE / "features").iterdir():
        if (feature / "__init__.py").exists():
            parts = {one.relative_to(feature).parts[0] for one in feature.rglob("*.py")}
            assert parts <= allowed, feature.name
            assert not (feature / "__init__.py").read_text().partition('"""\n')[2].strip(), feature.name


def test_parts_of_the_plugin_with_rules_of_their_own_have_a_row() -> None:
    plugin = ROOT / "plugins" / "ferry_airflow"
    folders = {one.name for one in plugin.iterdir() if (one / "__init__.py").exists()}
    assert set(re.findall(r"^\| `ferry_airflow/(\w+)` \| ", TEXT, re.MULTILINE)) == folders


def test_no_contract_has_an_exception() -> None:
    assert {"layers", "features", "pure", "acyclic"} <= CONTRACTS.keys()
    assert [name for name, one in CONTRACTS.items() if "ignore_imports" in one] == []


ROWS = dict(re.findall(r"^\| ([ab]?\d+) \| `([\w/.]+)` \|", TEXT, re.MULTILINE))
"""The files of a run by their number."""


def opened(words: str) -> set[str]:
    """The files that a line names, by their paths or by their numbers."""
    found = set(re.findall(r"`([\w/]+\.py)`", words))
    for kind, first, last in re.findall(r"\b([ab]?)(\d+)(?: to [ab]?(\d+))?", re.sub(r"`[^`]*`|\s+", " ", words)):
        found |= {ROWS[f"{kind}{number}"] for number in range(int(first), int(last or first) + 1)}
    return found


LISTS = re.findall(r"^- [^,:]+, (\d+) files?(?: more)?: ((?:.|\n  )+?)(?=\.?\n(?:- |\n))", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("count", "words"), LISTS)
def test_the_files_to_open_are_counted(count: str, words: str) -> None:
    assert len(opened(words)) == int(count)


def test_each_list_of_files_to_open_is_counted() -> None:
    assert len(LISTS) == len(re.findall(r"^- .*\d+ files?(?: more)?: ", TEXT, re.MULTILINE)) == 4


def has(path: str, name: str) -> bool:
    """Whether a file defines a name."""
    text = next(folder / path for folder in (ROOT, SOURCE, ROOT / "plugins") if (folder / path).exists()).read_text()
    return bool(re.search(rf"^ *(?:(?:async )?def|class) {name}\b|^ *{name}\b *[=:]", text, re.MULTILINE))


WORDS = {"report", "rpo", "rules", "verify"}
"""Parts of FlowConfig, a folder and a task, which stand beside a file and are no names in it."""

PAIRS = sorted(
    {
        *re.findall(r"`(?:\w+\.)?(\w+)`\s+\(`([\w/]+\.py)`\)", TEXT),
        *re.findall(r"`(?:\w+\.)?(\w+)`\s+(?:in|of)\s+`([\w/]+\.py)`", TEXT),
        *((name, path) for path, name in re.findall(r"\(`([\w/]+\.py)`,\s+`(\w+)`\)", TEXT)),
    }
)


@pytest.mark.parametrize(("name", "path"), [pair for pair in PAIRS if pair[0] not in WORDS])
def test_a_name_is_in_the_file_beside_it(name: str, path: str) -> None:
    assert has(path, name)


def test_what_a_run_writes_is_written_by_what_is_named() -> None:
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \| [^|]+ \|$", TEXT.split("What a run writes")[1], re.MULTILINE)
    names = {name for cell in rows for name in re.findall(r"`(?:\w+\.)?(\w+)`", cell)}
    files = [path for path in PATHS if path.endswith(".py")]
    assert len(names) > 10
    assert {name for name in names if not any(has(path, name) for path in files)} == set()


def test_each_file_that_imports_by_a_name_is_named() -> None:
    words = TEXT.split("Some imports are made when a program runs")[1].split("\n\nSome other parts")[0]
    named = {path for path in re.findall(r"`([\w/]+\.py)`", words) if not path.startswith("plugins/")}
    named |= set(re.findall(r"`plugins/([\w/]+\.py)`", words))
    roots = (SOURCE, ROOT / "plugins")
    files = {one.relative_to(root).as_posix(): one.read_text() for root in roots for one in root.rglob("*.py")}
    by_registry = re.compile(r"^from ferry\.registry import .*\bimported\b", re.MULTILINE)
    found = {name for name, text in files.items() if "import_module" in text or by_registry.search(text)}
    assert found == named - {"messages/catalogue.py"}
