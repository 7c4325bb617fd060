"""How far this clock is from a broker's, as far as one answer can tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clock import skew
from ferry.plan.rules.clock_skew import MAX_SKEW_MS, skew_sentence
from tests.golden import Golden


@pytest.mark.parametrize(
    ("sent", "stamped", "answered", "found"),
    [(100, 100, 100, 0), (100, 105, 110, 0), (100, 90, 110, 10), (100, 130, 110, -20)],
)
def test_only_what_the_answer_proves_is_called_skew(sent: int, stamped: int, answered: int, found: int) -> None:
    assert skew(sent, stamped, answered) == found


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**6), st.integers(0, 10**4), st.integers(0, 10**4))
def test_it_is_never_more_than_the_true_one(ahead: int, at: int, there: int, back: int) -> None:
    """`ahead` is how far this clock is ahead of the broker's in truth."""
    found = skew(at + ahead, at + there, at + there + back + ahead)
    assert abs(found) <= abs(ahead)
    assert found * ahead >= 0
    assert abs(ahead - found) <= max(there, back)


def test_the_sentence_says_which_way_and_where(golden: Golden) -> None:
    assert skew_sentence(MAX_SKEW_MS, "backup") is None
    assert skew_sentence(-MAX_SKEW_MS, "backup") is None
    ahead, behind = skew_sentence(400_000, "backup"), skew_sentence(-400_000, "backup")
    assert ahead is not None
    assert behind is not None
    golden(ahead)
    assert "400 s behind" in behind
