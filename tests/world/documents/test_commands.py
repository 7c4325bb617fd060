"""Every command that the documents tell people to type is one, and some test does it for real.

What `ferry` reads is held against the program's own parser, `make` against the Makefile. Which lines a test types, and
why it does not type the others, is in `tests.world.documents.lines`: a line that is in none of its lists fails.
"""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.world.documents.commands import (
    LANGUAGES,
    ROOT,
    WHOLE,
    Typed,
    blocks,
    documents,
    resolved,
    runbooks,
    spans,
    told,
    typed,
)
from tests.world.documents.lines import ALONE, NOT_TYPED, OTHERS_NOT_TYPED, OTHERS_TYPED, RUNBOOKS, STORY
from tests.world.documents.test_typed import command_of, shown_on, typed_here

TYPED = typed()
OF_FERRY = {one.line: one for one in TYPED if one.words[0] == "ferry"}
OTHERS = {one.line: one for one in TYPED if one.words[0] != "ferry"}

YOURS = frozenset(["page-operator"])
"""Stands for whatever the reader has."""

ELSEWHERE = frozenset(
    [
        "airflow",
        "date",
        "kafka-configs.sh",
        "kafka-console-consumer.sh",
        "kafka-consumer-groups.sh",
        "./secrets.sh",
        "openssl",
    ]
)
"""Programs whose lines are run as they stand."""


@cache
def jobs() -> dict[str, Callable[[list[str]], object]]:
    """The parsers of the files that spark-submit is given, by their paths."""
    return {f"jobs/{path.name}": runpy.run_path(str(path))["parse"] for path in (ROOT / "jobs").glob("*.py")}


def test_a_job_takes_what_documents_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CONFIG", "mm2.properties")
    texts = {str(document.relative_to(ROOT)): document.read_text() for document in documents()}
    told = [
        (name, span)
        for name, text in texts.items()
        for span in re.findall(r"`(spark-submit [^`\n]*\.py[^`\n]*)`", text)
    ]
    told += [(one.document, one.line) for one in OTHERS.values() if one.words[0] == "spark-submit"]
    assert told, "no document tells to submit a job any more"
    for name, line in told:
        _, job, *given = shlex.split(line)
        try:
            jobs()[job](given)
        except (KeyError, SystemExit):
            pytest.fail(f"{name}: {line}: no such job, or not its options")


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def test_blocks_say_what_they_are() -> None:
    """A block without a language is typed as it stands: what is not for typing is `text`."""
    told = {language for document in documents() for language, _ in blocks(document.read_text())}
    assert told <= LANGUAGES
    assert len(OF_FERRY) > 80, "the documents' commands are not found any more"


@pytest.mark.parametrize("line", OF_FERRY)
def test_the_program_takes_the_line(line: str) -> None:
    name, rest = resolved(OF_FERRY[line].words[1:])
    WHOLE[name].make_context(name, rest)


def test_each_line_is_typed_or_it_is_said_why_not() -> None:
    typed_lines = typed_here()
    assert sorted(typed_lines - OF_FERRY.keys()) == [], "no document tells to type this any more: take it out"
    excepted = {line for line in OF_FERRY if line in NOT_TYPED or command_of(line) in NOT_TYPED}
    assert {line for line in OF_FERRY if (line in typed_lines) + (line in excepted) != 1} == set()
    assert NOT_TYPED.keys() <= {*OF_FERRY, *(command_of(line) for line in excepted)}, "an exception of nothing"
    assert len({line for line, _ in (*ALONE, *STORY)}) == len(ALONE) + len(STORY)


@pytest.mark.parametrize("page", runbooks(), ids=lambda page: page.stem)
def test_a_runbook_is_typed_line_by_line_in_its_order(page: Path) -> None:
    lines = [line for line, _ in shown_on(page)]
    assert lines == [line.removeprefix("+ ") for line, _ in RUNBOOKS[page.stem] if line[0] != "!"]
    assert {one.stem for one in runbooks()} == RUNBOOKS.keys()


def test_each_line_that_only_runbooks_have_is_in_no_other_document() -> None:
    alone = {line for page in RUNBOOKS.values() for line, _ in page if line[0] not in "+!"}
    others = {one.line for one in TYPED if not one.document.startswith("docs/runbooks/")}
    assert alone & others == set(), "write a + before it: it is typed with these, too"


@pytest.mark.parametrize("key", NOT_TYPED)
def test_the_test_that_is_named_runs_the_command(key: str) -> None:
    _, test = NOT_TYPED[key]
    words = key.split() if key not in OF_FERRY else command_of(key).split()
    text = (ROOT / "tests" / test).read_text()
    literals = r",\s*".join(f'"{word}"' for word in words)
    called = rf"\b{words[-1]}\w*\(" if words[0] == "dev" else literals
    assert re.search(called, text), f"tests/{test} has no `ferry {' '.join(words)}`"


