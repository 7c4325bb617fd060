"""A window of which not all can be looked up: the rest is copied, and it is not taken for done. No broker is needed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ferry.config.flow.lane import in_lane
from ferry.errors import BadInput, Refused
from ferry.lane.open_lane import OpenLane
from ferry.ledger.window_codec import recorded_windows
from ferry.model import Plan, RefusalKind, TimeWindow
from ferry.plan.options import DEFAULT_RUN, RunOptions
from ferry.plan.preview import preview, window
from ferry.plan.rules.windows import WindowLook
from tests.golden import Golden
from tests.pure.decide.values import run_of
from tests.pure.run.test_starts import ALIVE, AWAY, DEAD, LONG_AGO, NOBODY, SERVED, Lane, lane

NAME = "backfill-x"
WINDOW = TimeWindow(from_ms=LONG_AGO, to_ms=LONG_AGO + 500)
OPTIONS = RunOptions(window=WINDOW, only=frozenset({"orders"}))


def opened(it: Lane) -> OpenLane:
    return replace(it.opened, flow=in_lane(it.flow, NAME), name=NAME)


def looked(it: Lane, options: RunOptions = OPTIONS) -> WindowLook:
    found: WindowLook = it.loop.run(partial(window, opened(it), it.view, options))
    return found


def opens(it: Lane) -> Plan:
    return it.opened_by(opened(it), run_of("run", lane=NAME), OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("leader", [NOBODY, DEAD], ids=["leaderless", "unserved"])
def test_what_cannot_be_asked_is_refused_and_settled_when_it_can(leader: int) -> None:
    with lane("") as it:
        for place in (SERVED, AWAY):
            it.source.logs[place] += [LONG_AGO + 900] * 5
        it.source.leaders[AWAY] = leader
        look = looked(it)
        assert (look.unserved, look.is_done, [part.source for part in look.parts]) == (("orders-1",), False, [SERVED])
        plan = opens(it)
        assert [(piece.source, piece.start, piece.end) for piece in plan.slices] == [(SERVED, 0, 50)]
        assert [(refusal.partition, refusal.kind) for refusal in plan.refusals] == [(1, RefusalKind.NO_LEADER)]
        assert {piece.target.topic for piece in plan.slices} == {f"a.orders.backfill.{NAME}"}
        it.source.leaders[AWAY] = ALIVE
        assert looked(it).unserved == ()
        opens(it)
        (record,) = recorded_windows(it.view, NAME)
        assert record.ranges == {0: (0, 50), 1: (0, 70)}


def test_a_lane_of_windows_wants_one_and_of_topics_that_are_there(golden: Golden) -> None:
    with lane("") as it:
        with pytest.raises(BadInput) as wrong:
            it.loop.run(partial(preview, opened(it), it.view, DEFAULT_RUN))
        golden(wrong.value, "without a window")
        with pytest.raises(BadInput) as wrong:
            looked(it, RunOptions(window=WINDOW, only=frozenset({"nothing"})))
        golden(wrong.value, "a topic that is not copied")


def test_scratch_topics_keep_what_they_are_given() -> None:
    with lane("") as it:
        (change,) = opens(it).changes
        assert dict(change.configs) | {"retention.ms": "-1", "retention.bytes": "-1"} == dict(change.configs)


def test_a_window_before_what_was_copied_is_refused_before_a_run_is_opened(golden: Golden) -> None:
    with lane("") as it:
        it.source.logs[SERVED] += [LONG_AGO + 600] * 5 + [LONG_AGO + 700]
        opens(it)
        written = len(it.ledger.records)
        later = RunOptions(window=TimeWindow(from_ms=LONG_AGO + 700, to_ms=LONG_AGO + 800), only=OPTIONS.only)
        with pytest.raises(Refused) as refused:
            looked(it, later)
        golden(refused.value)
        assert len(it.ledger.records) == written
