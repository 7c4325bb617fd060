"""Who approves of what moves clients or touches production: somebody by name, or a person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from ferry.cli.command import Context
from ferry.cli.identity import person
from ferry.errors import BadInput, Refused


def named_on_command_line(name: str) -> str:
    """An approver whom somebody has named: Ferry did not ask them, and reports say so."""
    return f"{name.strip()} (named on the command line by {person()})"


def approval(
    context: Context, given: str | None, show: Callable[[], str], *, what: str, needs: str, cluster: str
) -> str:
    """Who approves. A person at the terminal sees what `show` prints first, and writes the cluster that it answers.

    `what` is approved of, `needs` begins the sentence without anybody's approval, `cluster` says which one is meant.
    Raises BadInput without a name or a terminal, Refused when the person writes anything else.
    """
    if given is not None and given.strip():
        return named_on_command_line(given)
    if context.as_json or not sys.stdin.isatty():
        raise BadInput(f"{needs} somebody's approval: say whose with --approve-by NAME, or call it at a terminal")
    name = show()
    if typer.prompt(f"To approve, write the name of {cluster} ({name})", default="") != name:
        raise Refused(f"the {what} was not approved, and nothing was written")
    return f"{person()} (at the terminal)"
