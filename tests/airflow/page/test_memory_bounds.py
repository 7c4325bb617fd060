"""What the page keeps of 10,000 partitions, however long somebody looks."""

from __future__ import annotations

import pytest

from tests.airflow.page.many import LOOKS
from tests.world.decide.test_memory_bounds import printed


@pytest.mark.parametrize(("looks", "most_mb"), [(3, 36), (LOOKS, 50)], ids=["soon", "long"])  # measured: 24 and 34
def test_what_was_seen_of_ten_thousand_partitions_is_bounded(looks: int, most_mb: float) -> None:
    """What is kept over time is the lag: 10 MB after long."""
    assert float(printed("tests.airflow.page.many", f"{looks}")) < most_mb
