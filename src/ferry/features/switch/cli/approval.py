"""The approval of a command that moves clients or touches production: by a name, or by a person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from ferry.cli.command import Context
from ferry.cli.identity import person
from ferry.errors import BadInput, Refused


def named_on_command_line(name: str) -> str:
    """Return the approver who was named on the command line. Ferry did not ask that person, and reports say so."""
    return f"{name.strip()} (named on the command line by {person()})"


def approval(
    context: Context, given: str | None, show: Callable[[], str], *, what: str, needs: str, cluster: str
) -> str:
    """Return who approves.

    A person at the terminal sees the output of `show` first, and types the cluster that it returns. `what` is approved.
    `needs` begins the sentence about a missing approval. `cluster` says which cluster is meant. Raises BadInput without
    a name or a terminal, Refused if the person types something else.
    """
    if given is not None and given.strip():
        return named_on_command_line(given)
    if context.for_programs or not sys.stdin.isatty():
        raise BadInput(f"{needs} an approval: name the person with --approve-by NAME, or run it at a terminal")
    name = show()
    if typer.prompt(f"To approve, write the name of {cluster} ({name})", default="") != name:
        raise Refused(f"the {what} was not approved, and nothing was written")
    return f"{person()} (at the terminal)"
