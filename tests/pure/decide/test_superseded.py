"""What a slot reads that must stop: a newer run of the lane, a newer attempt at its run, or the attempt's end."""

from __future__ import annotations

import pytest

from ferry.errors import Superseded
from ferry.ledger.run_codec import attempt_record, ended_record, run_record
from ferry.model import Attempt, Fact, Origin, Record
from ferry.protocol.slot import SlotRef, refuse_if_superseded
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, lying, run_of
from tests.said import data_of

HERE = Origin(host="h")
RUN, FIRST = run_record(run_of("old")), attempt_record(LANE, "old", 0, 1_000, HERE)
REF = SlotRef(flow=FLOW, lane=LANE, run="old", generation=0, attempt=1, slot=0)
OF_REF: dict[str, Fact] = {"run": "old", "flow": str(FLOW), "lane": LANE}


def ended(origin: Origin) -> Record:
    """The record that ends the first attempt."""
    return ended_record(LANE, Attempt(run="old", generation=0, number=1, started_ms=1_000, origin=origin))


@pytest.mark.parametrize(
    ("last", "code", "facts"),
    [
        pytest.param(run_record(run_of("new")), "superseded.slot", {"newer": "new"}, id="newer run"),
        pytest.param(
            attempt_record(LANE, "old", 0, 2_000, HERE),
            "superseded.attempt",
            {"attempt": 1, "newer": 2, "host": "h"},
            id="newer attempt",
        ),
        pytest.param(ended(HERE), "superseded.ended", {"attempt": 1, "host": "h"}, id="ended"),
        pytest.param(
            ended(Origin()), "superseded.ended", {"attempt": 1, "host": "an unknown host"}, id="ended, no host"
        ),
    ],
)
def test_who_took_over_is_named(last: Record, code: str, facts: dict[str, Fact], golden: Golden) -> None:
    refuse_if_superseded(lying(RUN, FIRST), 2, REF)
    with pytest.raises(Superseded) as caught:
        refuse_if_superseded(lying(RUN, FIRST, last), 3, REF)
    assert data_of(caught.value) == (code, {**OF_REF, **facts})
    golden(caught.value)
