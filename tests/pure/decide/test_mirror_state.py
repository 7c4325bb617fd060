"""When MirrorMaker 2's topics are due, and what is remembered of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ferry.config.flow.parts import Periodic
from ferry.ledger.ledger import UNREAD, fold
from ferry.ledger.mirror_state import MirrorState, is_due, mirror_notes, mirror_record, mirror_state
from tests.pure.decide.values import lying

EVERY_MINUTE = Periodic(enabled=True, interval_s=60)
NOW_MS = 1_795_168_794_000


@pytest.mark.parametrize(
    ("periodic", "last_ms", "due"),
    [
        (EVERY_MINUTE, -1, True),
        (EVERY_MINUTE, NOW_MS - 60_000, True),
        (EVERY_MINUTE, NOW_MS - 59_999, False),
        (EVERY_MINUTE, NOW_MS + 1, True),  # the clock was put back
        (replace(EVERY_MINUTE, enabled=False), -1, False),
        (replace(EVERY_MINUTE, interval_s=None), -1, False),
    ],
)
def test_what_is_due(periodic: Periodic, last_ms: int, due: bool) -> None:
    assert is_due(periodic, last_ms, NOW_MS) is due


def test_what_is_remembered_is_of_the_lane() -> None:
    state = MirrorState(synced=7, synced_receipts=3, checkpoints_at_ms=NOW_MS, run="r", notes=("no",))
    view = fold(lying(mirror_record("live", state)), 9)
    assert mirror_state(view, "live") == state
    assert mirror_state(view, "other") == mirror_state(UNREAD, "live") == MirrorState()
    assert mirror_notes(view, "live", "r") == ("no",)
    assert mirror_notes(view, "live", "later") == ()


def test_what_a_later_ferry_adds_is_passed_over() -> None:
    record = mirror_record("live", MirrorState(synced=7))
    body = json.loads(record.value or b"") | {"more": 1}
    view = fold(lying(replace(record, value=json.dumps(body).encode())), 9)
    assert mirror_state(view, "live") == MirrorState(synced=7)
