"""The fault campaign for a flow with identical offsets: no record is lost, doubled, or at another offset.

It is `tests/soak/test_faults.py` with other settings and more faults, and without a compacted topic. The source has
transactions. The target has three brokers, and the source has one. Runs wait for seconds where Ferry waits for minutes
(`campaign/hasty.py`).
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.soak.campaign.campaign import campaign

FAULTS = int(os.environ.get("FERRY_FAULTS", "100"))
PER_ROUND = 25
RATE = 40
"""Records a second: there are few, so that runs end in seconds, also next to other work."""


@pytest.mark.timeout(24 * 3600)
def test_faults_at_random_lose_double_and_shift_nothing(tmp_path: Path, rng: random.Random) -> None:
    folder = Path(os.environ.get("FERRY_CAMPAIGN", str(tmp_path / "campaign"))).absolute()
    seed = rng.randrange(1 << 32)
    print(f"the record is in {folder}, seed {seed}")
    record = campaign(folder, seed=seed, faults=FAULTS, per_round=PER_ROUND, spark=False, rate=RATE, identical=True)
    assert not record.anomalies
    assert sum(record.faults.values()) == FAULTS
    assert sum(one["at their offsets"] for one in record.rounds[-1:]) > 0
