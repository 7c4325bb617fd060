"""What pages are asked and shown in tests: a run in short, and answers that the flow's thread would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.ledger.progress import LogEnd, RunProgress, progress_before, progress_of, with_pace
from ferry.ledger.run_codec import run_record
from ferry.model import Fate, LedgerRecord, OpenedRun, Refusal, TopicPartition
from ferry.reader.documents import RunDigest, TopicRun
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import Desk
from tests.pure.decide.values import PLAN, piece

PAGES = (
    *("/", "/topics", "/runs", "/refusals", "/offsets", "/groups", "/backfills", "/reports"),
    *("/run/a", "/partition/orders/0", "/receipt/orders/0/0"),
)
ORDERS = TopicPartition(topic="orders", partition=0)
COPY = TopicPartition(topic="primary.orders", partition=0)
NINE = 1_790_000_000_000


SLICES = tuple(
    replace(piece("orders", number, end=1_000, slot=number), bytes_estimate=1_000_000) for number in range(3)
)
AT_WORK = replace(PLAN, slices=SLICES, slots=3)
"""A run of three slots, of a slice each."""
SENT = {SLICES[0].target: LogEnd(0, 750), SLICES[1].target: LogEnd(0, 450), SLICES[2].target: LogEnd(0, 0)}


def progress(ends: Mapping[TopicPartition, LogEnd]) -> RunProgress:
    """Of a run that has committed nothing, ten seconds after its beginning."""
    return with_pace(progress_before(AT_WORK, {}), progress_of(AT_WORK, {}, ends), 10)


def view_of(*opened: OpenedRun, end: int = 0) -> LedgerView:
    """A view of a ledger that has the records of these runs, and nothing else."""
    records = (run_record(one.record) for one in opened)
    kept = {
        record.key.decode(): LedgerRecord(
            offset=one.generation, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=-1
        )
        for one, record in zip(opened, records, strict=True)
    }
    return LedgerView(end=end, by_key=kept, runs=opened, open=())


def digest(run: str, state: PastState = PastState.SUCCESS, *refusals: Refusal) -> RunDigest:
    """A run of four seconds that copied 900 records of one topic."""
    return RunDigest(
        run=run,
        generation=7,
        state=state,
        started_ms=1_790_000_000_000,
        ended_ms=1_790_000_004_000,
        slices=2,
        due=1_000,
        records=900,
        bytes=8_000_000,
        latency_ms=1_500,
        refused=len(refusals),
        refusals=refusals,
        kinds={refusal.kind.value: 1 for refusal in refusals},
        gaps=(),
        notes=(),
        topics={"orders": TopicRun(due=1_000, records=900, bytes=8_000_000)},
        who="ferry__primary__backup",
    )


def answered(desk: Desk, key: tuple[object, ...], got: object) -> None:
    """As if the flow's thread had this answer to a question of a page."""
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    desk.watcher.has(key, got)
