"""Random interleavings of identical offsets; without a clause they find a counterexample."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.pure.identical import clauses
from tests.pure.identical.machine import IdenticalMachine

STEPS = 30

Clause = Callable[[], ExitStack]

FOUND_SOON: list[Clause] = [
    clauses.lease_ignored,
    clauses.connections_forever,
    clauses.unsettled,
    clauses.unsettled_and_described,
    clauses.lateness_not_awaited,
]
FOUND_LATER: list[Clause] = [
    clauses.data_at_once,
    clauses.filled_to_the_brim,
    clauses.unsealed,
    clauses.markers_at_once,
    clauses.loose_forgotten,
    clauses.timestamps_ignored,
    clauses.own_requests_forgotten,
    clauses.stale_looks_sent,
    clauses.slot_unfenced,
]


@seed(4)
class SeededMachine(IdenticalMachine):
    """Takes the same way every time, so that the searches for counterexamples stay short."""


def test_no_interleaving_breaks_identical_offsets() -> None:
    run_state_machine_as_test(IdenticalMachine, settings=settings(stateful_step_count=STEPS))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_breaks_identical_offsets() -> None:
    run_state_machine_as_test(
        IdenticalMachine, settings=settings(max_examples=5_000, stateful_step_count=STEPS, database=None)
    )


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_no_long_interleaving_breaks_identical_offsets() -> None:
    run_state_machine_as_test(
        IdenticalMachine, settings=settings(max_examples=100_000, stateful_step_count=60, database=None)
    )


@pytest.mark.parametrize("clause", FOUND_SOON)
def test_without_a_clause_random_search_finds_a_counterexample(clause: Clause) -> None:
    search(clause)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("clause", FOUND_LATER)
def test_without_a_clause_a_longer_search_finds_a_counterexample(clause: Clause) -> None:
    search(clause)


def search(clause: Clause) -> None:
    """Expect that the machine fails, and that it is no error of the model."""
    limits = settings(
        max_examples=20_000,
        stateful_step_count=STEPS,
        database=None,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    with clause(), pytest.raises(AssertionError, match="wrong: "):
        run_state_machine_as_test(SeededMachine, settings=limits)
