"""What room a broker has, by what it says of its log directories."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ferry.kafka.admin.disks import tightest
from ferry.kafka.connect.codes import KAFKA_STORAGE_ERROR
from ferry.model.observed import BrokerSpace


def directory(total: int, usable: int, error_code: int = 0) -> SimpleNamespace:
    """A log directory as DescribeLogDirs tells of it; brokers before 3.3 say -1."""
    return SimpleNamespace(total_bytes=total, usable_bytes=usable, error_code=error_code)


@pytest.mark.parametrize(
    ("directories", "room"),
    [
        pytest.param([directory(100, 40)], (100, 40), id="one"),
        pytest.param([directory(100, 40), directory(100, 40)], (100, 40), id="two on one volume do not count twice"),
        pytest.param([directory(100, 90), directory(50, 1)], (50, 1), id="a full one is not hidden by an empty one"),
        pytest.param([directory(100, 40), directory(100, 0, KAFKA_STORAGE_ERROR)], (100, 40), id="offline"),
        pytest.param([directory(-1, -1)], None, id="too old to tell"),
        pytest.param([], None, id="not permitted"),
    ],
)
def test_a_broker_is_judged_by_its_tightest_directory(
    directories: list[SimpleNamespace], room: tuple[int, int] | None
) -> None:
    assert tightest(directories) == (None if room is None else BrokerSpace(total=room[0], usable=room[1]))
