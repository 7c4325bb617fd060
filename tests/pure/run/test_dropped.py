"""What is said of a partition that leaves an attempt."""

from __future__ import annotations

import pytest

from ferry.copy.dropped import out_of_time
from ferry.model import RefusalKind
from tests.pure.decide.values import piece


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["Timestamp 9 is out of range", "Invalid"], "(Timestamp 9 is out of range)"),
        ([None, "Invalid"], "(Invalid)"),
        ([None], "(it does not say which)"),
    ],
)
def test_a_refused_timestamp_names_the_limits_that_are_to_be_raised(told: list[str | None], words: str) -> None:
    found = out_of_time(piece(), 17, "b", told)
    assert (found.offset, found.refusal.kind, found.passing) == (17, RefusalKind.INVALID_CONFIG, False)
    message = found.refusal.message
    assert f"{piece().target} on cluster b refuses a timestamp in the batch at source offset 17 {words}: " in message
    assert "raise message.timestamp.after.max.ms" in message
    assert "message.timestamp.before.max.ms" in message
