"""The command `ferry version`."""

from __future__ import annotations

import platform

import typer

from ferry import __version__
from ferry.cli.global_options import FormOption, JsonOption, QuietOption, form_of
from ferry.cli.output import Form, echo, print_answer, print_table


def version_command(
    ctx: typer.Context, form: FormOption = None, as_json: JsonOption = False, quiet: QuietOption = False
) -> int:
    """Show the versions of Ferry and Python."""
    del quiet  # taken as by every command: there is nothing to leave out
    python = platform.python_version()
    print_answer(
        lambda: {"version": __version__, "python": python},
        lambda: echo(f"ferry {__version__} (Python {python})"),
        form=form_of(form, as_json=as_json) or ctx.obj.form or Form.TABLE,
        table=lambda: print_table(["version", "python"], [[__version__, python]]),
    )
    return 0
