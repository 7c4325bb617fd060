"""A run's report as people read it: when it has ended, and looked up in the ledger later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.cli.output import size
from ferry.words import count_of

if TYPE_CHECKING:  # the command line starts light
    from ferry.ledger.report import Report


def show_report(report: Report, state: str | None = None) -> None:
    """A line for each thing that is to be known of a run, and one of the run itself; `state` where it is not over."""
    # Imported here: the command line starts light.
    from ferry.features.groups.rules.sentences import group_sentences
    from ferry.ledger.report import (
        missing_sentence,
        pieces_sentence,
        throttled_sentence,
        unfinished_sentence,
        verified_sentences,
    )
    from ferry.plan.rules.change_sentences import differences, summary

    for acl in report.plan.acls:
        print(f"ACL {acl.kind}d: {acl.binding}")
    for note in report.notes:
        print(f"note: {note}")
    for line in differences(report.plan.drift):
        print(line)
    for line in summary(report.plan.changes):
        print(line)
    for topic in report.plan.paused:
        print(f"paused: {topic}")
    # Once, where all target partitions of a topic wait for the same.
    for message, kind in dict.fromkeys((refusal.message, refusal.kind) for refusal in report.refusals):
        print(f"refused: {message} [{kind}]")
    for piece in report.unfinished:
        print(f"unfinished: {unfinished_sentence(report, piece)}")
    if report.left:
        what = "slice or unit" if report.plan.units else "slice"
        print(f"the run's time was over: the next run copies the rest of {count_of(len(report.left), what)}")
    if report.transcoded:
        print(f"transcoded, as they could not be copied as bytes: {report.transcoded} of {report.batches} batches")
    found = group_sentences(report.groups) if report.groups is not None and not report.groups.is_empty else ()
    verified = verified_sentences(report.verified)
    for sentence in (*found, *verified, missing_sentence(report.missing), throttled_sentence(report.throttled)):
        if sentence is not None:
            print(sentence)
    taken = f", superseded by run {report.superseded}" if report.superseded else ""
    print(
        f"run {report.plan.run} of {report.plan.flow}: {state or report.state}{taken}; "
        f"{pieces_sentence(report.plan)}, {count_of(report.records, 'record')}, {size(report.bytes)} in "
        f"{report.seconds:.1f} s"
    )
