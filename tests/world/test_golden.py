"""Sentences are compared with the written ones, and one option writes them."""

from pathlib import Path

import pytest

from tests.golden import FOLDER, OPTION, Key, brief, file_of, parse, render

TESTS = """
import pytest

@pytest.mark.parametrize("name", ["first", "second"])
def test_many(name, golden):
    golden(f"a sentence about the {name}")

def test_cases(golden):
    golden("one thing", "plain")
    golden("two\\n\\n  lines", "by lines")

def test_one(golden):
    golden("the only sentence")
"""
WRITTEN = """\
== test_cases

by lines
    two

      lines

plain
    one thing

== test_many

first
    a sentence about the first

second
    a sentence about the second

== test_one

    the only sentence
"""


class Suite:
    """A suite of one file, run in this process."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.tests = pytester.path / "tests" / "area" / "test_x.py"
        self.tests.parent.mkdir(parents=True)
        self.tests.write_text(TESTS)
        self.sentences = pytester.path / "tests" / "sentences" / "area" / "x.txt"
        self.sentences.parent.mkdir(parents=True)
        self.sentences.write_text(WRITTEN)

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("-p", "tests.golden", "-p", "no:cacheprovider", *arguments)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    return Suite(pytester)


def test_what_is_written_passes(suite: Suite) -> None:
    suite.run().assert_outcomes(passed=4)


def test_a_changed_sentence_fails_with_what_differs(suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace("the only", "this only"))
    run = suite.run()
    run.assert_outcomes(passed=3, failed=1)
    run.stdout.fnmatch_lines(["*test_one reads otherwise in *x.txt*", "E*- the only sentence", "E*+ this only *"])


def test_a_case_without_an_entry_fails(suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace('"second"]', '"second", "third"]'))
    run = suite.run()
    run.assert_outcomes(passed=4, failed=1)
    run.stdout.fnmatch_lines(["*test_many?third? is not in *x.txt*"])


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (', "second"]', "]", "test_many?second?"),
        ("test_one", "other", "test_one"),
        ('    golden("one thing", "plain")', "    pass", "test_cases?plain?"),
    ],
    ids=["a parameter", "a test", "a case"],
)
def test_an_entry_without_a_case_fails_when_the_whole_file_ran(old: str, new: str, left: str, suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace(old, new))
    run = suite.run()
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["no test asks for these entries of *x.txt*", f"- {left}"])


@pytest.mark.parametrize("chosen", [("-k", "one"), ("tests/area/test_x.py::test_one",)], ids=["-k", "by name"])
def test_nothing_is_missed_when_some_tests_are_chosen(chosen: tuple[str, ...], suite: Suite) -> None:
    assert suite.run(*chosen).parseoutcomes()["passed"] == 1


def test_a_test_that_fails_for_another_reason_is_not_blamed_on_its_entries(suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace('    golden("the only', '    assert False\n    golden("the only'))
    suite.run().assert_outcomes(passed=3, failed=1)


def test_a_case_that_says_two_things_fails(suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace('"by lines"', '"plain"'))
    run = suite.run("-k", "cases")
    run.assert_outcomes(failed=1, deselected=3)
    run.stdout.fnmatch_lines(["*test_cases?plain? gives two sentences*"])


@pytest.mark.parametrize("by", [(), ("-p", "xdist", "-n", "2", "--dist", "loadfile")], ids=["one process", "two"])
def test_the_option_writes_the_file(by: tuple[str, ...], suite: Suite) -> None:
    suite.sentences.unlink()
    (suite.tests.parent / "test_y.py").write_text("def test_y(golden):\n    golden('beside')\n")
    suite.run(OPTION, *by).assert_outcomes(passed=5)
    assert suite.sentences.read_text() == WRITTEN
    assert suite.sentences.with_name("y.txt").read_text() == "== test_y\n\n    beside\n"
    suite.run(*by).assert_outcomes(passed=5)


def test_the_option_takes_entries_out_only_when_the_whole_file_ran(suite: Suite) -> None:
    suite.tests.write_text(TESTS.replace("test_one", "test_alone").replace("one thing", "a thing"))
    suite.run(OPTION, "-k", "alone or cases")
    some = parse(suite.sentences.read_text())
    assert {key.function for key in some} == {"test_alone", "test_cases", "test_many", "test_one"}
    assert some[Key("test_cases", "plain")] == "a thing"
    suite.run(OPTION)
    assert {key.function for key in parse(suite.sentences.read_text())} == {"test_alone", "test_cases", "test_many"}


def test_a_tests_own_folder_has_a_name_and_nothing_is_no_sentence(suite: Suite) -> None:
    suite.tests.write_text(
        "def test_x(golden, tmp_path):\n    golden(f'{tmp_path}/a is gone')\n    golden(None, 'b')\n"
    )
    run = suite.run(OPTION)
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*test_x?b? gives no sentence"])
    assert parse(suite.sentences.read_text())[Key("test_x", "")] == "FOLDER/a is gone"


def test_what_is_rendered_is_parsed_as_it_was() -> None:
    assert render(parse(WRITTEN)) == WRITTEN


def test_every_file_of_sentences_has_a_file_of_tests() -> None:
    root = Path(__file__).parents[1]
    tests = {file_of(path.relative_to(root)): path for path in (root / "tests").rglob("test_*.py")}
    for path in (root / FOLDER).rglob("*.txt"):
        assert "golden(" in tests[path.relative_to(root)].read_text()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a = 1\nb = 2\n", "a = 1 | b = 2"),
        ({"a": "x", "b": 2}, "a=x, b=2"),
        (["--from", "now", 7], "--from now 7"),
        ({}, "nothing"),
        (f"first {'x' * 120}", f"...{'x' * 120}"),
        (7, None),
    ],
)
def test_the_id_of_a_parameter_says_what_it_is(value: object, said: str | None) -> None:
    assert brief(value) == said
