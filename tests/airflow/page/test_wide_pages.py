"""What it takes to answer for a flow of 10,000 partitions: memory at most, and bytes of an answer."""

from __future__ import annotations

import tracemalloc

import pytest

from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD
from ferry.model import Refusal, RefusalKind
from ferry.reader.limits import MOST_REFUSALS
from ferry.reader.watch import FlowPoll
from ferry.reader.watcher import MOST_RUNS
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.values import digest
from tests.pure.decide.many import ALL, places

ASKED = (
    *(f"{HERE}/{path}" for path in ("", "topics", "runs", "offsets", "groups", "refusals")),
    *(f"{HERE}/topic/wide-000", f"{HERE}/partition/wide-000/1"),
    *(f"/api{HERE}/topics{query}" for query in ("", "?q=wide-0")),
    *(f"/api{HERE}/series{query}" for query in ("", "?topic=wide-000", "?topic=wide-000&partition=1")),
)


def see(desk: Desk) -> None:
    """All partitions are behind, looked at three times; as many runs as are kept refused as much as is kept."""
    refusals = [
        Refusal(kind=RefusalKind.RETENTION_PASSED, topic=place.topic, partition=place.partition, message=f"{place}")
        for place in list(places())[:MOST_REFUSALS]
    ]
    runs = [digest(f"run-{number}", PastState.PARTIAL, *refusals) for number in range(MOST_RUNS)]
    for look in range(3):
        lags = [lag(place.topic, place.partition, look + number, 1.0) for number, place in enumerate(places())]
        desk.watcher.see(FlowPoll(view=UNREAD, lags=tuple(lags), troubles={}), runs)


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_about_ten_thousand_partitions_is_bounded(desk: Desk, path: str) -> None:
    see(desk)
    desk.page(path)  # templates are compiled once
    tracemalloc.start()
    try:
        answer = desk.page(path)
        peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    print(f"{ALL} partitions: {peak_mb:.1f} MB for {len(answer) / 1e3:.0f} kB")
    assert peak_mb < 10
    assert len(answer) < 500_000
