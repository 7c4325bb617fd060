"""What is told of a transform that breaks off: the record, the kind of error and its place, and no value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException, PythonException

from ferry.errors import Refused, Unreachable
from ferry.features.records.acts.cutoffs import Unread, parse_unread, refusal_of_unit, without
from ferry.features.records.rules.locating import Ranges
from ferry.features.records.rules.ranges import ranges_of
from ferry.features.records.spark import record_errors
from ferry.features.records.spark.failures import cause_of, ferry_error_of, unread_of
from ferry.features.records.spark.record_errors import MOST_OF_TOPIC, faults_of
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.model import RefusalKind, Slice, TopicPartition
from tests.golden import Golden
from tests.pure.decide.values import dealt_slice, reading

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


def piece(partition: int, *, topic: str = "t", start: int = 0) -> Slice:
    return Slice(
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"a.{topic}", partition),
        start=start,
        end=100,
        slot=0,
        bytes_estimate=0,
        first=True,
    )


def unit(topic: str, number: int) -> Slice:
    return dealt_slice(
        topic=topic,
        target=TopicPartition(f"a.{topic}", number),
        starts=(0, 0),
        ends=(50, 50),
        slot=0,
        since=1,
        partitions=2,
        digest="d",
    )


def failing(*places: tuple[str, int, int]) -> Callable[[Ranges], None]:
    """A transform that breaks off at these records."""

    def attempt(ranges: Ranges) -> None:
        for topic, partition, offset in places:
            start, end = ranges.get(TopicPartition(topic, partition), (0, 0))
            if start <= offset < end:
                raise Raised(TRACEBACK)

    return attempt


@pytest.mark.parametrize(("topic", "offset"), [("t", 47), ("t", 0), ("u", 49)])
def test_the_record_is_told_with_the_transform_the_cause_and_the_remedy(
    topic: str, offset: int, golden: Golden
) -> None:
    pieces: list[Slice] = [piece(0), piece(1), unit("u", 0)]
    held = faults_of("masked", pieces, failing((topic, 1, offset)))
    (found,) = held.values()
    golden(found.refusal.message)
    assert found.refusal.kind is RefusalKind.TRANSFORM


def test_slices_are_withheld_from_their_records_on_and_no_other_is() -> None:
    pieces: list[Slice] = [piece(0), piece(1, start=10), piece(2, start=30), piece(0, topic="v")]
    held = faults_of("masked", pieces, failing(("t", 1, 47), ("t", 1, 48), ("t", 2, 30)))
    assert {place: one.offset for place, one in held.items()} == {("t", 1): 47, ("t", 2): 30}
    assert ranges_of(without(pieces, held)) == {("t", 0): (0, 100), ("t", 1): (10, 47), ("v", 0): (0, 100)}


def test_units_lack_the_one_source_partition_from_its_record_on() -> None:
    ahead = reading(unit("t", 1), starts=(0, 40))
    pieces: list[Slice] = [unit("t", 0), ahead, unit("u", 0)]
    held = faults_of("masked", pieces, failing(("t", 1, 30)))
    assert {place: one.offset for place, one in held.items()} == {("t", 1): 30}
    assert without(pieces, held) == (
        reading(unit("t", 0), ends=(50, 30)),
        reading(ahead, ends=(50, 40)),
        unit("u", 0),
    )
    told = [refusal_of_unit(piece, held) for piece in pieces if piece.dealt]
    assert [None if one is None else (one.topic, one.partition) for one in told] == [("t", 0), ("t", 1), None]
    again = faults_of("masked", without(pieces, held), failing(("t", 1, 30)))
    assert again == {}, "it is still among what is read"


def test_a_topic_with_many_such_records_is_withheld_wholly_and_the_others_go_on() -> None:
    pieces: list[Slice] = [*(piece(number) for number in range(MOST_OF_TOPIC + 3)), piece(0, topic="v")]
    tries: list[Ranges] = []
    bad = failing(*(("t", number, 5) for number in range(MOST_OF_TOPIC + 2)), ("v", 0, 99))

    def attempt(ranges: Ranges) -> None:
        tries.append(ranges)
        bad(ranges)

    held = faults_of("masked", pieces, attempt)
    assert ranges_of(without(pieces, held)) == {
        **{("t", number): (0, 5) for number in range(MOST_OF_TOPIC)},
        ("v", 0): (0, 99),
    }
    assert "at a record of t (3 partitions): " in held[TopicPartition("t", MOST_OF_TOPIC + 2)].refusal.message
    assert len(tries) < 60


def test_nobody_looks_longer_than_the_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_errors, "LOCATE_SECONDS", 0.0)
    pieces: list[Slice] = [piece(0), piece(1)]
    held = faults_of("masked", pieces, failing(("t", 1, 47)))
    assert without(pieces, held) == ()


def test_what_does_not_break_off_or_not_again_withholds_nothing() -> None:
    assert faults_of("masked", [piece(0)], lambda _: None) == {}
    once = [Raised(TRACEBACK)]

    def attempt(_: Ranges) -> None:
        if once:
            raise once.pop()

    assert faults_of("masked", [piece(0)], attempt) == {}


def test_what_cannot_be_read_is_told_as_it_is_and_withheld_from_there_on() -> None:
    failures = {
        TopicPartition("t", 1): ReadFailure(kind=RefusalKind.NO_LEADER, message='no "leader"\nnow', offset=20),
        TopicPartition("t", 2): ReadFailure(kind=RefusalKind.CORRUPT, message="bad", offset=0),
    }
    assert parse_unread(str(Unread(failures))) == failures
    raised = Raised(f"Traceback (most recent call last):\n  ...\n{Unread.__module__}.Unread: {Unread(failures)}\n")
    assert unread_of(raised) == failures
    assert unread_of(Raised(TRACEBACK)) == {}

    def attempt(ranges: Ranges) -> None:
        if ranges.get(TopicPartition("t", 1), (0, 0))[1] > 20:
            raise raised
        failing(("t", 0, 3))(ranges)

    pieces: list[Slice] = [piece(0), piece(1), piece(2), piece(3), unit("u", 0)]
    held = faults_of("masked", pieces, attempt)
    assert {place: (one.offset, one.refusal.kind) for place, one in held.items()} == {
        ("t", 0): (3, RefusalKind.TRANSFORM),
        ("t", 1): (20, RefusalKind.NO_LEADER),
        ("t", 2): (0, RefusalKind.CORRUPT),
    }


def test_causes_have_kind_and_place_and_no_value() -> None:
    assert cause_of(Raised(TRACEBACK)) == "KeyError in known (/flows/company.py, line 22)"
    assert ferry_error_of(Raised(TRACEBACK)) is None
    assert cause_of(PySparkException("a secret")) == "PySparkException"


@pytest.mark.parametrize("kind", [Refused, Unreachable])
def test_what_ferrys_own_tasks_raise_is_told_as_it_is(kind: type[Exception]) -> None:
    last = f"ferry.errors.{kind.__name__}: t-0 on cluster a is gone\n"
    found = ferry_error_of(Raised(f"Traceback (most recent call last):\n{last}"))
    assert type(found) is kind
    assert str(found) == "t-0 on cluster a is gone"
