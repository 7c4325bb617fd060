"""A look at a flow when nothing listens where its clusters should be: each of them is named, at each look."""

from __future__ import annotations

from ferry.reader.watch import FlowWatch
from tests.pure.run.test_watch_outage import flow_of


def test_both_are_named_when_neither_answers() -> None:
    with FlowWatch(flow_of(), patience_s=0.2) as watch:
        for _ in range(2):
            poll = watch.look()
            assert (set(poll.troubles), poll.hindrances) == ({"a", "b"}, [])
            assert (poll.view, poll.lags) == (None, None)
