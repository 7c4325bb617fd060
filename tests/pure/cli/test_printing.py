"""What a command prints goes through `ferry.cli.output`, which escapes what would steer a terminal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ferry.cli.output import echo

SOURCE = Path(__file__).parents[3] / "src" / "ferry"
COMMANDS = sorted([*SOURCE.glob("commands/**/*.py"), *SOURCE.glob("features/*/cli/**/*.py")])


@pytest.mark.parametrize("file", COMMANDS, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_command_prints_by_itself(file: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    assert [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"] == []


def test_texts_of_others_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    echo("group \x1b]0;owned\x07\x9b2J", "columns\tand\nlines", sep="\n")
    assert capsys.readouterr().out == "group \\x1b]0;owned\\x07\\x9b2J\ncolumns\tand\nlines\n"
