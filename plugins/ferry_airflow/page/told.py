"""What a run refused, left undone and did besides, one sentence each with its word; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ferry.ledger.report import Report
from ferry.model import Refusal
from ferry.words import count_of
from ferry_airflow.page.run_words import Mood
from ferry_airflow.page.snapshot import RunDigest, left_undone


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A word in its colour, and a sentence."""

    mood: Mood
    word: str
    text: str


def not_done(report: Report) -> list[Line]:
    """What was not done: refusals, what is unfinished, groups that failed, and what does not compare equal."""
    lines = [Line(mood=Mood.BAD, word=one.kind.value, text=one.message) for one in report.refusals]
    return lines + [
        Line(mood=Mood.WARN if word == "unfinished" else Mood.BAD, word=word, text=text)
        for word, text in left_undone(report)
    ]


def done_besides(report: Report) -> list[Line]:
    """What else it did: gaps, changed topics, pauses that it met, notes."""
    plan = report.plan
    lines = [
        Line(
            mood=Mood.WARN,
            word=one.how.value,
            text=f"{one.source}, source offsets [{one.start}, {one.end}): {one.reason or one.why.value}",
        )
        for one in plan.gaps
    ]
    lines += [
        Line(mood=Mood.GOOD, word=one.kind.value, text=f"topic {one.topic}, {count_of(one.partitions, 'partition')}")
        for one in plan.changes
    ]
    lines += [
        Line(mood=Mood.HELD, word="paused", text=f"{f'topic {name}' if name else 'the whole flow'} was paused")
        for name in plan.paused
    ]
    return lines + [Line(mood=Mood.UNKNOWN, word="note", text=note) for note in report.notes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """What runs refused of a topic or partition for one reason: the newest sentence, and how long it has gone on."""

    refusal: Refusal
    run: str
    """The newest run that refused it."""
    at_ms: int
    since_ms: int
    """When the oldest one that is known was opened."""
    runs: int
    still: bool
    """Whether the newest run of all refused it."""


def recurring(runs: Sequence[RunDigest]) -> list[Recurring]:
    """What some runs refused, those newest first; what is refused still comes first, then what was last refused."""
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
