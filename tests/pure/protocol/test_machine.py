"""Random interleavings of the protocol on the modelled cluster; without a clause they find a counterexample."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.pure.protocol import clauses
from tests.pure.protocol.machine import ProtocolMachine

STEPS = 30


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The protocol says when a slot takes over again, here thousands of times."""
    log = logging.getLogger("ferry.protocol")
    before = log.level
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(before)


def test_no_interleaving_breaks_the_protocol() -> None:
    run_state_machine_as_test(ProtocolMachine, settings=settings(stateful_step_count=STEPS))


@pytest.mark.parametrize(
    ("clause", "begin"),
    [
        # Other seeds find these two after up to ten times as long.
        (clauses.slots_dealt_by_attempt, 3),
        (clauses.read_up_to_stable, 1),
        (clauses.no_look, 4),
        (clauses.generation_counted, 4),
        (clauses.own_slots_fenced, 4),
        (clauses.position_trusted, 4),
        (clauses.undecided_ignored, 4),
        (clauses.fenced_late, 4),
        (clauses.driver_writes_plainly, 4),
        (clauses.driver_unguarded, 4),
        (clauses.no_look_of_the_driver, 4),
    ],
)
def test_without_a_clause_random_search_finds_a_counterexample(clause: Callable[[], ExitStack], begin: int) -> None:
    class SeededMachine(ProtocolMachine):
        """Takes the same way every time, so that the search stays short."""

    search = settings(
        max_examples=4000,
        stateful_step_count=STEPS,
        database=None,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    with clause(), pytest.raises(AssertionError):
        run_state_machine_as_test(seed(begin)(SeededMachine), settings=search)
