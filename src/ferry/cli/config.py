"""`ferry config`: what a file means, and help to write one. No cluster is asked."""

from __future__ import annotations

import typer

from ferry.cli.config_check import check_command

config_app = typer.Typer(
    name="config",
    help="Check, explain and write the MirrorMaker 2 file. No cluster is asked.",
    no_args_is_help=True,
    add_completion=False,
)

config_app.command("check")(check_command)
