"""How many requests the holes of a transactional source cost, over scripted brokers."""

from __future__ import annotations

from tests.pure.identical.marking import Marking
from tests.pure.scripted.lane import at_work


def test_a_transaction_in_all_partitions_costs_a_request_with_records_one_with_markers_and_two_readings() -> None:
    costs = []
    for transactions in (10, 30):
        lane = Marking(*["c" * transactions] * 4)
        lane.memory_bytes = 64 << 20  # or each answer of the source has one partition
        with at_work(lane):
            assert lane.run("r").refusals == {}
        costs.append([lane.target.count(api) for api in ("Produce", "WriteTxnMarkers", "ListOffsets", "Metadata")])
    assert [more - less for less, more in zip(*costs, strict=True)] == [20, 20, 40, 0]


def test_partitions_that_come_to_holes_one_after_the_other_are_passed_together_soon() -> None:
    lane = Marking("c" * 9, "r" + "c" * 9, "rr" + "c" * 9, "rrr" + "c" * 9)
    lane.memory_bytes = 64 << 20
    with at_work(lane):
        assert lane.run("r").refusals == {}
        assert (lane.is_identical(), lane.target.count("WriteTxnMarkers")) == (True, 10)
