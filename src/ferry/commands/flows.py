"""`ferry flows`: the flows of the file."""

from __future__ import annotations

from ferry.cli.command import Context, command
from ferry.cli.output import print_table
from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import FLOW, many
from ferry.config.flow.flow import FlowConfig
from ferry.words import count_of


@command(flow=False, connects=False, table=True)
def flows_command(
    context: Context,
) -> int:
    """List the enabled flows of the file. Asks no cluster."""
    flows = [flow_json(flow) for flow in context.settings().flows]
    rows = (
        [row["flow"], ", ".join(row["topics"]), row["policy"], row["lane"], row["tasks_max"], _started_by(row)]
        for row in flows
    )
    columns = ["flow", "topics", "policy", "lane", "tasks", "schedule"]
    context.answer(lambda: {"flows": flows}, lambda: print_table(columns, rows, right=["tasks"]))
    return 0


FLOW_CONFIG = Form(
    FlowConfig,
    F("flow", kind=FLOW),
    F("topics", "topics.filter.include.items", many()),
    F("topics_exclude", "topics.filter.exclude.items", many()),
    F("policy", "topics.policy_name"),
    F("lane"),
    F("tasks_max", "copy.tasks_max", least=1),
    F("schedule", "airflow.schedule", says="null: no clock starts runs"),
    F("lag_records", "airflow.lag_start.records", least=1, says="a total lag that starts a run; null: none does"),
    F("lag_seconds", "airflow.lag_start.seconds", least=1, says="an age of lag that starts a run; null: none does"),
)

flow_json = FLOW_CONFIG.dump
"""`ferry flows`: the settings by which flows differ."""


def _started_by(row: Json) -> str | None:
    """Return what starts the runs of a flow; None: only a user."""
    records, seconds = row["lag_records"], row["lag_seconds"]
    lag = [
        *([] if records is None else [count_of(records, "record")]),
        *([] if seconds is None else [f"{seconds} s"]),
    ]
    clock = [] if row["schedule"] is None else [row["schedule"]]
    return " or ".join([*clock, *(f"lag of {limit}" for limit in lag)]) or None
