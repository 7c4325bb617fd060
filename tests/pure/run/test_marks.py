"""What a reader of pieces is told of the logs that it reads from: what was read of them before."""

from ferry.features.records.acts.reading import marks_of
from ferry.features.records.rules.ranges import ReadRange
from ferry.kafka.fetch.epoch_check import Mark
from ferry.model import TopicPartition
from tests.pure.decide.values import dealt_slice, reading


def place(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def test_of_a_log_that_many_units_read_the_furthest_that_is_known_counts() -> None:
    unit = dealt_slice(
        topic="t",
        target=place(0, "b.t"),
        starts=(5, 3, 8),
        ends=(9, 9, 9),
        slot=0,
        since=1,
        partitions=2,
        digest="d",
        epochs=(2, 1, None),
    )
    behind = reading(unit, target=place(1, "b.t"), starts=(7, 2, 4), epochs=(3, 1, 1))
    unknown = reading(unit, target=place(2, "b.t"), starts=(9, 9, 9), epochs=())
    pieces = [ReadRange(place(number), 0, 9) for number in (0, 1, 2, 3)]
    for units in ([unit, behind, unknown], [unknown, behind, unit]):
        assert marks_of(units, pieces) == {place(0): Mark(3, 7), place(1): Mark(1, 3), place(2): Mark(1, 4)}
    assert marks_of([unit], [ReadRange(place(1, "other"), 0, 9)]) == {}
