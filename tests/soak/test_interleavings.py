"""Random interleavings as in tests/pure, more and longer ones (`make soak`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.pure.identical.machine import IdenticalMachine
from tests.pure.protocol.machine import ProtocolMachine
from tests.pure.scripted.test_machine import Machine

pytestmark = pytest.mark.timeout(6 * 3600)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The protocol says when a slot takes over again, here thousands of times."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_no_long_interleaving_breaks_the_protocol() -> None:
    run_state_machine_as_test(
        ProtocolMachine, settings=settings(max_examples=20_000, stateful_step_count=80, database=None)
    )


def test_no_long_interleaving_breaks_identical_offsets() -> None:
    run_state_machine_as_test(
        IdenticalMachine, settings=settings(max_examples=100_000, stateful_step_count=60, database=None)
    )


def test_no_long_interleaving_breaks_what_the_real_writer_promises() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=20_000, stateful_step_count=40, database=None))
