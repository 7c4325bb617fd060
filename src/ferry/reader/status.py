"""A flow as of its last poll, cut to what one page shows of it; pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol, TypeVar

from ferry.config.flow.parts import RecoveryPoint
from ferry.ledger.history import PastState
from ferry.model import Flow
from ferry.page.cut import A_PAGE, Cut, lines
from ferry.plan.rules.lag import PartitionLag, is_behind
from ferry.reader.charts import Mark, Row, Series, SeriesRun
from ferry.reader.documents import (
    NOT_ENDED,
    SHOWN_REFUSALS,
    Behind,
    RunDigest,
    Short,
    Status,
    TopicRow,
    TopicStory,
)
from ferry.reader.lag_history import Column, points_of
from ferry.reader.lag_point import LagPoint, MeasuredSpans
from ferry.reader.questions import OfSeries, OfTopics
from ferry.reader.snapshot import Snapshot, apart_of
from ferry.reader.spells import outages_of

MOST_POINTS = 400
MOST_LATELY = 24
"""The points of a topic in a list: each is a sum over its partitions, for all topics of a page."""


def status_of(seen: Snapshot, limit: RecoveryPoint, lane: str, *, runs: int = 1_000, mark: str = "") -> Status:
    """Return the state of a flow, with its newest `runs`; `lane` is the flow's own, `limit` its recovery point."""
    held = seen.paused_topics
    apart = apart_of(seen.lags, seen.pauses)
    ends = [run.ended_ms for run in seen.runs if run.state is PastState.SUCCESS]
    return Status(
        mark=mark,
        number=seen.number,
        looked_ms=seen.looked_ms,
        ledger_ms=seen.ledger_ms,
        lag_ms=seen.lag_ms,
        never_ran=seen.never_ran,
        total=seen.total,
        behind=behind_of([lag for parts in seen.lags.values() for lag in parts], limit, frozenset(held)),
        topics=len(seen.topics),
        runs=tuple(in_short(run) for run in seen.runs[:runs]),
        runs_read=len(seen.runs),
        known_runs=seen.known_runs,
        succeeded_ms=max(ends, default=None),
        other_lanes=sum(name != lane for name in seen.lanes),
        pause=seen.pauses.get(""),
        paused_topics=len(held),
        first_paused=seen.pauses[held[0]] if held else None,
        active_lag=apart[0] if apart else None,
        paused_lag=apart[1] if apart else None,
        moved=seen.moved,
        troubles=seen.troubles,
        hindrances=seen.hindrances,
    )


def in_short(run: RunDigest) -> RunDigest:
    """Return a run as lists and the overview show it."""
    return replace(run, refusals=run.refusals[:SHOWN_REFUSALS], gaps=(), notes=(), topics={})


def behind_of(lags: Sequence[PartitionLag], limit: RecoveryPoint, held: Container[str] = frozenset()) -> Behind | None:
    """Return the partitions beyond a recovery point; None if there are none, or there is no recovery point.

    `held` are the topics that are paused. `is_behind` decides for each partition, as it does for alerts, readiness and
    `ferry lag`: the limit is of each partition.
    """
    behind = [lag for lag in lags if is_behind(lag, max_records=limit.records, max_seconds=limit.seconds)]
    if not behind:
        return None
    known = [lag for lag in behind if lag.records is not None]
    worst = max(known, key=lambda lag: (lag.seconds is None, lag.seconds or 0, lag.records or 0), default=None)
    return Behind(
        count=len(behind),
        partitions=len(lags),
        unknown=len(behind) - len(known),
        worst=worst,
        paused=sum(lag.source.topic in held for lag in behind),
    )


def _worst(row: TopicRow) -> tuple[float, int, str]:
    unknown = float("inf") if row.total.unknown else 0.0
    return -(unknown or row.total.seconds or 0.0), -row.total.records, row.topic


SORTS = {
    "topic": lambda row: row.topic,
    "records": lambda row: (-row.total.records, row.topic),
    "bytes": lambda row: (-row.total.bytes, row.topic),
    "seconds": _worst,
    "partitions": lambda row: (-row.total.partitions, row.topic),
}


def topics_of(seen: Snapshot, asked: OfTopics) -> Cut[TopicRow]:
    """Return a page of the topics."""
    wanted = asked.q.strip().lower()
    named = [row for row in seen.topics if wanted in (row.target if asked.copies else row.topic).lower()]
    rows = [row for row in named if row.paused or not asked.paused]
    if asked.copies:
        rows = sorted({row.target: row for row in rows if row.target}.values(), key=lambda row: row.target)
    else:
        rows.sort(key=SORTS.get(asked.sort, _worst))
    cut = Cut.of(rows, asked.page, min(max(1, asked.size), A_PAGE))
    looks = MeasuredSpans.of(seen.history)
    few = [column for part in spread(seen.columns, looks, MOST_LATELY) for column in part]
    return lines(cut, lambda row: replace(row, lately=lately_of(few, looks, row.topic)))


