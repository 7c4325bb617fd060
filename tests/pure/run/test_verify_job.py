"""A comparison as a Spark job: what its tasks found is summed up, and a task that failed is no task without records."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ferry.config.settings import parse_settings
from ferry.errors import FerryError, Retryable, Unreachable
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.spark import job, stage
from ferry.model import Difference, DifferenceKind, Flow, NotCompared, NotComparedKind, TopicPartition, Verified

FILE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
REQUEST = job.VerifyRequest(flow=parse_settings(FILE, "f").flow("a->b"), wanted=Wanted(), say=lambda _: None)
PLACE = TopicPartition("orders", 0)
DIFFERENCE = Difference(
    source=PLACE, target=PLACE, source_range=(3, 4), target_range=(3, 4), kind=DifferenceKind.MISSING
)


class Spark:
    """Spark with tasks in this process."""

    def addTag(self, _: str) -> None: ...  # noqa: N802 - Spark's name

    def interruptTag(self, _: str) -> None: ...  # noqa: N802

    def stop(self) -> None: ...

    def range(self, start: int, end: int, _: int, __: int) -> Any:
        asked = pa.RecordBatch.from_pydict({"task": pa.array(range(start, end), pa.int32())})

        def answered(work: Callable[[Any], Iterator[pa.RecordBatch]], _: str) -> Any:
            rows = [SimpleNamespace(**row) for batch in work([asked]) for row in batch.to_pylist()]
            return SimpleNamespace(collect=lambda: rows)

        return SimpleNamespace(select=lambda _: SimpleNamespace(mapInArrow=answered))


class Verifier:
    """What the driver surveys, a range for each task, and what it sums up."""

    asked = True

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None: ...

    def survey(self) -> Any:
        return SimpleNamespace(spans=[0, 1, 2], records=30, transformed=(), dealt=())

    def spec(self, share: int) -> int:
        return share

    def sum_up(self, _: object, compared: Compared) -> Compared:
        return compared


def verified(outcomes: list[Compared | FerryError], monkeypatch: pytest.MonkeyPatch) -> Compared:
    """Compare in tasks with these outcomes."""

    def compared(number: int) -> Compared:
        outcome = outcomes[number]
        if isinstance(outcome, FerryError):
            raise outcome
        return outcome

    monkeypatch.setattr(job, "Verifier", Verifier)
    monkeypatch.setattr(job, "distributed", lambda spans, _: spans)
    monkeypatch.setattr(job, "F", MagicMock())  # its columns want a JVM
    monkeypatch.setattr(stage, "compare_spec", compared)
    return cast("Compared", job.verify_flow(REQUEST, lambda: cast("SparkSession", Spark())))


def test_what_the_tasks_found_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Compared | FerryError] = [
        Compared(records=10, bytes=7),
        Compared(records=9, bytes=6, differences=[DIFFERENCE]),
        Compared(records=8, bytes=5, more=2),
    ]
    found = verified(outcomes, monkeypatch)
    assert (found.records, found.bytes, found.differences, found.more) == (27, 18, [DIFFERENCE], 2)


@pytest.mark.parametrize("failure", [Unreachable("no answer"), Retryable("a leader moved")])
@pytest.mark.parametrize("number", [0, 2])
def test_a_task_that_failed_is_not_equal(number: int, failure: FerryError, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Compared | FerryError] = [Compared(records=10) for _ in range(3)]
    outcomes[number] = failure
    with pytest.raises(type(failure), match=str(failure)):
        verified(outcomes, monkeypatch)


EQUAL = Verified(flow=Flow.parse("a->b"), lane="live", partitions=1, records=5, bytes=9, seconds=1.0, differences=())
LEFT = NotCompared(source=PLACE, start=0, end=5, why=NotComparedKind.UNREADABLE, message="no answer", asked=True)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (EQUAL, 0),
        (replace(EQUAL, differences=(DIFFERENCE,)), 1),
        (replace(EQUAL, not_compared=(LEFT,)), 1),
    ],
    ids=["equal", "different", "not all compared"],
)
def test_the_exit_code_shows_whether_all_is_equal(
    result: Verified, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("ferry.run.spark.parent_watch.watch", lambda _: None)
    monkeypatch.setattr(job, "verify_flow", lambda *_: result)
    monkeypatch.setattr(job, "publish_verification", lambda *_, **__: None)
    config, out = tmp_path / "flow.properties", tmp_path / "out.json"
    config.write_text(FILE)
    assert job.main(config=config, clients=None, flow="a->b", wanted=Wanted, out=out) == code
    assert json.loads(out.read_text())["equal"] is (code == 0)
