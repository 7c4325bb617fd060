"""A budget is shared fairly; slices are dealt evenly."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.plan.rules.shares import SLICE_OVERHEAD_BYTES, assigned_slots, even_bins, fair_shares

needs = st.dictionaries(st.integers(0, 30), st.integers(0, 1000), max_size=20)
budgets = st.integers(0, 20_000)


@pytest.mark.parametrize(
    ("wanted", "budget", "shares"),
    [
        ({}, 10, {}),
        ({"a": 5}, 10, {"a": 5}),
        ({"a": 100, "b": 100}, 10, {"a": 5, "b": 5}),
        ({"a": 1, "b": 100, "c": 100}, 11, {"a": 1, "b": 5, "c": 5}),
        ({"a": 0, "b": 7}, 5, {"a": 0, "b": 5}),
        ({"a": 9, "b": 9, "c": 9}, 2, {"a": 1, "b": 1, "c": 0}),
        ({"a": 900, "b": 0, "c": 9, "d": 1}, 2, {"a": 1, "b": 0, "c": 1, "d": 0}),
    ],
)
def test_small_needs_are_met_and_large_ones_share_the_rest(
    wanted: dict[str, int], budget: int, shares: dict[str, int]
) -> None:
    assert fair_shares(wanted, budget) == shares


@given(needs, budgets)
def test_no_key_gets_more_than_it_needs_and_nothing_is_left_over(wanted: dict[int, int], budget: int) -> None:
    shares = fair_shares(wanted, budget)
    assert shares.keys() == wanted.keys()
    assert all(0 <= shares[key] <= wanted[key] for key in wanted)
    assert sum(shares.values()) == min(budget, sum(wanted.values()))


@given(needs, budgets)
def test_whoever_gets_less_than_it_needs_gets_as_much_as_anybody(wanted: dict[int, int], budget: int) -> None:
    shares = fair_shares(wanted, budget)
    most = max(shares.values(), default=0)
    # One unit cannot be split, hence the 1.
    assert all(shares[key] >= most - 1 for key in wanted if shares[key] < wanted[key])


@given(needs, budgets, st.randoms(use_true_random=False))
def test_the_order_of_the_keys_decides_only_who_gets_the_odd_unit(
    wanted: dict[int, int], budget: int, shuffle: random.Random
) -> None:
    keys = list(wanted)
    shuffle.shuffle(keys)
    shares, again = fair_shares(wanted, budget), fair_shares({key: wanted[key] for key in keys}, budget)
    if budget >= sum(need > 0 for need in wanted.values()):
        assert sorted((wanted[key], shares[key]) for key in keys) == sorted((wanted[key], again[key]) for key in keys)
    assert all(abs(shares[key] - again[key]) <= 1 for key in keys)


weights = st.lists(st.integers(0, 10**9), max_size=60)


@given(weights, st.integers(1, 12))
def test_every_bin_is_used_when_there_are_enough_slices(loads: list[int], bins: int) -> None:
    assert set(even_bins(loads, bins)) == set(range(min(bins, len(loads))))


@given(weights, st.integers(1, 12))
def test_no_bin_is_heavier_than_another_by_more_than_one_slice(loads: list[int], bins: int) -> None:
    sums = dict.fromkeys(range(min(bins, len(loads))), 0)
    for load, number in zip(loads, even_bins(loads, bins), strict=True):
        sums[number] += load + SLICE_OVERHEAD_BYTES
    assert max(sums.values(), default=0) - min(sums.values(), default=0) <= max(loads, default=0) + SLICE_OVERHEAD_BYTES


@given(weights, st.integers(1, 12))
def test_equal_input_is_dealt_equally(loads: list[int], bins: int) -> None:
    assert even_bins(loads, bins) == even_bins(list(loads), bins)


def test_a_thousand_tiny_slices_do_not_land_in_one_task_beside_a_large_one() -> None:
    dealt = even_bins([64 << 20, *[1] * 1000], 4)
    assert [dealt[1:].count(number) for number in range(4)] == [0, 334, 333, 333]


kinds = st.lists(st.tuples(st.integers(0, 10**9), st.booleans()), min_size=1, max_size=30)


@given(kinds, st.integers(2, 8))
def test_what_is_transformed_shares_no_slot_with_what_is_copied(pieces: list[tuple[int, bool]], slots: int) -> None:
    found = assigned_slots([weight for weight, _ in pieces], [kind for _, kind in pieces], slots)
    by_kind = {kind: {slot for slot, (_, one) in zip(found, pieces, strict=True) if one == kind} for kind in (0, 1)}
    assert not by_kind[0] & by_kind[1]
    assert set(found) <= set(range(slots))
    if not (by_kind[0] and by_kind[1]):
        assert found == even_bins([weight for weight, _ in pieces], slots)


def test_a_transformed_byte_counts_for_several() -> None:
    same = [(10**9, False)] * 20 + [(10**9, True)] * 20
    found = assigned_slots([weight for weight, _ in same], [kind for _, kind in same], 10)
    assert len(set(found[:20])) == 2
    assert len(set(found[20:])) == 8
