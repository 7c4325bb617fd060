"""The options that name the form of an answer."""

from __future__ import annotations

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


def form_of(form: Form | None, *, as_json: bool) -> Form | None:
    """Return the form that -o and --json name; BadInput if they name two."""
    if as_json and form not in (None, Form.JSON):
        raise BadInput(f"--json and -o {form} name two forms of the answer: give one of them")
    return Form.JSON if as_json else form
