"""A plan and a run's report as text, when the run has ended or when the ledger is read later."""

from __future__ import annotations

from ferry.cli.output import echo, in_bytes, print_table
from ferry.features.groups.rules.sentences import group_sentences
from ferry.ledger.report import (
    UNKNOWN,
    Report,
    as_known,
    missing_sentence,
    pieces_sentence,
    throttled_sentence,
    unfinished_sentence,
    verified_sentences,
)
from ferry.model import Plan
from ferry.plan.rules.change_sentences import differences, proposals, summary
from ferry.words import count_of, size


def show_plan(plan: Plan) -> None:
    """Print a plan that was not written."""
    print_table(
        ["topic", "partition", "start", "end", "offsets", "bytes (about)", "target", "task"],
        (
            [
                piece.source.topic,
                piece.source.partition,
                piece.start,
                piece.end,
                piece.offsets,
                in_bytes(piece.bytes_estimate),
                piece.target,
                piece.slot,
            ]
            for piece in plan.kept
        ),
        right=["partition", "start", "end", "offsets", "bytes (about)", "task"],
        omit=True,
    )
    if plan.dealt:
        print_table(
            ["topic", "target", "of", "offsets", "task"],
            ([unit.source.topic, unit.target, unit.partitions, unit.offsets, unit.slot] for unit in plan.dealt),
            right=["of", "offsets", "task"],
        )
    for line in (*proposals(plan.changes), *differences(plan.drift)):
        echo(line)
    for acl in plan.acls:
        echo(f"would {acl.kind} ACL: {acl.binding}")
    for name in plan.held_back:
        echo(f"paused: {name}")
    for note in plan.notes:
        echo(f"note: {note}")
    for refusal in plan.refusals:
        echo(f"refused: {refusal.message} [{refusal.kind}]")
    for left in plan.not_copied:
        echo(f"not copied: {left.message} [{left.what}]")
    total = sum(piece.bytes_estimate for piece in plan.kept)
    units = f"{count_of(len(plan.dealt), 'unit')}, " if plan.dealt else ""
    offsets = sum(piece.offsets for piece in plan.kept)
    echo(
        f"{plan.flow}: {count_of(len(plan.kept), 'slice')}, {count_of(offsets, 'offset')}, about {size(total)}, "
        f"{units}{count_of(len(plan.used_slots), 'task')}, {count_of(len(plan.refusals), 'refusal')}"
    )


def show_report(report: Report, state: str | None = None) -> None:
    """Print a run's report: a line for each note, refusal and change, one for the run; `state` if it is not over."""
    for acl in report.plan.acls:
        echo(f"ACL {acl.kind}d: {acl.binding}")
    for note in report.notes:
        echo(f"note: {note}")
    for line in differences(report.plan.drift):
        echo(line)
    for line in summary(report.plan.changes):
        echo(line)
    for name in report.plan.held_back:
        echo(f"paused: {name}")
    # Once, if all target partitions of a topic wait for the same.
    for message, kind in dict.fromkeys((refusal.message, refusal.kind) for refusal in report.refusals):
        echo(f"refused: {message} [{kind}]")
    for piece in (*report.unfinished, *report.later):
        echo(f"unfinished: {unfinished_sentence(report, piece)}")
    if report.left:
        what = "slice or unit" if report.plan.dealt else "slice"
        echo(f"the run's time was over: the next run copies the rest of {count_of(len(report.left), what)}")
    if report.transcoded:
        echo(f"transcoded, as they could not be copied as bytes: {report.transcoded} of {report.batches} batches")
    found = group_sentences(report.groups) if report.groups is not None and not report.groups.is_empty else ()
    verified = verified_sentences(report.verified)
    for sentence in (*found, *verified, missing_sentence(report.missing), throttled_sentence(report.throttled)):
        if sentence is not None:
            echo(sentence)
    taken = f", superseded by run {report.superseded}" if report.superseded else ""
    paused = ", the flow was paused" if report.plan.flow_paused else ""
    copied = f"{count_of(report.records, 'record')}, {size(report.bytes)} in {report.seconds:.1f} s"
    echo(
        f"run {report.plan.run} of {report.plan.flow}: {state or report.state}{taken}{paused}; "
        f"{pieces_sentence(report.plan)}, {as_known(copied, report) or UNKNOWN}"
    )