def test_each_line_of_another_program_is_run_or_it_is_said_why_not() -> None:
    keys = [*OTHERS_TYPED, *OTHERS_NOT_TYPED]
    of_key = {key: {line for line, one in OTHERS.items() if set(key) <= set(one.words)} for key in keys}
    assert [key for key, lines in of_key.items() if not lines] == [], "no document tells to type this any more"
    counted = {line: [key for key in keys if line in of_key[key]] for line in OTHERS}
    assert {line: found for line, found in counted.items() if len(found) != 1} == {}


@pytest.mark.parametrize("key", OTHERS_TYPED)
def test_the_test_that_is_named_takes_the_line_from_the_document(key: tuple[str, ...]) -> None:
    assert told(*key).words
    asked = ", ".join(f'"{word}"' for word in key)
    # A path of the container is put together from the name of the tool.
    asked = asked.replace('"/opt/kafka/bin/kafka-topics.sh"', 'f"/opt/kafka/bin/{tool}"')
    asked = asked.replace('"/opt/kafka/bin/kafka-producer-perf-test.sh"', 'f"/opt/kafka/bin/{tool}"')
    test = OTHERS_TYPED[key]
    assert f"told({asked})" in (ROOT / "tests" / test).read_text(), f"tests/{test} does not run {key}"


def test_a_command_within_a_sentence_is_one() -> None:
    """Its words are a command's or a group's, and its options those of the command."""
    wrong = [f"{document}: `{span}`: {why}" for document, span in sorted(set(spans())) for why in _amiss(span)]
    assert wrong == []


def _amiss(span: str) -> Iterator[str]:
    words = span.replace("\\|", "|").replace("[", "").replace("]", "").split()[1:]
    path = ""
    while words and (deeper := _below(path, words[0].split("|"))):
        path = deeper
        words.pop(0)
    given = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help", "--install-completion"}
    found = next((one for one in (path, f"{path} show") if one in WHOLE), None)
    if not path and words and not words[0].isupper() and not words[0].startswith("-"):
        yield "no such command"
    there = (
        set() if found is None else {name for one in WHOLE[found].params for name in (*one.opts, *one.secondary_opts)}
    )
    yield from (f"no option {name}" for name in sorted(given - there))


def _below(path: str, words: list[str]) -> str:
    """What the path and the first of the words name, a command or a group; nothing when one of the words is neither."""
    names = [f"{path} {word}".strip() for word in words]
    return names[0] if all(any(f"{one} ".startswith(f"{name} ") for one in WHOLE) for name in names) else ""


@pytest.mark.parametrize("line", [line for line, one in OTHERS.items() if one.words[0] == "make"])
def test_make_has_the_target_and_uses_what_it_is_given(line: str) -> None:
    _, *given = OTHERS[line].words
    (target,) = [word for word in given if "=" not in word]
    assert re.search(rf"^{target}:.*## ", makefile(), re.MULTILINE), f"`make help` does not list {target}"
    recipe = makefile().partition(f"\n{target}:")[2].partition("\n\n")[0]
    assert [word for word in given if "=" in word and f"$({word.partition('=')[0]})" not in recipe] == []
    done = subprocess.run(
        ["make", "--dry-run", "PYTHON=python3", *given], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line, one in OTHERS.items() if one.words[0] != "make"])
def test_other_programs_are_known(line: str) -> None:
    one = OTHERS[line]
    program, *given = one.words
    if program in ELSEWHERE:
        return
    match program:
        case "export":
            assert {word.partition("=")[0] for word in given} <= {"FERRY_CONFIG", "PATH", "KAFKA_OPTS"}
        case "cd":
            assert (ROOT / given[0]).is_dir()
        case "cp":
            assert (ROOT / "docker" / given[0]).is_file()
        case "python3":
            assert given[:2] == ["-m", "venv"]
        case "pip" | "/tmp/ferry-new/bin/pip":
            assert given[0] in {"freeze", "install"}
            assert set(re.findall(r"\[([\w,]+)\]", line)) <= {"kerberos", "reports", "airflow,spark,reports"}
        case ".venv/bin/python":
            script = Path("plugins", *given[1].split(".")) if given[0] == "-m" else Path(given[0])
            assert (ROOT / script).exists()
        case "docker":
            _in_containers(one, given)
        case _:
            assert program in YOURS, f"{one.document}: no list has {program}"


def _in_containers(one: Typed, given: list[str]) -> None:
    """The compose file is read by its own tests; here, that it has the service, and Ferry the command."""
    assert given[0] == "compose"
    if given[1] == "up":
        assert set(given[2:]) <= {"--build", "--detach", "--wait"}
        return
    assert given[1] == "exec"
    assert given[2] in yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    if given[3] == "ferry":
        name, rest = resolved(tuple(given[4:]))
        WHOLE[name].make_context(name, rest)
    elif given[3] == "airflow":
        assert (given[4], given[6]) == ("dags", "ferry__primary__backup"), one.document
    else:
        assert given[3] in {f"/opt/kafka/bin/kafka-{tool}.sh" for tool in ("topics", "producer-perf-test")}
