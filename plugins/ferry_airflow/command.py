"""`ferry airflow …`: Ferry's command line passes these words on by the entry point `ferry.commands`."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.global_options import FormOption, GlobalOptions, JsonOption, form_of
from ferry.cli.lazy import HELP
from ferry.cli.plain import PlainCommand, PlainGroup, shown_examples
from ferry.errors import Refused
from ferry_airflow import setup

app = typer.Typer(
    name="airflow", cls=PlainGroup, no_args_is_help=True, add_completion=False, context_settings=dict(HELP)
)
EXAMPLES = ("airflow setup --config mm2.properties --dry-run", "airflow setup --config mm2.properties")


def main(arguments: Sequence[str], wishes: GlobalOptions) -> int:
    """Run a command of `app`; `wishes` are the options before `airflow`. The caller shows errors."""
    return int(app(args=list(arguments), prog_name="ferry airflow", standalone_mode=False, obj=wishes) or 0)


@app.callback()
def airflow(ctx: typer.Context, form: FormOption = None, as_json: JsonOption = False) -> None:
    """Prepare an Airflow for Ferry."""
    ctx.obj = replace(ctx.obj, form=form_of(form, as_json=as_json) or ctx.obj.form)


@app.command("setup", cls=PlainCommand, epilog=shown_examples(*EXAMPLES))
@command(flow=False, connects=False)
def setup_command(
    context: Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the connections. Makes no pool.")] = False,
) -> int:
    """Create the pools of the file's flows and check the connections that they name. Safe to run again.

    It is the Airflow of AIRFLOW_HOME, which must be set. Exit code 2 when a connection is missing; the pools are there
    nevertheless.
    """
    if importlib.util.find_spec("airflow") is None:
        raise Refused(
            "`ferry airflow setup` needs Airflow, and none is installed here: install ferry-replicator[airflow]"
        )
    if not os.environ.get(setup.HOME):  # Airflow would make a home in ~/airflow
        raise Refused(setup.HOME_IS_UNSET)
    result = setup.setup(context.config, dry_run=dry_run)
    if result.missing:
        raise Refused("; ".join(result.missing))
    context.answer(
        lambda: {"pools": list(result.pools), "connections": list(result.connections), "dry_run": dry_run},
        lambda: print(f"{'would be there: ' if dry_run else ''}{result.sentence}"),
    )
    return 0
