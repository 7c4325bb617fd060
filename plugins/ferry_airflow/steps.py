"""What the tasks do, apart from Airflow: open a run or keep it, and report how it ended."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.of_run import checkpoint as checkpoint_groups
from ferry.features.verify.acts.wanted import Wanted, bound
from ferry.ledger.report import Report
from ferry.ledger.topic_ranges import TopicRanges, topic_ranges
from ferry.model import GroupOutcome, Origin, Plan, RunVerified, VerifyMode
from ferry.plan.options import RunOptions
from ferry.run.micro_run import MicroRuns
from ferry.words import to_the_ms
from ferry_airflow.measures import RUN_SECONDS, seconds_of, size_of
from ferry_airflow.naming import COMPACTED, FULL, SAMPLE

SEED_BITS = 32
LISTED = 20
"""How many refusals a failing report names in its sentence; its log has all."""


def options_of(params: Mapping[str, Any]) -> RunOptions:
    """Return the trigger form as options of a run; raises BadInput."""
    topics = params.get("topics")
    return RunOptions(
        only=frozenset(topics) if topics else None,
        max_bytes=size_of(params, "max_bytes"),
        max_records=params.get("max_records"),
        max_seconds=seconds_of(params, "max_seconds", RUN_SECONDS),
        take_over=bool(params.get("take_over")),
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


def nothing_left(flow: FlowConfig, run: str) -> bool:
    """Return whether `copy` may end without Spark; Superseded when a newer run has what is left of this one."""
    with MicroRuns(flow) as runs:
        return not runs.unfinished_slices(runs.sealed_plan(run))


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
    topics = params.get("topics")
    (start, since_ms), (end, until_ms) = bound("--from", params.get("from")), bound("--to", params.get("to"))
    mode = params.get("mode") or FULL
    return Wanted(
        topics=frozenset(topics) if topics else None,
        partition=params.get("partition"),
        start=start,
        end=end,
        since_ms=since_ms,
        until_ms=until_ms,
        sample=params.get("sample") if mode == SAMPLE else None,
        seed=secrets.randbits(SEED_BITS),
        compacted=mode == COMPACTED,
        without_ledger=bool(params.get("without_ledger")),
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


def report_and_newer(flow: FlowConfig, run: str) -> tuple[Report, str | None]:
    """Return the report of a run, and the newer run that owns the lane by now, if there is one."""
    with MicroRuns(flow) as runs:
        report = runs.report(run)
        return report, runs.superseded(report.plan)


def complaint(report: Report, newer: str | None, *, translates: bool) -> str | None:
    """Return why the run must not look green, in one sentence.

    None when all that was planned is copied, by this or another run, no group failed, and no difference was found.
    `translates`: the flow's groups are to be translated.
    """
    found = _not_done(report, newer, translates=translates), _of_verification(report, newer)
    return "; ".join(sentence for sentence in found if sentence is not None) or None


def _of_verification(report: Report, newer: str | None) -> str | None:
    if report.verified is None:
        if report.verify_due is VerifyMode.OFF or newer is not None:
            return None
        return "whether what was copied is equal is not in the ledger: look at the task verify"
    wrong = report.verified.complaints
    if not wrong:
        return None
    more = f"; and {len(wrong) - LISTED} more, see above" if len(wrong) > LISTED else ""
    return f"what run {report.plan.run} of {report.plan.flow} copied is not equal: {'; '.join(wrong[:LISTED])}{more}"


def _not_done(report: Report, newer: str | None, *, translates: bool) -> str | None:
    wrong = [refusal.message for refusal in report.refusals]
    wrong += [f"{piece.name} is not copied up to {piece.end}" for piece in report.unfinished]
    groups = [] if report.groups is None else [left.message for left in report.groups.failed]
    if translates and report.groups is None and newer is None and not report.plan.flow_paused:
        groups = ["what became of the groups is not in the ledger: look at the task checkpoint"]
    if not wrong:
        return _of_groups(report, groups) if groups else None
    run = f"run {report.plan.run} of {report.plan.flow}"
    taken = f" (superseded by {newer})" if newer and report.unfinished else ""
    more = f"; and {len(wrong) - LISTED} more, see above" if len(wrong) > LISTED else ""
    also = f"; {len(groups)} of its groups failed as well, see above" if groups else ""
    return f"{len(wrong)} not copied in {run}{taken}: {'; '.join(wrong[:LISTED])}{more}{also}"


def _of_groups(report: Report, wrong: list[str]) -> str:
    more = f"; and {len(wrong) - LISTED} more, see above" if len(wrong) > LISTED else ""
    run = f"run {report.plan.run} of {report.plan.flow}"
    return f"all is copied, but {len(wrong)} not translated in {run}: {'; '.join(wrong[:LISTED])}{more}"
