"""`ferry version`."""

from __future__ import annotations

import platform

import typer

from ferry import __version__
from ferry.cli.options import JsonOption, QuietOption
from ferry.cli.output import echo, print_json


def version_command(ctx: typer.Context, as_json: JsonOption = False, quiet: QuietOption = False) -> int:
    """Show the versions of Ferry and Python."""
    del quiet  # taken as by every command: there is nothing to leave out
    if as_json or ctx.obj.as_json:
        print_json({"version": __version__, "python": platform.python_version()})
    else:
        echo(f"ferry {__version__} (Python {platform.python_version()})")
    return 0
