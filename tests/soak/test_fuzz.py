"""Every reader of Ferry's against hostile inputs, for minutes (docs/internals/fuzz.md).

`FERRY_FUZZ_SECONDS` sets how long the readers but that of XComs are tried, `FERRY_FUZZ_SEED` repeats a fuzz.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.airflow.page.test_hostile_xcoms import fuzzed
from tests.pure.wire.test_fuzz import held

SECONDS = float(os.environ.get("FERRY_FUZZ_SECONDS") or 600)


def a_seed() -> int:
    """The seed that is given, or one that is drawn."""
    return int(os.environ.get("FERRY_FUZZ_SEED") or random.SystemRandom().randrange(2**32))


@pytest.mark.timeout(SECONDS + 3600)
def test_hostile_inputs_end_as_declared_for_ten_minutes() -> None:
    held(a_seed(), seconds=SECONDS)


def test_hostile_xcoms_are_read_as_text_or_not_at_all_for_a_minute() -> None:
    seed = a_seed()
    account = fuzzed(seed, seconds=60)
    assert not account.wrong, f"seed {seed}: {account.wrong[:20]}"
