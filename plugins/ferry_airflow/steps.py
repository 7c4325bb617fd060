"""What the tasks do, apart from Airflow: open a run or keep it, and report how it ended."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.groups.acts.of_run import checkpoint as checkpoint_groups
from ferry.features.verify.acts.wanted import Wanted, bound
from ferry.ledger.report import Report
from ferry.ledger.runs import newest_attempt
from ferry.ledger.topic_ranges import TopicRanges, topic_ranges
from ferry.messages.catalogue import sentence
from ferry.model import GroupOutcome, Origin, Pause, Plan, RunVerified, VerifyMode
from ferry.plan.options import RunOptions
from ferry.run.micro_run import MicroRuns
from ferry.words import count_of, to_the_ms
from ferry_airflow.measures import RUN_SECONDS, flag_of, names_of, seconds_of, size_of, whole_of
from ferry_airflow.naming import COMPACTED, FULL, MODES, SAMPLE

SEED_BITS = 32
LISTED = 20
"""How many refusals a failing report names in its sentence; its log has all."""


def options_of(params: Mapping[str, Any]) -> RunOptions:
    """Return the trigger form as options of a run; raises BadInput."""
    return RunOptions(
        only=frozenset(names_of(params, "topics")) or None,
        max_bytes=size_of(params, "max_bytes"),
        max_records=whole_of(params, "max_records"),
        max_seconds=seconds_of(params, "max_seconds", RUN_SECONDS),
        take_over=flag_of(params, "take_over"),
    )


def preview(flow: FlowConfig, options: RunOptions) -> Plan:
    """Return what a run would do now; writes nothing."""
    with MicroRuns(flow) as runs:
        return runs.preview(options)


def open_plan(flow: FlowConfig, run: str, origin: Origin, options: RunOptions) -> Plan:
    """Return the sealed plan of a run: the one that the ledger has already, else a new one.

    Raises Superseded when a newer run owns the lane and has what this one left.
    """
    with MicroRuns(flow) as runs:
        return runs.open_or_keep(run, origin, options)


def nothing_left(flow: FlowConfig, run: str, lane: str | None = None) -> bool:
    """Return whether `copy` may end without Spark; Superseded when a newer run has what is left of this one.

    `lane` is None for the flow's own.
    """
    with MicroRuns(flow, lane=lane) as runs:
        return not runs.unfinished_slices(runs.sealed_plan(run))


def newest_copier(flow: FlowConfig, run: str) -> Origin | None:
    """Return what began the newest attempt to copy the run's plan; None before the first."""
    with MicroRuns(flow) as runs:
        plan = runs.sealed_plan(run)
        newest = newest_attempt(runs.wait_for(lambda: runs.view(run)), plan.lane, run, plan.generation)
        return None if newest is None else newest.origin


def checkpoint(flow: FlowConfig, run: str) -> GroupOutcome | None:
    """Translate the groups' offsets by what is copied; None if the file turns that off, or a newer run does it."""
    with MicroRuns(flow) as runs:
        return checkpoint_groups(runs, run)


def copied_topics(flow: FlowConfig, run: str) -> list[TopicRanges]:
    """Return what the run has copied of each topic."""
    with MicroRuns(flow) as runs:
        report = runs.report(run)
        return topic_ranges(report.receipts)


def verify_by_receipt(flow: FlowConfig, run: str) -> tuple[VerifyMode, RunVerified | None]:
    """Return how the run is to verify itself, and the result if that is by its receipts."""
    from ferry.features.verify.acts.own_run import OwnRun  # noqa: PLC0415 - only the task verify needs it

    with OwnRun(flow, run) as own:
        mode = own.due()
        return mode, own.keep(mode, own.verify(mode)) if mode is VerifyMode.RECEIPT else None


def wanted_of(params: Mapping[str, Any]) -> Wanted:
    """Return the trigger form of the verify DAG as a Wanted; raises BadInput."""
    (start, since_ms), (end, until_ms) = bound("--from", params.get("from")), bound("--to", params.get("to"))
    mode = params.get("mode") or FULL
    if mode not in MODES:
        raise BadInput(f"mode {mode!r} is none of {', '.join(MODES)}: write one of them")
    return Wanted(
        topics=frozenset(names_of(params, "topics")) or None,
        partition=whole_of(params, "partition", least=0),
        start=start,
        end=end,
        since_ms=since_ms,
        until_ms=until_ms,
        sample=whole_of(params, "sample") if mode == SAMPLE else None,
        seed=secrets.randbits(SEED_BITS),
        compacted=mode == COMPACTED,
        without_ledger=flag_of(params, "without_ledger"),
    )


