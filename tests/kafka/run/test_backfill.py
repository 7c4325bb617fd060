"""Windows of history in a lane of their own, on real brokers: in order, nothing twice, nothing late lost."""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.errors import BadInput, Refused, Superseded
from ferry.features.lanes.acts import dropping
from ferry.features.lanes.acts.dropping import RUN_PREFIX, LaneDrop
from ferry.features.lanes.acts.listing import list_lanes
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import receipts
from ferry.ledger.report import Report
from ferry.ledger.window_codec import dropped_lanes
from ferry.model import OffsetWindow, Record, TimeWindow, TopicPartition, TopicWindows, Window
from ferry.plan.options import RunOptions
from ferry.protocol.driver import Sealed, fence_and_seal
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send, wait_until, whole_ledger
from tests.tiers import ANSWER_S

HOUR = 3_600_000
LANE = "backfill-january"


class History:
    """A source topic with two partitions and records at chosen hours, and a lane of a flow over it."""

    def __init__(self, source: RunningCluster, target: RunningCluster, topic: str) -> None:
        self.topic = topic
        self.lab = Lab(source=source, target=target, alias=new_alias(), topics=(topic,))
        self.begin = time.time_ns() // 1_000_000 // HOUR * HOUR - 6 * HOUR
        self._producer = producer(source)
        create_topic(source, topic, 2)

    def record(self, *hours: float, partition: int = 0) -> None:
        """Append a record for each of the hours, which is its timestamp and its value."""
        send(
            self._producer,
            self.topic,
            [
                Message(value=str(hour).encode(), partition=partition, timestamp=self.begin + int(hour * HOUR))
                for hour in hours
            ],
        )

    def hours(self, start: float, end: float) -> TimeWindow:
        return TimeWindow(from_ms=self.begin + int(start * HOUR), to_ms=self.begin + int(end * HOUR))

    def runs(self, lane: str = LANE) -> MicroRuns:
        return MicroRuns(self.lab.flow, lane=lane, patience_s=ANSWER_S)

    def copy(self, window: Window, lane: str = LANE, max_records: int | None = None) -> Report:
        """One micro-run of the window."""
        with self.runs(lane) as runs:
            options = RunOptions(window=window, max_records=max_records)
            return self.lab.copy(runs, runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), options))

    def scratch(self, lane: str = LANE) -> dict[int, list[str]]:
        """The values in the lane's scratch topic, by partition."""
        rows = read_topic(self.lab.target.bootstrap, f"{self.lab.target_topic(self.topic)}.backfill.{lane}")
        return {number: [(value or b"").decode() for _, _, value, *_ in found] for number, found in rows.items()}


@pytest.fixture
def history(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> History:
    return History(source_cluster, target_cluster, topic)


def test_windows_join_without_losing_a_late_record_and_repeat_without_copying_twice(history: History) -> None:
    history.record(0.5, 1.5, 2.5)
    history.record(0.2, partition=1)
    assert history.copy(history.hours(0, 1)).records == 2
    history.record(0.9, 1.1, partition=1)  # the first came late: the window that it belongs to in time was copied
    assert [history.copy(history.hours(hour, hour + 1)).records for hour in (1, 2)] == [3, 1]
    once = history.scratch()
    assert once == {0: ["0.5", "1.5", "2.5"], 1: ["0.2", "0.9", "1.1"]}
    assert [history.copy(history.hours(hour, hour + 1)).records for hour in (0, 1, 2)] == [0, 0, 0]
    assert history.copy(history.hours(0, 3)).records == 0
    assert history.scratch() == once


def test_a_window_takes_as_many_runs_as_its_budget_asks_for(history: History) -> None:
    history.record(*[0.1 + number / 1000 for number in range(10)])
    window, seen = history.hours(0, 1), []
    with history.runs() as runs:
        while not runs.window(RunOptions(window=window)).is_done:
            seen.append(history.copy(window, max_records=4).records)
    assert seen == [4, 4, 2]


def test_a_window_goes_behind_a_gap_between_windows_but_never_back(history: History) -> None:
    history.record(0.5, 1.5, 2.5)
    assert history.copy(history.hours(0, 1)).records == 1
    assert history.copy(history.hours(2, 3)).records == 1
    assert history.scratch()[0] == ["0.5", "2.5"]
    with pytest.raises(Refused, match=r" 1 to 1;"):
        history.copy(history.hours(1, 2))
    assert history.copy(history.hours(1, 2), lane="backfill-february").records == 1


def test_each_topic_may_have_times_of_its_own(history: History) -> None:
    names = {hour: f"{history.topic}.{hour}" for hour in (1, 2, 3)}
    for name in names.values():
        create_topic(history.lab.source, name)
        messages = [Message(value=b"%d" % hour, timestamp=history.begin + hour * HOUR) for hour in range(4)]
        send(producer(history.lab.source), name, messages)
    lab = replace(history.lab, topics=(f"{history.topic}.*",))
    window = TopicWindows(windows={names[hour]: history.hours(hour, hour + 1) for hour in (1, 2)})

    def copied(window: Window) -> int:
        with MicroRuns(lab.flow, lane=LANE, patience_s=ANSWER_S) as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), RunOptions(window=window))
            return lab.copy(runs, plan).records

    assert [copied(window), copied(window)] == [2, 0]
    for hour in (1, 2):
        rows = read_topic(lab.target.bootstrap, f"{lab.target_topic(names[hour])}.backfill.{LANE}")
        assert [row[2] for row in rows[0]] == [b"%d" % hour]
    assert copied(TopicWindows(windows={names[1]: history.hours(2, 4)})) == 2, "it goes on where that topic's ended"


