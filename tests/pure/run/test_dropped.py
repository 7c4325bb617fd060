"""What is said of a partition that leaves an attempt."""

from __future__ import annotations

import pytest

from ferry.copy.dropped import out_of_time
from ferry.model import RefusalKind
from tests.golden import Golden
from tests.pure.decide.values import piece


@pytest.mark.parametrize(
    "told",
    [["Timestamp 9 is out of range", "Invalid"], [None, "Invalid"], [None]],
    ids=["for a record", "for the batch", "without words"],
)
def test_a_refused_timestamp_names_the_limits_that_are_to_be_raised(told: list[str | None], golden: Golden) -> None:
    found = out_of_time(piece(), 17, "b", told)
    assert (found.offset, found.refusal.kind, found.passing) == (17, RefusalKind.INVALID_CONFIG, False)
    golden(found.refusal.message)
