"""`ferry config`: what a file means, and help to write one. No cluster is asked."""

from __future__ import annotations

import typer

from ferry.cli.config.check import check_command
from ferry.cli.config.explain import explain_command
from ferry.cli.config.new import new_command
from ferry.features.migrate.cli.import_mm1 import import_mm1_command

config_app = typer.Typer(
    name="config",
    help="Check, explain and write the MirrorMaker 2 file. No cluster is asked.",
    no_args_is_help=True,
    add_completion=False,
)

config_app.command("check")(check_command)
config_app.command("explain")(explain_command)
config_app.command("new")(new_command)
config_app.command(
    "import-mm1",
    # The options of MirrorMaker 1 are read by ferry.features.migrate.mm1, which knows the spellings of all versions.
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(import_mm1_command)
