"""The fault campaign (docs/internals/fault-campaign.md): `FERRY_FAULTS` faults at random, judged by another reader.

`FERRY_CAMPAIGN` names the folder that keeps the record; without it a temporary one does.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.soak.campaign.campaign import campaign

FAULTS = int(os.environ.get("FERRY_FAULTS", "1000"))
PER_ROUND = 25


@pytest.mark.timeout(24 * 3600)
def test_a_thousand_faults_lose_double_and_misplace_nothing(tmp_path: Path, rng: random.Random) -> None:
    folder = Path(os.environ.get("FERRY_CAMPAIGN", str(tmp_path / "campaign"))).absolute()
    seed = rng.randrange(1 << 32)
    print(f"the record is in {folder}, seed {seed}")
    record = campaign(folder, seed=seed, faults=FAULTS, per_round=PER_ROUND, spark=True)
    assert not record.anomalies
    assert sum(record.faults.values()) == FAULTS
