"""Every row of the table of commands leads to a function, and says in a list what its own help begins with."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from ferry.cli.lazy import Group, Row, Rows
from ferry.commands import COMMANDS
from ferry.program import program


def rows(below: Rows = COMMANDS, before: str = "") -> Iterator[tuple[str, Row]]:
    """Each command with the words that lead to it."""
    for name, row in below.items():
        if isinstance(row, Group):
            yield from rows(row.rows, f"{before}{name} ")
        else:
            yield f"{before}{name}", row


@pytest.mark.parametrize(("words", "row"), list(rows()), ids=[words for words, _ in rows()])
def test_a_command_is_there_and_its_line_is_the_beginning_of_its_help(words: str, row: Row) -> None:
    first, _, _ = inspect.cleandoc(row.function().__doc__ or "").partition("\n\n")
    assert " ".join(first.split()) == row.help


def test_a_group_without_a_name_runs_its_first_command() -> None:
    assert {name: row.first for name, row in COMMANDS.items() if isinstance(row, Group) and row.first} == {
        "groups": "show",
        "ledger": "show",
        "lanes": "list",
        "switches": "list",
        "reports": "list",
    }


def test_a_list_of_commands_loads_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    program.cache_clear()
    built = program()
    with pytest.raises(SystemExit):
        built(args=["--help"], prog_name="ferry")
    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if f" {name} " not in shown] == []
    assert built._loaded == {}
