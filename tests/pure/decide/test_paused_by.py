"""Which switch has paused a flow, by the ledger."""

from __future__ import annotations

import pytest

from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import fold
from ferry.ledger.switch_codec import end_record, paused_by, switch_record
from ferry.model import Flow, Pause
from ferry.model.switch import Switch, SwitchEnd, SwitchOptions, SwitchOutcome, Verb
from tests.pure.decide.values import lying

VIA = Flow.parse("a->b")
SWITCH = Switch(
    id="s-1",
    verb=Verb.SWITCHOVER,
    named=VIA,
    via=VIA,
    who="ann@desk-7",
    approved_by="bob",
    approved_ms=1,
    at_ms=2,
    options=SwitchOptions(),
)
OWN = "s-1: switchover to b"


@pytest.mark.parametrize(
    ("why", "end", "found"),
    [
        (OWN, None, True),
        (OWN, SwitchOutcome.FINISHED, True),
        pytest.param(OWN, SwitchOutcome.ABANDONED, False, id="its process died before it ended the pause"),
        (f"{OWN}; handed back to MirrorMaker 2 by hand-back-1", SwitchOutcome.FINISHED, True),
        (f"{OWN}2", None, False),
        ("upgrade", SwitchOutcome.FINISHED, False),
    ],
)
def test_the_pause_of_a_switch_is_recognised(why: str, end: SwitchOutcome | None, found: bool) -> None:
    records = [switch_record(SWITCH), pause_record(Pause(topic="", who="ann@desk-7", why=why, since_ms=3))]
    if end is not None:
        records.append(end_record("s-1", SwitchEnd(outcome=end, who="ann@desk-7", why="", at_ms=9)))
    state = paused_by(fold(lying(*records), end=len(records)), 10)
    assert (None if state is None else state.switch) == (SWITCH if found else None)
    ended = pause_record(Pause(topic="", who="ann@desk-7", why=OWN, since_ms=3, until_ms=5))
    assert paused_by(fold(lying(switch_record(SWITCH), ended), end=2), 10) is None
