"""A slot with a large chunk on real brokers: what it has sent is shown while nothing of it is committed."""

from __future__ import annotations

import threading

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.history import PastRun
from ferry.ledger.progress import RunProgress
from ferry.ledger.report import RunState
from ferry.reader.watch import FlowWatch
from ferry.run.following import Following
from ferry.run.local import copy_all
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.tiers import ANSWER_S

RATE = 500_000
RECORDS = 4_000
RECORD_BYTES = 1_000


def test_what_is_sent_is_shown_while_nothing_is_committed(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 2)
    messages = numbered(RECORDS, partitions=2, size=RECORD_BYTES)
    send(producer(source_cluster, batch_num_messages=5), topic, messages)
    settings = {"ferry.throttle.bytes.per.second": str(RATE), "ferry.chunk.seconds": "60", "tasks.max": "1"}
    settings |= {"ferry.transaction.timeout.ms": "180000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    logged: list[RunProgress] = []
    on_page: list[RunProgress] = []
    over = threading.Event()

    def look() -> None:
        with FlowWatch(lab.flow, patience_s=ANSWER_S) as watch:
            while not over.wait(0.5):
                past = watch.run("slow")
                if isinstance(past, PastRun) and past.progress is not None:
                    on_page.append(past.progress)
                    again = watch.progress(past.opened)
                    on_page.extend([] if again is None else [again])

    with lab.runs() as runs:
        plan = runs.open_run("slow", local_origin())
        attempt = runs.begin(plan, local_origin())
        spec = runs.slot_task(plan, plan.used_slots[0], attempt)
        page = threading.Thread(target=look)
        page.start()
        try:
            with Following(plan, spec, every_s=0.5, show=logged.append, say=pytest.fail) as following:
                copy_all(runs, plan, attempt)
        finally:
            over.set()
            page.join()
        report = runs.report("slow")
    assert report.state is RunState.SUCCESS
    assert len(report.receipts) == len(plan.slices) == 2, "it was one chunk"
    for shown in (logged, on_page):
        open_ = [one.whole for one in shown if not one.whole.done]
        assert all((one.records, one.bytes, one.unseen) == (0, 0, 0) for one in open_)
        sent = [one.sent for one in open_]
        assert sent == sorted(sent)
        assert len({one for one in sent if 0 < one <= RECORDS}) > 2, "it did not grow"
        assert all(one.passed == one.sent for one in open_)
        each = [(one.sent_bytes or 0) / one.sent for one in open_ if one.sent]
        assert all(RECORD_BYTES / 2 < size < 2 * RECORD_BYTES for size in each)
        rates = [one.bytes_per_second for one in open_ if one.bytes_per_second]
        assert rates
        assert rates[-1] < 2 * RATE
        assert any(one.seconds_left for one in open_)
    following.hear(report.receipts)
    assert (following.now.whole.done, following.now.whole.records, following.now.whole.sent) == (2, RECORDS, 0)
    assert lab.assert_equal() == RECORDS
