"""What a run refused, left undone and did in addition to copying, one sentence each with its word; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferry.ledger.report import Report
from ferry.reader.documents import Condition, Line, Recurring, RunDigest
from ferry.reader.snapshot import left_undone
from ferry.words import count_of


def not_done(report: Report, *, at_work: bool = False) -> list[Line]:
    """Return what was not done: refusals, what is unfinished, groups that failed, and what does not compare equal.

    Of an active run (`at_work`) nothing is unfinished.
    """
    lines = [Line(condition=Condition.BAD, word=one.kind.value, text=one.message) for one in report.refusals]
    return lines + [
        Line(condition=Condition.WARN if word == "unfinished" else Condition.BAD, word=word, text=text)
        for word, text in left_undone(report)
        if not at_work or word != "unfinished"
    ]


def done_besides(report: Report) -> list[Line]:
    """Return what else the run did: gaps, changed topics, pauses that it met, notes."""
    plan = report.plan
    lines = [
        Line(
            condition=Condition.WARN,
            word=one.how.value,
            text=f"{one.source}, source offsets [{one.start}, {one.end}): {one.reason or one.why.value}",
        )
        for one in plan.gaps
    ]
    lines += [
        Line(
            condition=Condition.GOOD,
            word=one.kind.value,
            text=f"topic {one.topic}, {count_of(one.partitions, 'partition')}",
        )
        for one in plan.changes
    ]
    lines += [
        Line(
            condition=Condition.HELD,
            word="paused",
            text=f"{name if plan.flow_paused else f'topic {name}'} was paused",
        )
        for name in plan.held_back
    ]
    return lines + [Line(condition=Condition.UNKNOWN, word="note", text=note) for note in report.notes]


def recurring(runs: Sequence[RunDigest]) -> list[Recurring]:
    """Return what runs (newest first) refused; what the newest run refused comes first, then the latest others."""
    found: dict[tuple[str, str | None, int | None], Recurring] = {}
    for run in runs:
        own = {(one.kind.value, one.topic, one.partition): one for one in run.refusals}
        for key, one in own.items():
            known = found.get(key)
            found[key] = (
                replace(known, since_ms=run.started_ms, runs=known.runs + 1)
                if known
                else Recurring(
                    refusal=one,
                    run=run.run,
                    at_ms=run.started_ms,
                    since_ms=run.started_ms,
                    runs=1,
                    still=run is runs[0],
                )
            )
    return sorted(found.values(), key=lambda one: (not one.still, -one.at_ms))
