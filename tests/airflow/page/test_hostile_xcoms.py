"""What whoever may write XComs puts there: a page shows it as text, or nothing of it."""

from __future__ import annotations

import json
import math
import random
import re
import time
from functools import partial

from ferry.ledger.verified_codec import verified_json
from ferry_airflow.page import dag_runs
from ferry_airflow.page.dag_runs import DagRunStory
from ferry_airflow.page.differences import differences_of
from tests.airflow.page.test_beside import STORY, VERIFIED, differing
from tests.pure.decide.test_hostile_ledger import mutated
from tests.pure.wire.fuzz import Account
from tests.pure.wire.hostile import flipped

ROUNDS = 30_000
_RETURNED = (
    verified_json(VERIFIED),
    differing(),
    {
        "id": "d", "kind": "shadow", "outcome": "deviations", "summary": "s", "deviations": ["x"], "refusals": [],
        "report": {"number": 7, "page": "p", "json": "j", "sha256": "0", "signed": False},
    },
)  # fmt: skip


def fuzzed(seed: int, *, rounds: float = math.inf, seconds: float = math.inf) -> Account:
    """The account of the reader of XComs, which has the readers of `tests.pure.wire.fuzz` as its neighbours."""
    rng, account, until = random.Random(seed), Account(), time.monotonic() + seconds
    while rounds > 0 and time.monotonic() < until:
        rounds -= 1
        data = json.dumps(mutated(mutated(rng.choice(_RETURNED), rng), rng)).encode()
        text = (flipped(data, rng) if rng.random() < 0.3 else data).decode(errors="replace")
        if rng.random() < 0.02:
            text = "[" * 100_000
        account.tried("XComs", partial(_read, text), text.encode())
    return account


def _read(text: str) -> None:
    for value in (text, _object(text)):
        found = dag_runs._plain(value)
        if isinstance(found, dict):
            story = DagRunStory(row=STORY.row, conf={}, tasks=(), returned=found)
            outcome = dag_runs.outcome_of(story)
            assert outcome is None or all(isinstance(line, str) for line in outcome.lines)
            for one in differences_of(found).rows:
                assert re.fullmatch(r"[\w.-]+", one.source.place.topic + one.target.place.topic)


def _object(text: str) -> object:
    """As Airflow's JSON column gives it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def test_hostile_xcoms_are_read_as_text_or_not_at_all() -> None:
    account = fuzzed(20, rounds=ROUNDS)
    assert account.inputs["XComs"] == ROUNDS
    assert not account.wrong, account.wrong[:20]
