"""What every command of the program has, seen by walking its tree: help, examples, --json, --quiet, --dry-run."""

from __future__ import annotations

import inspect
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry import __version__
from ferry.program import main

ROOT = Path(__file__).resolve().parents[3]
TOOL = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))
COMMANDS: dict[str, Any] = dict(TOOL["every_command"]())
EXAMPLES = [(words, line) for words, one in COMMANDS.items() for line in TOOL["examples_of"](one)]


def _named(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


CHANGES = _named(
    "run, backfill, lanes drop, groups sync, groups snapshot, groups snapshots drop, groups rollback, "
    "ledger rebuild, pause, resume, skip, "
    "migrate mm2, migrate mm1, migrate hand-back, switchover, failover, failback, switches abandon, drills tabletop, "
    "drills shadow, drills partial, drills full, reports switch, dev up, dev down, airflow setup, ledger export, "
    "config new, migrate import-mm1, config check, support-bundle"
)
"""Commands that write to a cluster, a ledger, an Airflow, a file or a folder, or start and stop processes."""
READS = _named(
    "plan, lanes list, lag, acls required, acls diff, groups show, groups diff, groups snapshots list, "
    "ledger show, readiness, switches list, "
    "switches show, flows, translate, verify, reports list, reports verify, version, status, explain, doctor, "
    "config explain, config policy, metrics serve, dev status, records show"
)
TELL = _named("verify")
"""Of those: what tells ferry.metrics.folder what it saw. A dry run of looking would be the same, told to nobody."""


def options(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.param_type_name == "option":
            yield from one.opts


def test_every_command_is_known_to_change_something_or_not() -> None:
    assert sorted([*CHANGES, *READS]) == sorted(COMMANDS)


def test_only_a_comparison_tells_the_metrics_what_it_saw_and_says_so() -> None:
    modules = {words: Path(inspect.getfile(inspect.unwrap(COMMANDS[words].callback))) for words in READS}
    assert {words for words, path in modules.items() if "ferry.features.observe.acts" in path.read_text()} == TELL | {
        "metrics serve"  # reads what others told
    }
    assert all("ferry.metrics.folder" in COMMANDS[words].help for words in TELL)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_has_help_examples_and_the_options_of_its_kind(words: str) -> None:
    command = COMMANDS[words]
    there = set(options(command))
    assert command.help
    assert all(one.help for one in command.params)
    assert all(one.metavar for one in command.params if one.param_type_name == "argument" or not one.is_flag)
    assert TOOL["examples_of"](command)
    assert {"-o", "--format", "--json", "--quiet"} <= there
    assert ("--dry-run" in there) == (words in CHANGES)


@pytest.mark.parametrize(("words", "line"), EXAMPLES)
def test_an_example_is_a_line_that_the_program_takes(words: str, line: str) -> None:
    given = shlex.split(line.removeprefix("$ ferry "))
    for word in words.split():
        given = given[1:] if given[0] == word else given
    COMMANDS[words].make_context(words, given)


FLOWS = [words for words, one in COMMANDS.items() if any(each.name == "flow" for each in one.params)]
_WORDS = (
    "TOPIC=orders PARTITION=0 OFFSET=7 LANE=backfill-x ID=s-1 GROUP=g NAME=n TEXT=x FILE=out TIME=2026-01-31T06:00:00Z"
)
VALUES = dict(one.split("=") for one in _WORDS.split())
"""A word for each name that a usage has."""


@pytest.mark.parametrize("words", FLOWS)
def test_every_command_of_a_flow_takes_its_words_without_the_flow(words: str) -> None:
    command = COMMANDS[words]
    first, *others = [one for one in command.params if one.param_type_name == "argument"]
    assert (first.name, first.required) == ("flow", False)
    needed = [one for one in command.params if one.param_type_name == "option" and one.required]
    line = [word for one in needed for word in (one.opts[0], VALUES[one.metavar])]
    line += [VALUES[one.metavar] for one in others]
    without = command.make_context(words, list(line)).params
    named = command.make_context(words, ["a->b", *line]).params
    assert (without.pop("flow"), named.pop("flow")) == (None, "a->b")
    assert without == named
    assert len(named) == len(command.params) - 1


def test_a_flow_that_the_shell_cut_off_is_no_topic() -> None:
    assert COMMANDS["translate"].make_context("translate", ["a-", "orders", "0"]).params["flow"] == "a-"


def test_the_reference_has_no_form_within_a_form() -> None:
    usages = [line for line in TOOL["rendered"]().splitlines() if line.startswith("`ferry ")]
    assert len(usages) == len(COMMANDS)
    assert [line for line in usages if "[[" in line or "]]" in line or "{" in line] == []
    rows = [line.split("`")[1] for line in TOOL["rendered"]().splitlines() if line.startswith("| `")]
    assert [name for name in rows if "]" in name or "[" in name] == []


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cli-reference.md").read_text() == TOOL["rendered"](), "run python tools/cli_reference.py"


@pytest.mark.parametrize(
    "words", [(), ("plan",), ("groups",), ("groups", "sync"), ("version",), ("dev", "up"), ("airflow",)]
)
def test_help_has_a_short_spelling(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for spelling in ("-h", "--help"):
        with pytest.raises(SystemExit) as ended:
            main([*words, spelling])
        assert (ended.value.code, "Usage:" in capsys.readouterr().out) == (0, True)


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"ferry {__version__}\n")