def test_windows_of_offsets(history: History) -> None:
    history.record(0.1, 0.2, 0.3, 0.4)
    place = TopicPartition(topic=history.topic, partition=0)
    assert history.copy(OffsetWindow(ranges={place: (1, 3)})).records == 2
    assert history.copy(OffsetWindow(ranges={place: (1, 3)})).records == 0
    assert history.copy(OffsetWindow(ranges={place: (2, 4)})).records == 1
    assert history.scratch()[0] == ["0.2", "0.3", "0.4"]
    with pytest.raises(BadInput, match=r" 4\b"):
        history.copy(OffsetWindow(ranges={place: (4, 5)}))


def test_a_dropped_lane_leaves_nothing_and_live_goes_on(history: History) -> None:
    history.record(0.5, 1.5)
    assert history.lab.micro_run().records == 2
    history.copy(history.hours(0, 1))
    history.copy(history.hours(0, 1), lane="drill-other")
    scratch = f"{history.lab.target_topic(history.topic)}.backfill.{LANE}"
    flow = history.lab.flow
    lanes = {lane.name: lane for lane in list_lanes(flow)}
    assert {name: lane.records for name, lane in lanes.items()} == {"live": 2, LANE: 1, "drill-other": 1}
    assert lanes[LANE].topics == (scratch,)
    for _ in range(2):
        with LaneDrop(flow, LANE) as drop:
            drop.drop(f"{RUN_PREFIX}{secrets.token_hex(4)}", local_origin(), "ann@desk")
    admin = AdminClient({"bootstrap.servers": history.lab.target.bootstrap})
    wait_until(lambda: scratch not in admin.list_topics(timeout=ANSWER_S).topics, "the end of the deleted topic")
    groups = {group.group_id for group in admin.list_consumer_groups().result(ANSWER_S).valid}
    assert (f"ferry.{flow.flow}.{LANE}" in groups, f"ferry.{flow.flow}.drill-other" in groups) == (False, True)
    with history.lab.runs() as runs:
        left = [key for key in whole_ledger(runs).by_key if LANE in key]
    assert left == [f'["dropped","{LANE}"]']
    history.record(2.5)
    assert history.lab.micro_run().records == 1
    assert history.copy(history.hours(0, 1)).records == 1  # begun again, from nothing


def test_what_is_not_a_lane_of_history_is_not_dropped(history: History) -> None:
    history.record(0.5)
    history.lab.micro_run()
    with pytest.raises(BadInput, match="live"):
        LaneDrop(history.lab.flow, "live")
    with LaneDrop(history.lab.flow, LANE) as drop, pytest.raises(BadInput, match="backfill-january"):
        drop.preview()


