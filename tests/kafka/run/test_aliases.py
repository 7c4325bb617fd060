"""Files that give one cluster different aliases.

Two aliases of the target share a lane, and the later run fences the earlier one. Two of the source have two lanes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Retryable, Superseded
from ferry.kafka.admin.topics import transaction_state
from ferry.ledger.report import RunState
from ferry.ledger.runs import sealed_plan
from ferry.model import RefusalKind
from ferry.plan import plan_run
from ferry.protocol.names import transactional_id
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, on_cluster, producer, send, settled
from tests.kafka.run.hooks import Hooks, copy_held
from tests.kafka.run.test_late_drivers import after_deciding

LIVE = "live"


class Renamed(Lab):
    """The same flow in a file that gives the target cluster another alias."""

    @property
    def target_alias(self) -> str:
        """An alias that the other file does not have."""
        return f"u{self.alias}"


@pytest.fixture
def files(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> tuple[Lab, Lab]:
    """Four partitions with 2,000 records, two slots; a guard that would hide a writer that is not fenced is off."""
    create_topic(source_cluster, topic, 4)
    send(producer(source_cluster, batch_num_messages=50), topic, numbered(2_000, partitions=4, size=200))
    alias, settings = new_alias(), {"ferry.chunk.bytes": "100000", "ferry.guard.foreign.writer": "skip"}
    one, other = (
        kind(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)
        for kind in (Lab, Renamed)
    )
    return one, other


@pytest.fixture(params=["first file is late", "second file is late"])
def pair(request: pytest.FixtureRequest, files: tuple[Lab, Lab]) -> tuple[Lab, Lab]:
    """The file whose run is late, and the file whose run overtakes it."""
    return files if request.param.startswith("first") else (files[1], files[0])


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_slot_is_fenced_by_a_run_under_another_alias(pair: tuple[Lab, Lab], step: str) -> None:
    late, newer = pair
    newer = replace(newer, settings={**newer.settings, "tasks.max": "1"})
    with late.runs() as runs:
        plan = runs.open_run("late", local_origin())
        slot = plan.used_slots[-1]
        states: list[str] = []

        def overtake() -> None:
            assert newer.micro_run().state is RunState.SUCCESS
            name = transactional_id(late.flow.flow, LIVE, slot)
            states.append(on_cluster(late.target, lambda cluster: transaction_state(cluster, name)))

        with pytest.raises((Superseded, Retryable)):
            copy_held(runs, plan, slot, Hooks(before={step: overtake}))
    (state,) = states
    assert "Ongoing" not in state, state
    assert newer.assert_equal() == 2_000
    assert late.assert_equal() == 2_000


def test_a_driver_is_fenced_by_a_run_under_another_alias(
    pair: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    late, newer = pair
    after_deciding(monkeypatch, newer.micro_run, plan_run)
    with late.runs() as runs, pytest.raises(Superseded):
        runs.open_run("late", local_origin())
    assert newer.assert_equal() == 2_000
    with newer.runs() as runs:
        view = settled(runs)
    slow, _ = view.runs
    assert (slow.record.run, sealed_plan(view, LIVE, "late", slow.generation)) == ("late", None)


def test_a_run_under_another_alias_of_the_source_is_refused_the_topic(files: tuple[Lab, Lab]) -> None:
    """The ledger's name contains the source's alias, so neither run fences the other: the first one's claim counts."""
    settings = {**files[0].settings, "replication.policy.class": "IdentityReplicationPolicy"}
    first, second = (replace(files[0], alias=new_alias(), settings=settings) for _ in range(2))
    assert first.micro_run().state is RunState.SUCCESS
    report = second.micro_run()
    assert (report.records, {one.kind for one in report.refusals}) == (0, {RefusalKind.OWNED})
