"""What `make test` leaves out is there, and no guarantee of docs/internals/guarantees.md rests on it alone.

It leaves out what tests/extra.toml lists, tests that are marked so in their own file, and the folder of the soak.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

from tests.durations import KEPT, read
from tests.tiers import EXTRA, OF_MAKE_TEST, is_extra

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
GUARANTEES = (ROOT / "docs" / "internals" / "guarantees.md").read_text()
STAND_IN = re.compile(r"(?P<file>[\w./-]+\.py)?::(?P<test>test_\w+)(?P<case>\[[^\]]*\])?(?:: .+)?")
"""A test that `make test` keeps, as texts of the list name it: of the same file where none is named."""
FUNCTION = re.compile(r"^def (\w+)", re.MULTILINE)
LEFT_OUT = {"extra", "soak"}
"""The marks of tests that `make test` does not run (`addopts` in pyproject.toml)."""
IN_PLACE = [(file, test, text) for file, names in EXTRA.items() for test, text in names.items()]


class NoTest(Exception):
    """Raised for a part of a text that names no test."""


@functools.cache
def functions(file: str) -> set[str]:
    """A module's functions: lines that begin with `def`, because a parser takes seconds for all modules."""
    return set(FUNCTION.findall((TESTS / file).read_text()))


def marked(text: str) -> set[str]:
    """The tests of a module that it marks itself as left out: by `pytestmark`, or a decorator."""
    if not any(f"mark.{mark}" in text for mark in LEFT_OUT):
        return set()
    body = ast.parse(text).body
    whole = any(_marks(one.value) for one in body if isinstance(one, ast.Assign) and _names(one) == {"pytestmark"})
    tests = [one for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    return {one.name for one in tests if whole or any(_marks(mark) for mark in one.decorator_list)}


def _names(assignment: ast.Assign) -> set[str]:
    return {ast.unparse(one) for one in assignment.targets}


def _marks(value: ast.expr) -> bool:
    """Whether a mark, or one of a list of marks, leaves a test out; those of single cases do not."""
    if isinstance(value, ast.List | ast.Tuple):
        return any(_marks(one) for one in value.elts)
    name = value.func if isinstance(value, ast.Call) else value
    return ast.unparse(name) in {f"pytest.mark.{mark}" for mark in LEFT_OUT}


@functools.cache
def left_out(file: str) -> set[str]:
    """The tests of a file that `make test` does not run."""
    names = {name for name in functions(file) if name.startswith("test_")}
    if file.startswith("soak/"):
        return names
    return marked((TESTS / file).read_text()) | {name for name in names if is_extra(file, name)}


def kept(file: str) -> set[str]:
    """The tests of a file that `make test` runs."""
    return {name for name in functions(file) if name.startswith("test_")} - left_out(file)


@pytest.mark.parametrize("file", EXTRA)
def test_each_name_in_the_list_is_a_test(file: str) -> None:
    assert {name.partition("[")[0] for name in EXTRA[file]} <= functions(file) | {"*"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`tests/([^`]*)`", GUARANTEES))))
def test_each_file_of_a_guarantee_is_there_and_keeps_its_tests(path: str) -> None:
    """A row names a test (`file::test`) where `make test` leaves out others of its file."""
    file, _, test = path.partition("::")
    assert (TESTS / file).exists()
    if test:
        assert test in kept(file)
    elif file.endswith(".py"):
        assert kept(file)
        assert left_out(file) == set(), "name the test that make test runs"
    elif (TESTS / file).is_dir():
        assert keeps_tests(file)


def test_no_test_that_a_guarantee_names_is_left_out() -> None:
    files = [file.relative_to(TESTS).as_posix() for file in TESTS.rglob("test_*.py")]
    names = set(re.findall(r"`(test_\w+)`", GUARANTEES))
    assert names - set().union(*map(functions, files)) == set(), "there is no such test"
    assert names & set().union(*map(left_out, files)) == set()


def test_soak_tests_are_in_their_folder() -> None:
    files = [file for file in TESTS.rglob("test_*.py") if "@pytest.mark.soak\n" in file.read_text()]
    assert files == []


def test_a_pure_test_that_make_test_runs_has_the_limit_of_its_folder() -> None:
    """A limit of a test's own is next to its mark `extra`."""
    longer = []
    for file in (TESTS / "pure").rglob("*.py"):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            if "pytest.mark.timeout(" in line and "\\n" not in line:
                around = lines[max(number - 1, 0) : number + 1]
                longer += [] if any("mark.extra" in one for one in around) else [f"{file.name}:{number + 1}"]
    assert longer == []


def test_make_test_runs_each_file_of_which_the_time_is_listed() -> None:
    """A time of `make test-all` would hide one that doubles."""
    assert [file for file in read(KEPT) if not kept(file)] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@pytest.mark.extra\ndef test_a(): pass\ndef test_b(): pass", {"test_a"}),
        ("@pytest.mark.timeout(9)\n@pytest.mark.soak\ndef test_a(): pass", {"test_a"}),
        ("pytestmark = pytest.mark.extra\ndef test_a(): pass\ndef other(): pass", {"test_a"}),
        ("pytestmark = [pytest.mark.timeout(9), pytest.mark.extra]\ndef test_a(): pass", {"test_a"}),
        ("@pytest.mark.slow\ndef test_a(): pass", set()),
        ("@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.extra), 2])\ndef test_a(a): pass", set()),
    ],
    ids=["a decorator", "one of two", "a module", "a module with two", "another mark", "one case"],
)
def test_marks_in_a_file_are_found(text: str, names: set[str]) -> None:
    assert marked(text) == names


def test_the_marks_are_those_that_the_suite_leaves_out() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    assert set(re.findall(r"not (\w+)", options[-1])) == LEFT_OUT


@pytest.mark.parametrize(("file", "test", "text"), IN_PLACE, ids=[f"{file}-{test}" for file, test, _ in IN_PLACE])
def test_what_stands_in_for_a_test_is_kept(file: str, test: str, text: str) -> None:
    for other, name, case in stand_ins(file, text):
        assert (TESTS / other).exists(), f"{other} is not below tests/"
        assert name in kept(other), f"make test does not run {other}::{name}"
        assert not is_extra(other, name + case), f"make test does not run {other}::{name}{case}"


def test_what_stands_in_for_a_test_is_a_case_that_this_session_has(request: pytest.FixtureRequest) -> None:
    """Files do not show what cases a test has. Of files that the session did not collect whole, nothing is known."""
    in_part = {Path(file).resolve() for file, cut, _ in (one.partition("::") for one in request.config.args) if cut}
    stashed = request.config.stash[OF_MAKE_TEST]
    found = {file: names for file, names in stashed.items() if (TESTS / file).resolve() not in in_part}
    known = {file: names | {name.partition("[")[0] for name in names} for file, names in found.items()}
    named = {(other, name + case) for file, _, text in IN_PLACE for other, name, case in stand_ins(file, text)}
    assert [(file, name) for file, name in named if name not in known.get(file, {name})] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a/test_x.py::test_a", [("a/test_x.py", "test_a", "")]),
        ("::test_a[one; b-1]: a word; c/test_y.py::test_b", None),
        ("::test_a[b-1]: a word; c/test_y.py::test_b", [("of.py", "test_a", "[b-1]"), ("c/test_y.py", "test_b", "")]),
        ("", None),
        ("a/test_x.py", None),
        ("a/test_x.py: its tests", None),
        ("its other tests", None),
        ("::test_a; what a/test_x.py tests", None),
        ("pure/decide", None),
    ],
)
def test_only_tests_stand_in(text: str, found: list[tuple[str, str, str]] | None) -> None:
    if found is None:
        with pytest.raises(NoTest):
            stand_ins("of.py", text)
    else:
        assert stand_ins("of.py", text) == found


@pytest.mark.parametrize(
    ("path", "keeps"),
    [
        ("kafka/run/test_zombies.py", True),
        ("kafka/chaos", True),
        ("spark/test_local.py", False),
        ("pure/decide/museum", False),
        ("soak", False),
        ("world/packaging/test_man_pages.py", True),
    ],
)
def test_a_path_keeps_tests(path: str, keeps: bool) -> None:
    assert keeps_tests(path) is keeps


def stand_ins(file: str, text: str) -> list[tuple[str, str, str]]:
    """The file, test and case (empty: all that are kept) of each test that a text of a file's section names.

    Raises:
        NoTest: A part of the text names no test.
    """
    found = [(part, STAND_IN.fullmatch(part)) for part in text.split("; ")]
    wrong = [part for part, match in found if match is None]
    if wrong:
        raise NoTest(wrong[0])
    return [(match["file"] or file, match["test"], match["case"] or "") for _, match in found if match]


@functools.cache
def keeps_tests(path: str) -> bool:
    """Whether `make test` runs a test of a file, or of some file of a folder, below tests/."""
    whole = TESTS / path
    files = whole.rglob("test_*.py") if whole.is_dir() else [whole]
    return any(kept(one.relative_to(TESTS).as_posix()) for one in files)
