"""`ferry flows`: what the file has."""

from __future__ import annotations

import typer

from ferry.cli.desk import ConfigOption, Desk, JsonOption, QuietOption, VerboseOption
from ferry.cli.output import print_json, print_table


def flows_command(
    ctx: typer.Context,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """List the enabled flows of the file; no cluster is asked."""
    # Imported here: the command line starts light.
    from ferry.cli.shapes import flow_json

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    flows = [flow_json(flow) for flow in desk.settings().flows]
    if desk.as_json:
        print_json({"flows": flows})
        return 0
    print_table(
        ["flow", "topics", "policy", "lane", "tasks", "schedule"],
        (
            [row["flow"], ", ".join(row["topics"]), row["policy"], row["lane"], row["tasks_max"], row["schedule"]]
            for row in flows
        ),
        right=["tasks"],
    )
    return 0
