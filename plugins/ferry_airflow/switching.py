"""What the tasks of a switch do, apart from Airflow: show it, open it, do one step, report its state."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ferry.config.flow.report import FOLDER, ReportConfig, local_path
from ferry.errors import BadInput, Refused
from ferry.features.evidence.acts.folder import Written
from ferry.features.evidence.rules.lines import deviation_lines
from ferry.features.switch.acts.drain import Copy
from ferry.features.switch.acts.report import deviations_of_switch, kept_report
from ferry.features.switch.acts.switcher import Preview, Switcher
from ferry.features.switch.rules.drained import drain_runs
from ferry.features.switch.rules.steps import left_of
from ferry.ledger.runs import sealed_plan
from ferry.model.switch import Step, StepDone, SwitchOptions, SwitchOutcome, SwitchState, Verb
from ferry.run.local import copy_plan
from ferry.words import to_the_second
from ferry_airflow.cluster_settings import settings_for
from ferry_airflow.measures import flag_of, names_of, seconds_of, whole_of
from ferry_airflow.report_places import is_allowed_place, not_allowed
from ferry_airflow.tables import table

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_ID = 100
_WAITS = ("quiet_seconds", "quiet_timeout_seconds", "drain_timeout_seconds")
PATIENCE_SECONDS = 60.0
"""How long a cluster is tried for the figures of a report."""


def switch_id(run: str, params: Mapping[str, Any]) -> str:
    """Return the switch that a DAG run is about: the one that the form names, else one of its own.

    A run that is cleared is about the same one.
    """
    return str(params.get("id") or "") or _NOT_IN_IDS.sub("-", run)[-_LONGEST_ID:]


def options_of(params: Mapping[str, Any]) -> SwitchOptions:
    """Return the trigger form as options of a switch; a field that the verb does not have is at its default.

    Raises BadInput, which names the field.
    """
    default = SwitchOptions()
    waits = {name: seconds_of(params, name) for name in _WAITS if params.get(name) is not None}
    return SwitchOptions(
        **waits,
        leave_groups=names_of(params, "leave_groups"),
        leave_topics=names_of(params, "leave_topics"),
        leave_active=flag_of(params, "leave_active"),
        leave_unknown=flag_of(params, "leave_unknown"),
        remove_write_block=flag_of(params, "remove_write_block"),
        smoke=flag_of(params, "smoke", default=default.smoke),
        reverse=flag_of(params, "reverse", default=default.reverse),
        interrupt=flag_of(params, "interrupt"),
        rpo_records=whole_of(params, "max_records", least=0),
        rpo_seconds=seconds_of(params, "max_seconds"),
        export=str(params.get("output") or ""),
    )


def asked_for(params: Mapping[str, Any], verb: Verb, switch: str, reports: ReportConfig) -> SwitchOptions:
    """Return the trigger form as options, with a file for stranded records of a failback, which hold keys and values.

    If the form names no file, it is next to the `reports`, never in a worker's own folder. Raises BadInput if the
    reports have no folder of this machine by a full path. Raises BadInput for a file that the form may not name.
    """
    options = options_of(params)
    if verb is not Verb.FAILBACK or options.export:
        refuse_other_export(options, reports)
        return options
    folder = local_path(reports.folder)
    if folder is None or not folder.is_absolute():
        raise BadInput(
            "the form names no file for records that were left on the cluster; ferry.report.dir "
            f"({reports.folder}) is not a full path of a folder on the worker: name a file in the form"
        )
    return replace(options, export=str(folder / f"ferry-stranded-{switch}.jsonl"))


def refuse_other_export(options: SwitchOptions, reports: ReportConfig) -> None:
    """Raise BadInput for a file of stranded records that the flow's file does not allow.

    A switch that was opened on the command line may have any: it has to be continued there.
    """
    named = options.export
    if named and ("://" in named or Path(named) == local_path(reports.folder) or not is_allowed_place(reports, named)):
        raise BadInput(f"{not_allowed('output', named)}; a switch of the command line continues there")


def switcher(
    config: str, flow: str, verb: Verb, dag_id: str, copy: Copy | None = None, *, remove_write_block: bool = False
) -> Switcher:
    """Return the switcher for the flow of the file, with the settings of Airflow's connections, in the DAG's name.

    `copy` copies what is left of a plan when the flow is drained; None: on this machine. `remove_write_block` is the
    form's.
    """
    settings = settings_for(Path(config), flow)
    who = f"{dag_id}@{socket.gethostname()}"
    return Switcher(
        settings,
        settings.flow(flow),
        verb,
        who=who,
        remove_write_block=remove_write_block,
        copy=copy or copy_plan,
    )


def drained_by(found: Switcher, switch: str) -> list[str]:
    """Return the micro-runs with a plan by which a switch drained its flow, as far as the ledger keeps them.

    Those of killed tries are among them.
    """
    if not found.ledger.exists():
        return []
    lane, opened = found.sides.via.lane, drain_runs(found.ledger.view(), found.sides.via.lane, switch)
    return [
        one.record.run
        for one in opened
        if sealed_plan(found.ledger.view_with(lane, one.record.run), lane, one.record.run, one.generation) is not None
    ]


def preview_lines(preview: Preview) -> list[str]:
    """Return what a switch will do, and the checks, line by line."""
    made = preview.switch
    head = f"{made.verb} {made.id}: clients go from {made.via.source} to {made.via.target}"
    steps = [f"{number}. {step}: {text}" for number, (step, text) in enumerate(preview.steps, 1)]
    checks = [f"{one.outcome}: {one.name}: {one.message}" for one in preview.readiness.checks]
    return [head, *steps, *checks]


def refuse_unready(preview: Preview) -> None:
    """Raise Refused for the checks that a switch does not pass."""
    failed = preview.readiness.failed
    if failed:
        why = "; ".join(f"{one.name}: {one.message}" for one in failed)
        raise Refused(f"{preview.switch.via.target} cannot take over, and nothing was switched: {why}")


def step_lines(state: SwitchState, step: Step) -> list[str]:
    """Return what a step found, line by line."""
    return _done_lines(state.done[step])


def report_lines(state: SwitchState) -> list[str]:
    """Return a switch as far as it has come, line by line."""
    made = state.switch
    head = (
        f"{made.verb} {made.id} of {made.named} to {made.via.target}, approved by {made.approved_by} at "
        f"{to_the_second(made.approved_ms)}"
    )
    rows = [
        [done.step.value, done.who, f"{(done.done_ms - done.begun_ms) / 1000:.1f}", done.evidence.sentence]
        for done in state.done.values()
    ]
    return [head, *table(["step", "by", "seconds", "what was found"], rows)]


def deviations_to_log(config: str, flow: str, state: SwitchState) -> list[str]:
    """Return a line for each thing that is not as it should be in a switch that is finished; none of another one."""
    if state.end is None or state.end.outcome is not SwitchOutcome.FINISHED:
        return []
    settings = settings_for(Path(config), flow)
    return deviation_lines(deviations_of_switch(settings, settings.flow(flow), state))


def report_kept(
    config: str, flow: str, state: SwitchState, *, asked_by: str = "", reason: str = ""
) -> tuple[Written | None, str | None]:
    """Keep the report of a switch that has ended; return it, or why it was not written; neither if no folder is named.

    A folder without a full path is refused, because operators would not find a report in a worker's own folder.
    """
    settings = settings_for(Path(config), flow)
    named = settings.flow(flow)
    folder, made = named.report.folder, state.switch
    if not named.report.is_named or "://" in folder or Path(folder).is_absolute():
        return kept_report(settings, named, state, patience_s=PATIENCE_SECONDS, asked_by=asked_by, reason=reason)
    return None, (
        f"{made.verb} {made.id} is over, but its report was not written: give {FOLDER} ({folder}) a full path or a "
        f"URL, then ferry reports switch '{named.flow}' {made.id}"
    )


def returned(state: SwitchState, report: Written) -> dict[str, Any]:
    """Return the outcome of a switch, and where its report is, for programs."""
    made, end = state.switch, state.end
    return {
        "id": made.id,
        "verb": made.verb.value,
        "outcome": None if end is None else end.outcome.value,
        "report": report.document,
    }


def complaint(state: SwitchState) -> str | None:
    """Return why a switch is not done; None when it is.

    The task to be cleared need not be that of the next step: a task that was killed may have done its step. A task
    after one that failed is not run.
    """
    made = state.switch
    if state.end is not None and state.end.outcome is SwitchOutcome.FINISHED:
        return None
    if state.end is not None:
        return f"{made.verb} {made.id} was abandoned by {state.end.who}: {state.end.why}"
    return (
        f"{made.verb} {made.id} is not finished, {left_of(state)}: clear the first task that failed and all after it "
        f"to continue; or continue with ferry {made.verb} '{made.named}' --id {made.id}, or abandon it with ferry "
        "switches abandon"
    )


def _done_lines(done: StepDone) -> list[str]:
    lines = [done.evidence.sentence]
    lines += [f"{name}: {value}" for name, value in done.evidence.facts.items()]
    rows = done.evidence.rows
    if rows:
        head = list(rows[0])
        lines += table(head, [[str(row.get(name, "")) for name in head] for row in rows])
    return lines
