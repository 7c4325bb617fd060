"""An option has one meaning: by its form, the same in every command that has it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
COMMANDS: dict[str, Any] = dict(run_path(str(ROOT / "tools" / "cli_reference.py"))["every_command"]())
SEVERAL = {
    "--from": {"TIME", "OFFSET|TIME"},
    "--to": {"TIME", "OFFSET", "OFFSET|TIME"},
    "--topic": {"TOPIC", "TOPIC,..."},
}
"""Options whose value has a wider form in some commands."""


def forms() -> dict[str, set[str]]:
    found = defaultdict(set)
    for command in COMMANDS.values():
        for one in command.params:
            if one.param_type_name == "option" and not one.hidden:
                for name in one.opts:
                    found[name].add("" if one.is_flag else str(one.metavar))
    return found


def test_an_option_has_one_form() -> None:
    assert {name: kinds for name, kinds in forms().items() if len(kinds) > 1} == SEVERAL


def test_options_of_one_meaning_are_apart() -> None:
    by_option = {
        option: {words for words, command in COMMANDS.items() for one in command.params if option in one.opts}
        for option in ("--max-records", "--rpo-records", "--why", "--reason", "--sample", "--one-in")
    }
    assert by_option == {
        "--max-records": {"plan", "run", "backfill"},
        "--rpo-records": {"lag", "readiness", "switchover", "failback"},
        "--why": {"plan"},
        "--sample": {"plan"},
        "--one-in": {"verify"},
        "--reason": {"pause", "skip", "switches abandon"},
    }
