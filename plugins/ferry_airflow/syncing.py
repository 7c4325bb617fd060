"""What a sync of groups does, apart from Airflow, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.checkpoint import Looked, StoodBack
from ferry.features.groups.acts.of_run import sync_groups_unattended
from ferry.features.groups.cli.forms import sync_json
from ferry.features.groups.rules.sentences import group_sentences
from ferry.model import GroupOutcome, Left, Why
from ferry.run.micro_run import MicroRuns
from ferry.words import count_of
from ferry_airflow.measures import flag_of, names_of
from ferry_airflow.steps import LISTED

RETURNED = 20
"""How many offsets, and how many groups that were left, the task returns; its log names all that were left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What the task prints and returns, and why it fails; None: it does not."""

    lines: tuple[str, ...]
    body: Mapping[str, Any]
    complaint: str | None = None


def sync(flow: FlowConfig, run: str, params: Mapping[str, Any]) -> Synced:
    """Write offsets of groups, of all that the flow selects unless the form names some."""
    only, dry_run = frozenset(names_of(params, "groups")) or None, flag_of(params, "dry_run")
    try:
        with MicroRuns(flow) as runs:
            looked, done = sync_groups_unattended(runs, run, only=only, dry_run=dry_run)
    except StoodBack as why:
        return _left_alone(flow, str(why))
    return synced_of(flow, run, looked, done)


def _left_alone(flow: FlowConfig, why: str) -> Synced:
    body = {"outcome": "left alone", "summary": why, "groups": 0, "offsets": 0}
    return Synced(lines=(why,), body={**body, "flow": str(flow.flow), "run": None, "writes": [], "left": []})


def synced_of(flow: FlowConfig, run: str, looked: Looked, done: GroupOutcome | None) -> Synced:
    """Return what the task says of a sync; `done` is None for a dry run."""
    left = looked.left if done is None else done.left
    failed = [one for one in left if one.why is Why.FAILED]
    if done is None:
        lines = _wished(looked)
        groups = len(looked.decided.writes)
        offsets = sum(len(ones) for ones in looked.decided.writes.values())
    else:
        lines, groups, offsets = group_sentences(done), done.groups, done.offsets
    found = sync_json(flow.flow, None if done is None else run, looked, done)
    # Those that failed come first, because a reader of the first ones should not miss them.
    rows = sorted(found["left"], key=lambda row: row["why"] != Why.FAILED.value)
    body = {
        "outcome": "failed" if failed else "dry run" if done is None else "synced",
        "summary": lines[-1],
        "groups": groups,
        "offsets": offsets,
        **found,
        "writes": found["writes"][:RETURNED],
        "left": rows[:RETURNED],
    }
    return Synced(lines=tuple(lines), body=body, complaint=_complaint(flow, failed) if failed else None)


def _wished(looked: Looked) -> list[str]:
    lines = [
        f"group {write.checkpoint.group} would get offset {write.checkpoint.target_offset} of {write.checkpoint.target}"
        f" ({write.checkpoint.outcome.value})"
        for ones in looked.decided.writes.values()
        for write in ones
    ]
    count = f"{count_of(len(lines), 'offset')} of {count_of(len(looked.decided.writes), 'group')} would be written"
    lines += [f"would be left: {one.message}" for one in looked.left]
    return [*lines, f"{count}, {looked.decided.unchanged} are up to date"]


def _complaint(flow: FlowConfig, failed: list[Left]) -> str:
    more = f"; and {len(failed) - LISTED} more: the log of this task has all" if len(failed) > LISTED else ""
    said = "; ".join(one.message for one in failed[:LISTED])
    return f"{len(failed)} not translated in a sync of groups of {flow.flow}: {said}{more}"
