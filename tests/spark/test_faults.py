"""What is told of a transform that breaks off: the record, the kind of error and its place, and no value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException, PythonException

from ferry.decide.records.locating import Ranges
from ferry.errors import Refused, Unreachable
from ferry.model import Piece, Slice, TopicPartition, Unit
from ferry.spark.records.failures import cause_of, told_by_ferry
from ferry.spark.records.faults import fault_of

TRACEBACK = """Traceback (most recent call last):
  File "/flows/company.py", line 22, in known
    raise KeyError(value)
KeyError: 'a secret'
"""


class Raised(PythonException):
    """What the driver has of a task that raised; PySpark's own class takes it from the JVM."""

    def __init__(self, traceback: str) -> None:
        super().__init__("An exception was thrown from the Python worker")
        self.traceback = traceback

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return {"msg": "x", "traceback": self.traceback}


def piece(partition: int) -> Slice:
    return Slice(
        source=TopicPartition("t", partition),
        target=TopicPartition("a.t", partition),
        start=0,
        end=100,
        slot=0,
        bytes_estimate=0,
        first=True,
    )


UNIT = Unit(
    source_topic="u",
    target=TopicPartition("a.u", 0),
    starts=(0, 0),
    ends=(50, 50),
    slot=0,
    era=1,
    partitions=2,
    digest="d",
)


def failing(place: TopicPartition, offset: int) -> Callable[[Ranges], None]:
    def attempt(ranges: Ranges) -> None:
        start, end = ranges.get(place, (0, 0))
        if start <= offset < end:
            raise Raised(TRACEBACK)

    return attempt


@pytest.mark.parametrize(("topic", "offset"), [("t", 47), ("t", 0), ("u", 49)])
def test_the_record_is_told_with_the_transform_the_cause_and_the_remedy(topic: str, offset: int) -> None:
    pieces: list[Piece] = [piece(0), piece(1), UNIT]
    told = fault_of("masked", pieces, failing(TopicPartition(topic, 1), offset))
    assert told == (
        f"ferry.transform.masked breaks off at the record at offset {offset} of {topic}-1: KeyError in known "
        "(/flows/company.py, line 22); correct it, or let it leave such records out: in SQL by WHERE, or by a function "
        "that answers null, as try_cast"
    )


def test_what_does_not_break_off_or_not_again_is_not_told() -> None:
    assert fault_of("masked", [piece(0)], lambda _: None) is None
    once = [Raised(TRACEBACK)]

    def attempt(_: Ranges) -> None:
        if once:
            raise once.pop()

    assert fault_of("masked", [piece(0)], attempt) is None


def test_causes_have_kind_and_place_and_no_value() -> None:
    assert cause_of(Raised(TRACEBACK)) == "KeyError in known (/flows/company.py, line 22)"
    assert told_by_ferry(Raised(TRACEBACK)) is None
    assert cause_of(PySparkException("a secret")) == "PySparkException"


@pytest.mark.parametrize("kind", [Refused, Unreachable])
def test_what_ferrys_own_tasks_raise_is_told_as_it_is(kind: type[Exception]) -> None:
    last = f"ferry.errors.{kind.__name__}: t-0 on cluster a cannot be read on: the topic was deleted meanwhile\n"
    found = told_by_ferry(Raised(f"Traceback (most recent call last):\n{last}"))
    assert type(found) is kind
    assert str(found) == "t-0 on cluster a cannot be read on: the topic was deleted meanwhile"
