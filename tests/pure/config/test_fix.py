"""`ferry config check --fix`: what is corrected, and that nothing else is."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ferry.config.reading.examine import examine
from ferry.config.reading.fix import Fixed, fix, unreported_change
from ferry.config.text.problem import Problem, Severity
from ferry.config.text.properties import parse_all
from ferry.model import code_of
from tests.golden import Golden
from tests.pure.config.test_check import Run
from tests.said import facts_in

BASE = """\
clusters = a, b
a.bootstrap.servers = h1:9092
b.bootstrap.servers = h2:9092
a->b.enabled = true
"""


def fixed(lines: str) -> Fixed:
    return fix(BASE + lines, "f")


def told(result: Fixed) -> list[tuple[int | None, str]]:
    """The warnings that are left."""
    assert all(problem.severity is Severity.WARNING for problem in result.left.problems)
    return [(problem.line, problem.message) for problem in result.left.problems]


@pytest.mark.parametrize(
    ("lines", "corrected"),
    [
        ("a->b.topics = orders.* ! only orders\n", "! only orders\na->b.topics = orders.*\n"),
        ("b -> a.enabled: true\n", "b->a.enabled = true\n"),
        ("b -> a.enabled : true # go\n", "# go\nb->a.enabled = true\n"),
        ("b-> a.enabled = true\n", "b->a.enabled = true\n"),
        ("b ->a.enabled=true\n", "b->a.enabled = true\n"),
        ("b->a .enabled = true\n", "b->a.enabled = true\n"),
        ("b -> a . enabled = true\n", "b->a.enabled = true\n"),
        ("b -> a.enabled true\n", "b->a.enabled = true\n"),
        ("b -> a.ferry.start latest:5\n", "b->a.ferry.start = latest:5\n"),
        ("a->b.TOPICS = x\n", "a->b.topics = x\n"),
        ("Tasks.Max: 3 # more\n", "# more\ntasks.max = 3\n"),
        ("a->b.Ferry.Lane = x\n", "a->b.ferry.lane = x\n"),
        ("topics = a\\ \nb\n", "topics = a\\\nb\n"),
        ("topics = a, \\ # first\n  b\n", "# first\ntopics = a, \\\n  b\n"),
        ("a->b.topics = .*\na->b.groups=.b.topics = x\n", "a->b.topics = .*\na->b.groups=.b.topics = x\n"),
        ("b=>a.enabled = true\n", "b->a.enabled = true\n"),
        ("b \u2192 a.enabled: true # on\n", "# on\nb->a.enabled = true\n"),
        ("b\u2192 a . enabled: true\n", "b->a.enabled = true\n"),
        ("b => a.enabled = true\n", "b->a.enabled = true\n"),
        ("topics = a,\n", "topics = a\n"),
        ("topics = ,a , ,b # c\n", "# c\ntopics = a, b\n"),
    ],
)
def test_what_is_clear_is_corrected(lines: str, corrected: str) -> None:
    assert fixed(lines).text == BASE + corrected


@pytest.mark.parametrize(
    "lines",
    [
        "topics = orders.*\\ # all orders\ntopics.exclude = orders-secret.*\n",
        "topics = foo, \\\n  # bar, \\\n  baz\n",
        "a->b.emit.heartbeats = \\\n true\n",
    ],
)
def test_what_may_mean_two_things_is_left_as_it_was(lines: str, golden: Golden) -> None:
    result = fixed(lines)
    assert (result.text, result.corrected) == (BASE + lines, ())
    (said,) = [said for line, said in told(result) if line == 5]
    golden(said)


def test_all_slips_of_a_line_name_one_corrected_line() -> None:
    line = "clusters = us-west, us-east\nus-west->us.east.topics = foo.*, bar\\.* # override\n"
    whole = ("# override", "us-west->us-east.topics = foo.*, bar\\\\.*")
    problems = [problem for problem in examine(line, "f").problems if problem.line == 2]
    assert [problem.correction for problem in problems] == [whole] * 3
    assert all(" / ".join(whole) in problem.message for problem in problems)
    (gone,) = [problem for problem in fix(line, "f").corrected if problem.line == 2]
    assert gone.correction == whole
    assert gone.message.count("us-west->us-east.topics = ") == gone.message.count(whole[1])


@pytest.mark.parametrize(
    ("new", "report_lines_of", "line"),
    [
        ("a = 1\nb = 2\nc = 3\n", {}, None),
        ("a = 1\nc = 3\n", {}, 2),
        ("a = 1\nb = 2\n", {}, 3),
        ("a = 1\nb = 2 \nc = 3\n", {}, 2),
        ("a = 1\nc = 3\nb = 2\n", {}, 2),
        ("a = 1\nb = 2\nc = 3\nd = 4\n", {2: ("b = 2",)}, 2),
        ("a = 1\nx = 2\nc = 3\n", {2: ("x = 2",)}, None),
        ("a = 1\nx = 2\nc = 3\n", {2: ("y = 2",)}, 2),
        ("a = 1\n# 2\nb =\nc = 3\n", {2: ("# 2", "b =")}, None),
        ("a = 1\nb =\nc = 3\n", {2: ("b =",)}, 2),
        ("a = 1\nc = 3\n", {2: ()}, 2),
        ("a = 1\n! b = 2\nc = 3\n", {2: ("! b = 2",)}, None),
        ("a = 1\nb = 2\\\nc = 3\n", {2: ("b = 2\\",)}, None),
        ("a = 1\nb = 2\\\nd = 3\n", {2: ("b = 2\\",)}, 3),
    ],
)
def test_a_change_that_was_not_told_is_found(
    new: str, report_lines_of: dict[int, tuple[str, ...]], line: int | None
) -> None:
    assert unreported_change("a = 1\nb = 2\nc = 3\n", new, report_lines_of) == line


def test_a_repeated_entry_may_go() -> None:
    assert unreported_change("a = 1 2\na = 1 2\n", "a = 1 2\n", {2: ()}) is None


def test_what_was_added_stands_first() -> None:
    assert unreported_change("a = 1\n", "b = 2\na = 1\n", {}, ["b = 2"]) is None
    assert unreported_change("a = 1\n", "a = 1\nb = 2\n", {}, ["b = 2"]) == 1


def test_nothing_is_written_where_more_would_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    """A wrong correction, as if a slip's reader had a mistake."""
    monkeypatch.setattr("ferry.config.reading.value_typos.without_comment", lambda entry: ("# gone", "topics = x\\"))
    file, out = tmp_path / "f", tmp_path / "out"
    file.write_text(BASE + "topics = x # y\ngroups = z\n")
    run = Run("config", "check", file, "--fix", out, capsys=capsys)
    assert run.code == 2
    said = [line for line in run.out.splitlines() if line.startswith(f"error: {file}:5: topics: ")]
    golden("\n".join(said))
    assert not out.exists()


