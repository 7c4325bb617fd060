"""The steady soak (docs/internals/steady-soak.md): `FERRY_STEADY_SECONDS` of ordinary work, while the clock steps.

`FERRY_CAMPAIGN` names the folder that keeps the record; without it a temporary one does.
"""

from __future__ import annotations

import os
import random
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from ferry.features.groups.rules.kept_snapshots import KEPT_SNAPSHOTS
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from ferry.protocol.driver import KEPT_RUNS
from tests.soak.steady.steady import Steady, steady
from tests.tiers import PATIENCE

SECONDS = float(os.environ.get("FERRY_STEADY_SECONDS", "3600"))

RSS_BYTES = 64 << 20
"""By how much the memory at rest may grow between the first and the last quarter, beside TAIL_BYTES.

The allocators of Python and of C keep part of what the largest run so far has used. BLOCKS finds what is still held.
"""

TAIL_BYTES = 4_000
"""What a process may hold of each offset after the ledger's last summary. A summary is due after 20,000."""

BLOCKS = 20_000
"""How many more small objects the process may hold in the last quarter, beside TAIL_BLOCKS and RUN_BLOCKS."""

TAIL_BLOCKS = 10
"""Small objects of each offset after the ledger's last summary: a record, its key, its offset and its fate."""

RUN_BLOCKS = 60
"""Small objects of each run: a view keeps the records of all runs that it read, because their slots may still write."""

TAIL_SECONDS = 75e-6
"""CPU time that a run may take for each of them: its driver, its groups and its lag look through all of them."""

RECEIPT_SECONDS = 20e-6
"""CPU time that a run may take for each receipt: groups read up to three blocks of 256 rows of each partition."""

RECORD_SECONDS = 80e-6
"""CPU time that a run may take for each record that it copies: small batches, on a machine with other work."""

OF_RUNS = ("run", "plan", "attempt", "outcome", "checkpoint")
"""Kinds of which the ledger keeps those of some runs; a plan has two records."""

CLOCK = re.compile(r"the clock of this machine is (\d+) s (ahead of|behind)")


@pytest.mark.timeout(SECONDS + 3600)
def test_an_hour_of_ordinary_work_with_a_clock_that_steps_loses_nothing_and_leaks_nothing(
    tmp_path: Path, rng: random.Random
) -> None:
    folder = Path(os.environ.get("FERRY_CAMPAIGN", str(tmp_path / "steady"))).absolute()
    seed = rng.randrange(1 << 32)
    print(f"the record is in {folder}, seed {seed}")
    found = steady(folder, seed=seed, seconds=SECONDS)
    print("\n".join(["", found.table(), "", *found.stepped]))
    assert not found.record.anomalies
    assert "Traceback" not in found.complaints
    assert [one for one in found.runs if one["code"] or one["state"] != "success" or one["refusals"]] == []
    assert [one["number"] for one in found.runs] == list(range(1, len(found.runs) + 1))
    assert [(one["number"], said) for one in found.runs if (said := false_words(found, one))] == []
    assert_nothing_leaks(found)
    assert_ledger_is_bounded(found)
    assert_runs_are_as_quick_as_before(found)


def false_words(found: Steady, run: dict[str, Any]) -> list[str]:
    """What a run said of the clock, or by it, that was not so."""
    off = found.clock.between(run["began"], run["ended"])
    told = [
        int(match[1]) * (1 if match[2] == "ahead of" else -1)
        for note in run["notes"]
        if (match := CLOCK.search(note)) is not None
    ]
    wrong = [f"off by {one} s" for one in told if all(abs(one - real) > 2 for real in off)]
    if not told and all(abs(real) * 1000 > MAX_SKEW_MS for real in off):
        wrong.append("no word of the clock")
    # Start and receipts have the times of the clock: of a run in which it stepped their distance says nothing.
    if len(off) == 1 and not 0 <= run["seconds"] <= run["took"]:
        wrong.append(f"{run['seconds']} s")
    return wrong


def assert_nothing_leaks(found: Steady) -> None:
    """File descriptors, threads and children at rest are no more in the last quarter, and memory has a bound."""
    first, last = found.quarter(1), found.quarter(4)
    for what in ("fds", "threads", "children"):
        assert max(one[what] for one in last.runs) <= max(one[what] for one in first.runs), what
    grown = statistics.median(one["rss"] for one in last.runs) - statistics.median(one["rss"] for one in first.runs)
    assert grown <= RSS_BYTES + TAIL_BYTES * (last.most_tail - first.most_tail), f"{grown / (1 << 20):.0f} MiB more"
    more = min(one["blocks"] for one in last.runs) - min(one["blocks"] for one in first.runs)
    of_runs = RUN_BLOCKS * (last.runs[-1]["number"] - first.runs[0]["number"])
    assert more <= BLOCKS + of_runs + TAIL_BLOCKS * last.most_tail, f"{more} blocks more"


def assert_ledger_is_bounded(found: Steady) -> None:
    """Receipts are one for each chunk and partition; of all else there is no more than after half of the runs.

    Receipts go when both sides have lost their records, and here they lose none.
    """
    live = found.live
    assert live["receipt"] == sum(one["receipts"] for one in found.runs)
    assert live.get("map", 0) <= live["receipt"] // 100
    assert live.get("summary", 0) <= 2
    for kind in OF_RUNS:
        assert live[kind] <= (2 if kind == "plan" else 1) * (2 * KEPT_RUNS + 2), kind
    assert live["snapshot"] <= KEPT_SNAPSHOTS
    half = next(one for one in found.samples if 2 * one["runs"] >= len(found.runs))
    if half["runs"] > KEPT_RUNS + 10:
        before, after = (_but_receipts(one) for one in (half["live"], live))
        assert after <= before + 20, (half["live"], live)


def _but_receipts(live: dict[str, int]) -> int:
    return sum(count for kind, count in live.items() if kind not in ("receipt", "map", "part"))


def assert_runs_are_as_quick_as_before(found: Steady) -> None:
    """Runs through the connections that stay open take no longer, but for what the ledger and the runs have more."""
    first, last = found.quarter(1), found.quarter(4)
    records = [statistics.median(one["records"] for one in quarter.runs) for quarter in (first, last)]
    more = (
        TAIL_SECONDS * max(0.0, last.tail - first.tail)
        + RECEIPT_SECONDS * (last.receipts - first.receipts)
        + RECORD_SECONDS * max(0.0, records[1] - records[0])
    )
    for what, least in (("cpu", 0.05 + more), ("took", (0.5 + 2 * more) * PATIENCE)):
        before, after = (
            statistics.median(one[what] for one in quarter.runs if one["kind"] == "session")
            for quarter in (first, last)
        )
        assert after <= 1.5 * before + least, f"{what}: {after:.2f} s a run after {before:.2f} s"
