"""What tests read of a ledger: what was committed before is in it, and a writer that is at work holds nothing up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.receipts import receipts
from ferry.run.micro_run import MicroRuns, local_origin
from tests import harness
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, settled
from tests.kafka.run.hooks import Hooks, copy_held


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    create_topic(source_cluster, topic)
    send(producer(source_cluster, batch_num_messages=10), topic, numbered(40))
    return Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "1"},
    )


@pytest.fixture
def runs(lab: Lab) -> Iterator[MicroRuns]:
    with lab.runs() as found:
        yield found


def test_a_writer_at_work_is_not_waited_for(lab: Lab, runs: MicroRuns) -> None:
    """Its first chunk is committed, and the receipts of the second are written."""
    seen = []

    def look() -> None:
        with lab.runs() as others:
            view = settled(others)
            seen.append((len(view.open) > 0, len(list(receipts(view)))))

    hooks = Hooks()
    hooks.after["commit"] = lambda: hooks.before.update(commit=look)
    copy_held(runs, runs.open_run("one", local_origin()), 0, hooks)
    assert seen == [(True, 1)]


def test_markers_that_do_not_arrive_are_named(runs: MicroRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "closing", lambda _: {"ferry.a->b.live.0"})
    monkeypatch.setattr(harness, "PATIENCE", 0)
    with pytest.raises(AssertionError, match=r"ferry\.a->b\.live\.0"):
        settled(runs)
