"""Random interleavings of identical offsets; without a clause they find a counterexample."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.pure.identical import clauses
from tests.pure.identical.machine import STEPS, IdenticalMachine, search

Clause = Callable[[], ExitStack]

# With each clause the seed, and the number of examples, of a search that finds its counterexample.
QUICK: dict[Clause, tuple[int, int]] = {
    clauses.lease_ignored: (5, 300),
    clauses.own_requests_forgotten: (4, 300),
    clauses.unsealed: (2, 300),
    clauses.markers_at_once: (2, 300),
    clauses.unsettled_and_described: (5, 300),
}
SLOW: dict[Clause, tuple[int, int]] = {
    clauses.connections_forever: (0, 300),
    clauses.unsettled: (4, 300),
    clauses.lateness_not_awaited: (0, 300),
    clauses.slot_unfenced: (1, 300),
    clauses.data_at_once: (3, 300),
    clauses.timestamps_ignored: (12, 2000),
}
EXTRA: dict[Clause, tuple[int, int]] = {
    clauses.stale_looks_sent: (3, 1000),
    clauses.filled_to_the_brim: (4, 2000),
}
TABLE = [
    pytest.param(clause, *search, id=clause.__name__, marks=marks)
    for marks, cases in (
        ((), QUICK),
        ((pytest.mark.slow,), SLOW),
        ((pytest.mark.extra, pytest.mark.timeout(600)), EXTRA),
    )
    for clause, search in cases.items()
]


@pytest.mark.slow
def test_no_interleaving_breaks_identical_offsets() -> None:
    run_state_machine_as_test(IdenticalMachine, settings=settings(stateful_step_count=STEPS))


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_breaks_identical_offsets() -> None:
    run_state_machine_as_test(
        IdenticalMachine, settings=settings(max_examples=5_000, stateful_step_count=STEPS, database=None)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("clause", "number", "examples"), TABLE)
def test_without_a_clause_random_search_finds_a_counterexample(clause: Clause, number: int, examples: int) -> None:
    with clause(), pytest.raises(AssertionError, match="wrong: "):
        search(IdenticalMachine, number, examples)
