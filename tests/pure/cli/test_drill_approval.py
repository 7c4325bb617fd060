"""Who may begin a drill that touches production: somebody by name, or a person who names the target."""

from __future__ import annotations

import sys

import pytest
import typer

from ferry.cli.command import Context
from ferry.cli.identity import person
from ferry.errors import BadInput, Refused
from ferry.features.drill.cli.app import approver_of
from tests.golden import Golden

DESK = Context(config=None, clusters=(), quiet=True, verbose=False)


def steps() -> tuple[str, ...]:
    return ("pause the flow", "move the groups")


def test_a_name_is_enough() -> None:
    who, _, how = approver_of(DESK, " anna ", steps, "backup").partition(" ")
    assert (who, person() in how) == ("anna", True)


def test_without_a_name_or_a_terminal_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(BadInput, match="--approve-by NAME"):
        approver_of(DESK, " ", steps, "backup")


def test_a_person_sees_the_steps_and_names_the_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: "backup")
    assert approver_of(DESK, "", steps, "backup").startswith(f"{person()} (")
    assert capsys.readouterr().out.splitlines() == [f"{number}. {step}" for number, step in enumerate(steps(), 1)]
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: "yes")
    with pytest.raises(Refused) as refused:
        approver_of(DESK, "", steps, "backup")
    golden(refused.value)


def test_a_person_is_whom_the_system_knows_and_not_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "cfo")
    assert not person().startswith("cfo@")