def verify_arguments(wanted: Wanted) -> list[str]:
    """Return a Wanted as arguments of `verify_job.py`."""
    found = [part for topic in sorted(wanted.topics or ()) for part in ("--topic", topic)]
    for option, value in (
        ("--partition", wanted.partition),
        ("--from", wanted.start if wanted.since_ms is None else to_the_ms(wanted.since_ms)),
        ("--to", wanted.end if wanted.until_ms is None else to_the_ms(wanted.until_ms)),
        ("--one-in", wanted.sample),
        ("--seed", wanted.seed),
    ):
        if value is not None:
            found += [option, str(value)]
    found += ["--compacted"] if wanted.compacted else []
    return [*found, "--without-ledger"] if wanted.without_ledger else found


class Reported(NamedTuple):
    """The report of a run; the newer run that owns the lane by now, and the pause of the flow, if there are such."""

    report: Report
    newer: str | None = None
    pause: Pause | None = None


def reported(flow: FlowConfig, run: str) -> Reported:
    """Return the report of a run, and what became of its lane and flow since."""
    with MicroRuns(flow) as runs:
        report = runs.report(run)
        return Reported(report, runs.superseded(report.plan), runs.pause())


def groups_held(found: Reported, *, translates: bool) -> str | None:
    """Return that a pause since the plan kept the run from its groups, in one sentence; None if none did.

    A switch pauses the flow, too. Then offsets that the run translates may be older than those of the switch.
    """
    report, newer, pause = found
    if pause is None or not translates or report.groups is not None or newer is not None or report.plan.flow_paused:
        return None
    return sentence("groups.paused", flow=str(report.plan.flow), who=pause.who, why=pause.why)


def complaint(found: Reported, *, translates: bool) -> str | None:
    """Return why the run must not look green, in one sentence.

    None when all that was planned is copied, by this or another run, no group failed, and no difference was found.
    Groups that are left alone because the flow is paused are none that failed. `translates`: the flow's groups are to
    be translated.
    """
    report, newer, _ = found
    expects_groups = translates and groups_held(found, translates=True) is None
    complaints = _not_done(report, newer, translates=expects_groups), _of_verification(report, newer)
    return "; ".join(one for one in complaints if one is not None) or None


def _of_verification(report: Report, newer: str | None) -> str | None:
    if report.verified is None:
        if report.verify_due is VerifyMode.OFF or newer is not None:
            return None
        return "whether what was copied is equal is not in the ledger: look at the task verify"
    wrong = report.verified.complaints
    if not wrong:
        return None
    return f"what run {report.plan.run} of {report.plan.flow} copied is not equal: {_listed(wrong)}"


def _not_done(report: Report, newer: str | None, *, translates: bool) -> str | None:
    wrong = [refusal.message for refusal in report.refusals]
    wrong += [f"{piece.name} is not copied up to {piece.end}" for piece in report.unfinished]
    groups = [] if report.groups is None else [left.message for left in report.groups.failed]
    run = f"run {report.plan.run} of {report.plan.flow}"
    if wrong:
        taken = f" (superseded by {newer})" if newer and report.unfinished else ""
        also = f"; {count_of(len(groups), 'group')} failed as well: {_LOG}" if groups else ""
        return f"{len(wrong)} not copied in {run}{taken}: {_listed(wrong)}{also}"
    if groups:
        return f"all is copied, but {len(groups)} not translated in {run}: {_listed(groups)}"
    if translates and report.groups is None and newer is None and not report.plan.flow_paused:
        why = "is not in the ledger: the task checkpoint logs it, also if a pause of the flow kept it"
        return f"all is copied in {run}, but what became of the groups {why}"
    return None


_LOG = "the log of the task report has all"


def _listed(wrong: Sequence[str]) -> str:
    more = f"; and {len(wrong) - LISTED} more: {_LOG}" if len(wrong) > LISTED else ""
    return f"{'; '.join(wrong[:LISTED])}{more}"
