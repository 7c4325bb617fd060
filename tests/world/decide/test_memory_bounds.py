"""How much memory 10,000 partitions take: their plan, a ledger with a summary, and one that is read whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]


def printed(program: str, *arguments: str) -> str:
    """What a program of the tests prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def taken_mb(*arguments: str) -> float:
    """The most that one thing took, on top of what the program has before it."""
    return float(printed("tests.pure.decide.many", *arguments))


def test_a_plan_of_ten_thousand_partitions_with_its_facts_is_bounded() -> None:
    assert taken_mb("plan") < 36  # measured: 24


@pytest.mark.parametrize("each", [20, 100])
def test_a_ledger_is_opened_from_its_summary_in_memory_for_its_partitions_alone(tmp_path: Path, each: int) -> None:
    """With 100 receipts of each partition 990,000 are in short, and 10,000 after them."""
    file = tmp_path / "summary"
    printed("tests.pure.decide.many", "write", f"{each}", "1", str(file))
    assert taken_mb("open", f"{each}", str(file)) < 70  # measured: 44 with either


def test_a_ledger_without_a_summary_takes_the_memory_of_one_portion() -> None:
    assert taken_mb("whole", "16") < 400  # measured: 271, of which a portion of 200,000 offsets is the most
