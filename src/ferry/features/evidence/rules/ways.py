"""Both ways of a full drill, each apart: no figure of one way is summed up with the other's. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceReport, Goal, GroupMoved, Loss, PassedOver, Sample, Way

Row = TypeVar("Row", Loss, GroupMoved, Sample, PassedOver)
"""What a report has of one way: it has the flow (`via`), where that is not the report's own."""

MIXED = "the report does not keep both ways apart"
"""Why figures of a full drill are not known, though the report has what they would be counted of."""


def ways_of(report: EvidenceReport) -> tuple[EvidenceReport, ...]:
    """Return each way of a full drill as the report of a switch with what was measured of it; no other is divided.

    It has the drill's steps, goals, times and sentences, which name their way themselves. A report that
    mixes both ways stays one: nothing shows which way a figure is of.
    """
    if not report.ways:
        return (report,)
    return tuple(
        replace(
            report,
            kind=EvidenceKind.SWITCHOVER if way.flow == report.flow else EvidenceKind.FAILBACK,
            flow=way.flow,
            losses=_of(report.losses, way.flow, report.flow),
            losses_at_ms=way.losses_at_ms,
            ways=(),
            passed_over=None if report.passed_over is None else _of(report.passed_over, way.flow, report.flow),
            groups=_of(report.groups, way.flow, report.flow),
            samples=_of(report.samples, way.flow, report.flow),
        )
        for way in report.ways
    )


def joined(whole: EvidenceReport, ways: Sequence[EvidenceReport]) -> EvidenceReport:
    """Return the report of a full drill with what the reports of its switches have of each way; `ways_of` divides it.

    What was skipped is not known (None) if that is so of one way, or if no way has stopped its flow.
    """
    own, stopped = whole.flow, [way for way in ways if way.losses_at_ms]
    passed = [() if way.passed_over is None else _with(way.passed_over, way.flow, own) for way in stopped]
    is_known = bool(stopped) and all(way.passed_over is not None for way in stopped)
    return replace(
        whole,
        losses=tuple(one for way in ways for one in _with(way.losses, way.flow, own)),
        losses_at_ms=0,
        ways=tuple(Way(flow=way.flow, losses_at_ms=way.losses_at_ms) for way in ways),
        passed_over=tuple(chain.from_iterable(passed)) if is_known else None,
        groups=tuple(one for way in ways for one in _with(way.groups, way.flow, own)),
        samples=tuple(one for way in ways for one in _with(way.samples, way.flow, own)),
    )


def goals_of_ways(ways: Iterable[EvidenceReport]) -> tuple[Goal, ...]:
    """Return the goals of each way, with the flow that they are about."""
    return tuple(
        replace(goal, of=f"{way.flow}, {goal.of}" if goal.of else str(way.flow)) for way in ways for goal in way.goals
    )


def on_the_way(way: EvidenceReport, sentences: Iterable[str]) -> tuple[str, ...]:
    """Return sentences about one way, which say that they are about it."""
    return tuple(f"on the way to {way.flow.target}: {sentence}" for sentence in sentences)


def longest(times: Sequence[float | None]) -> float | None:
    """Return the longer time of both ways; None if one is not known."""
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _with(rows: Iterable[Row], way: Flow, own: Flow) -> Iterable[Row]:
    return rows if way == own else (replace(one, via=str(way)) for one in rows)


def _of(rows: Iterable[Row], way: Flow, own: Flow) -> tuple[Row, ...]:
    return tuple(replace(one, via="") for one in rows if (one.via or str(own)) == str(way))