BACKSLASH_ALONE = re.compile(r"^\s*\\\r?$", re.MULTILINE)
"""A line of one backslash: what it means depends on the lines around it, even on where the file ends."""
KEYS = st.sampled_from(
    [
        "a->b.topics",
        "topics",
        "a -> b.topics",
        "a-> b.groups",
        "A->b.topics.exclude",
        "a->b.TOPICS",
        "topics.blacklist",
        "b->a.enable",
        "b -> a.enabled",
        "a->b.emit.heartbeats",
        "tasks.max",
        "B.bootstrap.servers",
        "b.bootstrap.servers",
        "clusters",
        "clusters\\ ",
        "a.sasl.jaas.config",
        "A.ssl.key.password",
        "some.key",
        "",
    ]
)
SEPARATORS = st.sampled_from([" = ", "=", ":", " : ", " ", "\t=\f", " ="])
PIECES = st.sampled_from(
    [
        *("true", "a, b", "x.*", "h-9092", "h:1", "3", ",", "y", " ", "", "=", ":", "->", "a->b.topics"),
        *("\\d", "\\\\", "\\", "\\ ", "\\\n", "\\\n  ", "\\u0041", "\\u12", "\\#"),
        *(" # note", " ! note", " #", "# z", "'q'", '"', "${env:", "${x}"),
    ]
)
VALUES = st.lists(PIECES, max_size=4).map("".join)
ENTRIES = st.tuples(KEYS, SEPARATORS, VALUES).map("".join)
OTHERS = st.sampled_from(["", "# note", "! note \\", " # in", "\\", "  \\", "\t", *BASE.splitlines()])
FILES = st.builds(
    lambda lines, end, last: end.join(lines) + last,
    st.lists(st.one_of(ENTRIES, OTHERS, st.sampled_from(BASE.splitlines())), max_size=7),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)