def lately_of(columns: Sequence[Column], looks: MeasuredSpans, topic: str) -> tuple[Short | None, ...]:
    """Return a topic's lag in records over time, oldest first; None separates two spans."""
    points: list[Short | None] = []
    before = None
    for point in points_of(columns, topic, None):
        segment = looks.number(point.at_ms)
        points += [None] if points and segment != before else []
        points.append((point.at_ms, point.records))
        before = segment
    return tuple(points)


def topic_of(seen: Snapshot, topic: str, page: int) -> TopicStory:
    """Return a topic, and a page of its partitions."""
    row = next((row for row in seen.topics if row.topic == topic), None)
    parts: Sequence[PartitionLag] = seen.lags.get(topic, ())
    return TopicStory(row=row, parts=Cut.of(parts, page))


def series_of(seen: Snapshot, asked: OfSeries, flow: Flow) -> Series:
    """Return figures over time: lag, spells and runs. The runs of a partition are those of its topic."""
    every = seen.history if asked.topic is None else tuple(points_of(seen.columns, asked.topic, asked.partition))
    points = [point for point in every if point.at_ms >= asked.since_ms]
    looks = MeasuredSpans.of(seen.history)
    runs = []
    for run in reversed(seen.runs):
        part = run.topics.get(asked.topic) if asked.topic is not None else None
        is_open = run == seen.last_run and run.state in NOT_ENDED  # it may have written nothing for long
        if (run.ended_ms < asked.since_ms and not is_open) or (asked.topic is not None and part is None):
            continue
        of = part or run
        runs.append(
            SeriesRun(
                run=run.run,
                state=run.state,
                started_ms=run.started_ms,
                ended_ms=run.ended_ms,
                seconds=run.seconds,
                due=of.due,
                records=of.records,
                bytes=of.bytes,
                latency_ms=of.latency_ms,
                refused=run.refused,
                uncounted=of.uncounted,
                measured=looks.near(run.started_ms, run.ended_ms),
            )
        )
    polled = [one for one in seen.spells if one.mark is Mark.OUTAGE]
    left = ((alias, run.ended_ms) for run in seen.runs for alias in run.silent)
    outages = outages_of(polled, asked.missed, answered_of(seen, flow), left)
    pauses = (one for one in seen.spells if one.mark is Mark.PAUSE)
    spells = [
        one
        for one in (*outages, *(one for one in pauses if asked.topic is None or one.of in ("", asked.topic)))
        if one.until_ms is None or max(one.until_ms, one.before_ms or 0) >= asked.since_ms
    ]
    spells.sort(key=lambda one: one.since_ms)
    return Series(number=seen.number, lag=tuple(rows_of(points, looks)), runs=tuple(runs), spells=tuple(spells))


def answered_of(seen: Snapshot, flow: Flow) -> Mapping[str, Sequence[int]]:
    """Return by cluster the times (epoch ms) at which it is known to have answered: polls, and runs in the ledger.

    A run has asked the source before its record is written, and has read it before its last receipt.
    """
    both = [point.at_ms for point in seen.history]
    both += [at_ms for run in seen.runs for at_ms in (run.started_ms, run.ended_ms)]
    both += [seen.lag_ms] if seen.lag_ms else []
    return {flow.source: both, flow.target: [*both, *([seen.ledger_ms] if seen.ledger_ms else [])]}


def rows_of(points: Sequence[LagPoint], looks: MeasuredSpans, most: int = MOST_POINTS) -> list[Row | None]:
    """Return as many points as a chart can show, oldest first, with the last one of each segment.

    None separates two spans.
    """
    rows: list[Row | None] = []
    for part in spread(points, looks, most):
        rows += [None] if rows else []
        rows += [
            (one.at_ms, one.records, one.bytes, one.seconds, one.held.records, one.held.bytes, one.held.seconds)
            for one in part
        ]
    return rows


class Timed(Protocol):
    """What was measured at a time (epoch ms)."""

    @property
    def at_ms(self) -> int:
        """When it was measured, in milliseconds since the epoch."""


T = TypeVar("T", bound=Timed)


def spread(points: Sequence[T], looks: MeasuredSpans, most: int) -> list[list[T]]:
    """Return `most` points or a few more, spread over all of them, oldest first, with the last one of each segment."""
    step = max(1, -(-len(points) // most))
    segments = groupby(points, key=lambda point: looks.number(point.at_ms))
    return [list(part)[::-1][::step][::-1] for _, part in segments]
