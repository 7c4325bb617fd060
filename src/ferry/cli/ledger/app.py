"""The commands of `ferry ledger`."""

from __future__ import annotations

import typer

from ferry.cli.ledger.show import ledger_command
from ferry.features.archive.cli.file import export_command, rebuild_command
from ferry.features.groups.cli.app import SHOW, ShowFirst

ledger_app = typer.Typer(cls=ShowFirst, help="The flow's ledger; without a command: look things up in it.")


@ledger_app.callback()
def ledger() -> None:
    """The flow's ledger; without a command: look things up in it."""


ledger_app.command(SHOW)(ledger_command)
ledger_app.command("export")(export_command)
ledger_app.command("rebuild")(rebuild_command)
