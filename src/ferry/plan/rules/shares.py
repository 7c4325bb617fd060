"""Sharing: a run's budget over partitions, and slices over slots."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

SLICE_OVERHEAD_BYTES = 16 << 10
"""What a slice costs in addition to its bytes, so that a thousand tiny slices do not all get into one slot."""

TRANSFORMED_COST = 4
"""About how much longer a transformed byte takes than one that is copied."""


def fair_shares(needs: Mapping[Key, int], budget: int) -> dict[Key, int]:
    """Return how much of `budget` each key gets: small needs in full, large ones equal parts of what is left.

    No key gets more than its need, and nothing of the budget is left while a need is unmet (water-filling). A budget
    smaller than the number of needs gives the first keys, in their order, 1 each. Units are the caller's.
    """
    shares = dict.fromkeys(needs, 0)
    left = min(budget, sum(needs.values()))
    needy = [key for key in needs if needs[key] > 0]
    waiting = sorted(needy[: max(0, budget)], key=lambda key: needs[key])
    for index, key in enumerate(waiting):
        shares[key] = min(needs[key], -(-left // (len(waiting) - index)))
        left -= shares[key]
    return shares


def even_bins(weights: Sequence[int], bins: int) -> list[int]:
    """Return a bin number for each weight so that the bins' sums are about even: heaviest first into the lightest bin.

    Equal weights keep their order, so equal input gives equal output.
    """
    lightest = [(0, number) for number in range(max(1, min(bins, len(weights))))]
    chosen = [0] * len(weights)
    for index in sorted(range(len(weights)), key=lambda index: (-weights[index], index)):
        load, number = lightest[0]
        chosen[index] = number
        heapq.heapreplace(lightest, (load + weights[index] + SLICE_OVERHEAD_BYTES, number))
    return chosen


def assigned_slots(
    weights: Sequence[int], transformed: Sequence[bool], slots: int, cost: int = TRANSFORMED_COST
) -> list[int]:
    """Return a slot number for each weight, so that slots are about even and transformed and copied slices share none.

    Copied slices have the lower numbers. Both kinds together need two slots or more. `cost` is how much longer a byte
    of the transformed ones takes.
    """
    if all(transformed) or not any(transformed):
        return even_bins(weights, slots)
    copied = sum(weight for weight, changed in zip(weights, transformed, strict=True) if not changed)
    changed = cost * (sum(weights) - copied)
    share = round(slots * changed / (copied + changed)) if copied + changed else slots // 2
    first = slots - min(max(1, share), slots - 1)
    kinds = {
        kind: iter(even_bins([w for w, k in zip(weights, transformed, strict=True) if k == kind], most))
        for kind, most in ((False, first), (True, slots - first))
    }
    return [next(kinds[kind]) + (first if kind else 0) for kind in transformed]