@pytest.mark.slow
@given(FILES)
@example("clusters = a, ba, ba, b")
@example(BASE + "topics = a # b \\\n c")
@example("\\\nclusters = a, b # c\n\\\n# d\n")
def test_no_entry_changes_but_those_that_are_told(text: str) -> None:
    result = fix(text, "f")
    if any("change of meaning" in problem.message for problem in result.left.problems):
        assert BACKSLASH_ALONE.search(text), "the net is needed for this alone"
        assert not result.works
        return
    corrections = {problem.line: "\n".join(problem.correction or ()) for problem in result.corrected}
    added = [problem.correction or () for problem in result.corrected if problem.line is None]
    wanted = [entry for lines in added for entry in parse_all("\n".join(lines))[0]]
    going_on = ""
    for entry in parse_all(text)[0]:
        lines = "\n".join(re.split(r"\r\n|\n", text)[entry.line - 1 : entry.last_line])
        read = going_on + corrections.get(entry.line, lines)
        going_on = f"{read}\n" if entry.line in corrections and re.search(r"(?<!\\)(\\\\)*\\\Z", read) else ""
        wanted += [] if going_on else parse_all(read)[0]
    wanted += parse_all(going_on)[0]
    assert [(one.key, one.value) for one in parse_all(result.text)[0]] == [(one.key, one.value) for one in wanted]
    for entry in parse_all(text)[0]:
        correction = corrections.get(entry.line, "")
        if parse_all(correction)[0]:
            lost = [letters(spelt) - letters(correction) for spelt in (entry.raw, entry.value)]
            is_listed_twice = entry.key == "clusters" and words(entry.raw) == words(correction) - {"clusters"}
            assert not all(lost) or is_listed_twice, "no part of a corrected value is lost"


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def letters(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w", text.lower()))


def slips_of(corrected: Problem) -> list[str]:
    """The codes of what was wrong with a line."""
    code = code_of(corrected.message)
    return str(facts_in(corrected.message)["of"]).split(", ") if code == "line.several" else [code]


@pytest.mark.parametrize(
    ("lines", "slips"),
    [
        ("topics = a, \\ # first\n  b\n", ["line.torn"]),
        ("b -> a.enabled: true # go\n", ["line.blank", "value.boolean"]),
    ],
    ids=["one", "two"],
)
def test_each_slip_of_a_corrected_line_has_its_code(lines: str, slips: list[str]) -> None:
    (problem,) = (one for one in fixed(lines).corrected if one.line == 5)
    assert slips_of(problem) == slips


@given(FILES)
def test_what_is_corrected_needs_no_second_correction(text: str) -> None:
    assume(not BACKSLASH_ALONE.search(text))
    once = fix(text, "f")
    again = fix(once.text, "f")
    # A line that went as a repetition may have stood between two that are one entry but for a blank.
    assert [slips for slips in map(slips_of, again.corrected) if "line.torn" not in slips] == []
    assert once.text == again.text or again.corrected
