"""`ferry airflow`: the command is in another package of the project, because the library does not depend on Airflow."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from ferry.errors import BadInput

ENTRIES = "ferry.commands"
"""Entry points by which other packages of the project provide commands."""


def airflow_command(ctx: typer.Context) -> int:
    """Prepare Airflow for Ferry: create pools, check connections."""
    found = [entry for entry in entry_points(group=ENTRIES) if entry.name == "airflow"]
    if not found:
        raise BadInput("`ferry airflow` needs Ferry's Airflow package: install ferry-replicator[airflow]")
    return int(found[0].load()(ctx.args, ctx.obj))
