"""Every reader of Ferry's against hostile inputs: some rounds here, ten minutes in tests/soak/test_fuzz.py."""

from __future__ import annotations

import logging

import pytest

from tests.pure.wire.fuzz import MOST, Account, fuzzed, megabytes

MOST_MEGABYTES = 24 * (MOST >> 20)
"""More than this the process never grows: several readers, each with a few times what it may decompress."""


def held(seed: int, **limit: float) -> Account:
    """The account of a fuzz in which nothing was wrong; `limit` is in rounds or seconds."""
    before = megabytes()
    print(f"seed {seed}, {limit}")
    logging.disable(logging.ERROR)  # what an answer that cannot be read is logged as
    try:
        found = fuzzed(seed, **limit)
    finally:
        logging.disable(logging.NOTSET)
    for name, count in sorted(found.inputs.items()):
        print(f"{name}: {count} inputs, {found.declared[name]} refused, slowest {found.slowest[name] * 1000:.0f} ms")
    print(f"memory: {before} to {megabytes()} MB; {len(found.wrong)} wrong")
    assert not found.wrong, f"seed {seed}: {found.wrong[:20]}"
    assert megabytes() - before < MOST_MEGABYTES
    return found


@pytest.mark.slow
def test_hostile_inputs_end_as_declared_for_some_rounds() -> None:
    found = held(20, rounds=12)
    refused = [name for name, count in found.inputs.items() if count >= 50 and found.declared[name] == count]
    assert not refused, "they see nothing but what their first look refuses"
