"""Slots that Spark copies: which are tried again, what their tries come to, and how tasks share a rate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ferry.config.client_options import ConnectionOptions
from ferry.copy.kafka_slot import CopyLimits
from ferry.copy.rate_limiter import RateLimit
from ferry.copy.slot_end import TRIES, SlotEnd
from ferry.copy.task import SlotTask
from ferry.errors import FerryError, OutcomeUnknown, Refused, Retryable, Superseded, Unreachable
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.model import Origin, Receipt, RefusalKind
from ferry.protocol.slot import SlotProgress, SlotRef
from ferry.run.spark import slots, stage
from tests.pure.decide.values import RECEIPT, refusal
from tests.pure.protocol.world import FLOW, LANE

Try = Callable[[SlotProgress], None]
"""What a slot does in one try."""


class Spark:
    """Spark with tasks in this process: each try of a slot does what `acts` has for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, acts: Mapping[int, list[Try]], at_once: int = 8) -> None:
        self.jobs: list[tuple[list[int], int]] = []
        """The slots of each job, and over how many tasks they are."""
        self.specs: list[SlotTask] = []
        self.said: list[str] = []
        self._acts: dict[int, Iterator[Try]] = {slot: iter(some) for slot, some in acts.items()}
        monkeypatch.setattr(slots, "slot_frame", self.frame)
        monkeypatch.setattr(slots, "at_once", lambda _: at_once)
        monkeypatch.setattr(stage, "run_slot", self.run)

    def frame(self, _: object, found: Collection[int], tasks: int) -> Any:
        """The rows of `session.slot_frame`, and what becomes of them in a stage."""
        self.jobs.append((list(found), tasks))
        asked = pa.RecordBatch.from_pydict({"slot": pa.array(list(found), pa.int32())})

        def answered(work: Callable[[Any], Iterator[pa.RecordBatch]], _: str) -> Any:
            rows = [SimpleNamespace(**row) for batch in work([asked]) for row in batch.to_pylist()]
            return SimpleNamespace(collect=lambda: rows)

        return SimpleNamespace(mapInArrow=answered)

    def run(self, spec: SlotTask, _: object, __: object, result: SlotProgress, ___: object) -> None:
        self.specs.append(spec)
        next(self._acts[spec.ref.slot])(result)

    def collect(self, rate: RateLimit | None = None) -> dict[int, SlotEnd]:
        """Copy the slots."""
        specs = {slot: task(slot, rate) for slot in self._acts}
        ends = slots.collect_slots(cast("SparkSession", self), specs, self.said.append)
        assert [end.slot for end in ends] == sorted(self._acts), "each slot has one end"
        return {end.slot: end for end in ends}


def task(slot: int, rate: RateLimit | None) -> SlotTask:
    nowhere = cast("ConnectionOptions", {})
    limits = CopyLimits(
        memory_bytes=1, chunk_bytes=1, chunk_seconds=1, transaction_timeout_ms=1, isolation=READ_COMMITTED, rate=rate
    )
    ref = SlotRef(flow=FLOW, lane=LANE, run="r", generation=3, attempt=1, slot=slot)
    return SlotTask(ref=ref, source=nowhere, target=nowhere, limits=limits, origin=Origin(), began_ms=0, patience_s=1)


def copies(*receipts: Receipt, fails: FerryError | None = None) -> Try:
    """A try that copies these, and fails then if there is an error."""

    def act(result: SlotProgress) -> None:
        result.receipts += receipts
        if fails is not None:
            raise fails

    return act


FIRST, SECOND = RECEIPT, replace(RECEIPT, start=RECEIPT.end, end=RECEIPT.end + 10)


@pytest.mark.parametrize("failure", [Retryable("a leader moved"), Unreachable("no answer")])
def test_a_slot_that_failed_is_tried_again_alone_and_both_tries_count(
    failure: FerryError, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Spark(
        monkeypatch, {0: [copies(FIRST)], 4: [copies(FIRST, fails=failure), copies(SECOND)], 7: [copies(SECOND)]}
    )
    ends = spark.collect()
    assert spark.jobs == [([0, 4, 7], 3), ([4], 1)], "what has ended is not begun again"
    assert {slot: end.receipts for slot, end in ends.items()} == {0: (FIRST,), 4: (FIRST, SECOND), 7: (SECOND,)}
    assert [end.failure for end in ends.values()] == [None, None, None]
    assert [str(failure) in said for said in spark.said] == [True]


@pytest.mark.parametrize(
    "failure", [Refused("no"), Superseded("by run r2"), OutcomeUnknown("not known")], ids=lambda one: type(one).__name__
)
def test_a_failure_that_another_try_meets_again_is_the_end(
    failure: FerryError, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Spark(monkeypatch, {0: [copies(FIRST, fails=failure)], 1: [copies(SECOND)]})
    ends = spark.collect()
    assert len(spark.jobs) == 1
    assert (type(ends[0].failure), ends[0].receipts) == (type(failure), (FIRST,))
    assert (ends[1].failure, ends[1].receipts) == (None, (SECOND,))


def test_a_slot_that_fails_each_time_is_a_failure_with_what_it_copied_and_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = replace(refusal("orders", 0), kind=RefusalKind.TOO_LARGE)

    def refuses(result: SlotProgress) -> None:
        result.refusals[FIRST.source] = large
        copies(FIRST, fails=Retryable("later"))(result)

    again = [copies(fails=Retryable("again")) for _ in range(TRIES)]
    spark = Spark(monkeypatch, {2: [refuses, *again]})
    end = spark.collect()[2]
    assert len(spark.jobs) == TRIES
    assert (str(end.failure), end.receipts, end.refusals) == ("again", (FIRST,), (large,))


@pytest.mark.parametrize(("cores", "tasks"), [(2, 2), (8, 3)])
def test_tasks_that_share_a_rate_are_no_more_than_run_at_once(
    cores: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or they would read faster than the limit, or leave a part of it unused."""
    acts = {0: [copies()], 1: [copies(fails=Retryable("later")), copies()], 2: [copies()]}
    spark = Spark(monkeypatch, acts, at_once=cores)
    spark.collect(RateLimit(bytes_per_second=900, at_once=100))
    assert spark.jobs == [([0, 1, 2], tasks), ([1], 1)]
    assert {spec.limits.rate for spec in spark.specs} == {RateLimit(bytes_per_second=900, at_once=tasks)}


def test_tasks_without_a_rate_are_as_many_as_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(monkeypatch, {slot: [copies()] for slot in range(3)}, at_once=1)
    spark.collect()
    assert spark.jobs == [([0, 1, 2], 3)]
