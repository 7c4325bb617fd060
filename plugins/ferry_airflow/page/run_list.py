"""The list of a flow's runs: those of the ledger and of Airflow as one, filtered, and idle ones folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ferry.reader.documents import PastState, RunDigest
from ferry_airflow.page.airflow_side import DagRunRow
from ferry_airflow.page.page_state import OpenFlow
from ferry_airflow.page.retry_words import Retry
from ferry_airflow.page.run_words import RETRYING, RUNNING, Badge, Condition, beside_badge, dag_badge


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherRun:
    """A run as in the ledger, and as in Airflow."""

    name: str
    at_ms: int
    digest: RunDigest | None
    dag_run: DagRunRow | None
    badges: tuple[Badge, ...]
    why: str = ""
    """Why a task of it failed."""

    @property
    def is_running(self) -> bool:
        """Whether it is active, by the ledger and by Airflow."""
        return RUNNING in self.badges

    @property
    def retry(self) -> Retry | None:
        """The task of it that Airflow tries again."""
        return None if self.dag_run is None else self.dag_run.retry

    @property
    def is_idle(self) -> bool:
        """Whether it ended well and had nothing to copy, by the ledger and by Airflow."""
        return self.digest is not None and self.digest.idle and len(self.badges) == 1

    @property
    def has_copied(self) -> bool:
        """Whether it copied something; a run whose receipts are forgotten did, too."""
        return self.digest is not None and bool(self.digest.records or self.digest.uncounted)

    @property
    def is_failed(self) -> bool:
        """Whether it failed in Airflow."""
        return self.dag_run is not None and self.dag_run.state == "failed"


Fold = tuple[EitherRun, ...]
"""A row of the list: one run, or idle runs that follow each other, newest first."""


def merged(open_flow: OpenFlow) -> list[EitherRun]:
    """Return runs of the ledger and of Airflow as one list, newest first."""
    ours = {run.run: run for run in open_flow.seen.runs}
    theirs = {run.run: run for run in open_flow.dag.runs}
    rows = []
    for name in {**theirs, **ours}:
        digest, dag_run = ours.get(name), theirs.get(name)
        begun = dag_run and (dag_run.started or dag_run.queued)
        at_ms = digest.started_ms if digest else int(begun.timestamp() * 1000) if begun else open_flow.seen.looked_ms
        badges = _badges((digest.state, open_flow.badge(digest)) if digest else None, dag_run)
        rows.append(EitherRun(name=name, at_ms=at_ms, digest=digest, dag_run=dag_run, badges=badges))
    return sorted(rows, key=lambda row: -row.at_ms)


def _badges(ours: tuple[PastState, Badge] | None, dag_run: DagRunRow | None) -> tuple[Badge, ...]:
    """Return the badges of a run, from the ledger, if it has the run, and from Airflow."""
    again = (RETRYING,) if dag_run and dag_run.retry else ()
    if ours is None:
        return (dag_badge(dag_run.state), *again) if dag_run else ()
    besides = beside_badge(ours[0], dag_run.state if dag_run else None)
    return (ours[1], besides) if besides else (ours[1], *again)


def chosen_runs(rows: Sequence[EitherRun], *, state: str, copied: bool, since_ms: int) -> list[EitherRun]:
    """Return the runs that have a word for their state (empty: any), began since then, and `copied` something."""
    return [
        row
        for row in rows
        if row.at_ms >= since_ms
        and (row.has_copied or not copied)
        and (not state or any(badge.word == state for badge in row.badges))
    ]


def words_of(rows: Sequence[EitherRun]) -> list[tuple[Condition, str, int]]:
    """Return for each word of a state how many runs have it, the most frequent first."""
    found = Counter((badge.condition, badge.word) for row in rows for badge in dict.fromkeys(row.badges))
    return [(condition, word, count) for (condition, word), count in found.most_common()]


def folded(rows: Sequence[EitherRun]) -> list[Fold]:
    """Return the rows of the list: idle runs next to each other are one row."""
    found: list[Fold] = []
    for idle, group in groupby(rows, key=lambda row: row.is_idle):
        same = tuple(group)
        found += [same] if idle else one_each(same)
    return found


def one_each(rows: Sequence[EitherRun]) -> list[Fold]:
    """Return rows of one run each."""
    return [(row,) for row in rows]
