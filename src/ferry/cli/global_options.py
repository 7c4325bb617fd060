"""The options that may be before a command's name and after it. `ferry --help` needs no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.output import Form
from ferry.errors import BadInput


def _form(given: object) -> object:
    if not isinstance(given, str) or given in tuple(Form):
        return given if given is None else Form(str(given))
    raise BadInput(f"-o {given!r} is not a form of an answer: write json, table or csv")


FormOption = Annotated[
    Form | None,
    typer.Option(
        "-o",
        "--format",
        parser=_form,
        metavar="FORM",
        help="Print the answer on standard output as json, table or csv. Default: table.",
        autocompletion=lambda incomplete: [one for one in Form if one.startswith(incomplete)],
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as -o json.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print no progress and no warnings on standard error.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print the libraries' log lines on standard error, too.")
]


class NothingNamed(BadInput):
    """The command line does not name what the command is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The options before the command's name."""

    config: Path | None
    variable: str | None
    """The variable of the environment that names the file; None: an option names it, or nothing does."""
    clusters: str | None
    """The local clusters as written on the command line; None: all are local."""
    form: Form | None
    """The form of the answer; None: the command line does not name it."""
    quiet: bool
    verbose: bool


def form_of(form: Form | None, *, as_json: bool) -> Form | None:
    """Return the form that -o and --json name; BadInput if they name two."""
    if as_json and form not in (None, Form.JSON):
        raise BadInput(f"--json and -o {form} name two forms of the answer: give one of them")
    return Form.JSON if as_json else form