def test_history_may_be_appended_to_live_topics_where_live_tolerates_other_writers(history: History) -> None:
    history.record(0.5, 1.5)
    start = replace(history.lab, settings={"ferry.start": f"{history.topic}:0:1"})
    assert start.micro_run().records == 1
    lane, window = "append-old", history.hours(0, 1)
    (refusal,) = history.copy(window, lane=lane).refusals
    assert "ferry.guard.foreign.writer = skip" in refusal.message
    tolerant = replace(start, settings={**start.settings, "ferry.guard.foreign.writer": "skip"})
    history.lab = tolerant
    assert history.copy(window, lane=lane).records == 1
    assert history.copy(window, lane=lane).records == 0
    history.record(2.5)
    assert tolerant.micro_run().records == 1
    rows = read_topic(tolerant.target.bootstrap, tolerant.target_topic(history.topic))[0]
    assert [row[2] for row in rows] == [b"1.5", b"0.5", b"2.5"]
    with LaneDrop(tolerant.flow, lane) as drop:
        assert drop.drop(f"{RUN_PREFIX}1", local_origin(), "ann@desk").topics == ()
    assert len(read_topic(tolerant.target.bootstrap, tolerant.target_topic(history.topic))[0]) == 3


@pytest.mark.parametrize("step", ["delete_topics", "delete_group", "forgetting_lane"])
def test_a_drop_that_was_cut_short_is_repeated_to_the_same_end(
    history: History, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.record(0.5)
    history.copy(history.hours(0, 1))
    done = getattr(dropping, step)

    def in_part(view: LedgerView, *rest: object) -> list[Record]:
        """All records but the last few: as if the process had been killed while it wrote them."""
        records: list[Record] = done(view, *rest)
        return records[:-3]

    async def killed(*arguments: object) -> None:
        await done(*arguments)
        raise Killed

    with monkeypatch.context() as patch, LaneDrop(history.lab.flow, LANE) as drop:
        patch.setattr(dropping, step, in_part if step == "forgetting_lane" else killed)
        with contextlib.suppress(Killed):
            drop.drop(f"{RUN_PREFIX}1", local_origin(), "ann@desk")
    assert LANE in {lane.name for lane in list_lanes(history.lab.flow)}
    with LaneDrop(history.lab.flow, LANE) as drop:
        drop.drop(f"{RUN_PREFIX}2", local_origin(), "ann@desk")
    with history.lab.runs() as runs:
        assert [key for key in whole_ledger(runs).by_key if LANE in key] == [f'["dropped","{LANE}"]']


@pytest.mark.parametrize("step", ["delete_topics", "forgetting_lane"])
def test_a_drop_that_a_run_has_overtaken_forgets_nothing_of_it(
    history: History, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.record(0.5, 1.5)
    history.copy(history.hours(0, 1))
    done = getattr(dropping, step)
    copied: list[Report] = []

    def overtake() -> None:
        if not copied:
            copied.append(history.copy(history.hours(0, 2)))

    def forgets_late(view: LedgerView, *rest: object) -> object:
        found = done(view, *rest)
        overtake()
        return found

    async def deletes_late(*arguments: object) -> object:
        found = await done(*arguments)
        overtake()
        return found

    monkeypatch.setattr(dropping, step, forgets_late if step == "forgetting_lane" else deletes_late)
    with LaneDrop(history.lab.flow, LANE) as drop, pytest.raises(Superseded):
        drop.drop(f"{RUN_PREFIX}1", local_origin(), "ann@desk")
    with history.runs() as runs:
        view = whole_ledger(runs)
    assert {run.generation for run in view.runs if run.record.run == copied[0].plan.run} == {copied[0].plan.generation}
    assert not list(dropped_lanes(view))
    kept = [one for one in receipts(view, lane=LANE) if one.run == copied[0].plan.run]
    assert sum(one.records for one in kept) == copied[0].records


def test_a_drop_that_a_run_has_overtaken_deletes_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.record(0.5)
    history.copy(history.hours(0, 1))

    async def late(*arguments: Any) -> Sealed:
        sealed = await fence_and_seal(*arguments)
        history.copy(history.hours(0, 1))
        return sealed

    monkeypatch.setattr(dropping, "fence_and_seal", late)
    with LaneDrop(history.lab.flow, LANE) as drop, pytest.raises(Superseded):
        drop.drop(f"{RUN_PREFIX}1", local_origin(), "ann@desk")
    assert history.scratch()[0] == ["0.5"]


class Killed(Exception):
    """Stands for the end of the process."""
