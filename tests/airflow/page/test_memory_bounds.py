"""What the page keeps of 10,000 partitions, however long somebody looks."""

from __future__ import annotations

from tests.world.decide.test_memory_bounds import printed


def test_what_was_seen_of_ten_thousand_partitions_is_bounded() -> None:
    assert float(printed("tests.airflow.page.many")) < 50  # measured: 33, of which 20 are the lag over time
