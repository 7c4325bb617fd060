"""A plan deals its slices to slots."""

from ferry.model import LIVE, Flow, Plan, Slice, TopicPartition


def piece(partition: int, slot: int) -> Slice:
    place = TopicPartition(topic="orders", partition=partition)
    return Slice(source=place, target=place, start=2, end=9, slot=slot, bytes_estimate=0, first=True)


PLAN = Plan(
    flow=Flow(source="a", target="b"),
    lane=LIVE,
    run="r",
    generation=0,
    slots=4,
    slices=(piece(0, 3), piece(1, 0), piece(2, 3)),
)


def test_slots_with_something_to_do() -> None:
    assert PLAN.used_slots == (0, 3)
    assert [each.source.partition for each in PLAN.of_slot(3)] == [0, 2]
    assert PLAN.of_slot(1) == ()


def test_a_slice_is_as_wide_as_its_offsets() -> None:
    assert piece(0, 0).offsets == 7
