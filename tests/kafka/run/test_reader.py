"""The page's reader over two real clusters: each question of a page, answered by its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.groups.rules.page import OfGroups
from ferry.model import OffsetWindow, TopicPartition
from ferry.plan.options import RunOptions
from ferry.reader.client import Reader
from ferry.reader.documents import JobStory, LanePage, PastState
from ferry.reader.process import ReaderProcess
from ferry.reader.questions import (
    Begin,
    OfJob,
    OfLag,
    OfLane,
    OfLanes,
    OfOffset,
    OfReceipt,
    OfReceipts,
    OfRefusals,
    OfRun,
    OfSeries,
    OfTopic,
    OfTopics,
    OfUnknown,
)
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.tiers import ANSWER_S

LANE = "backfill-jan"


def unknown(conn_id: str) -> NoReturn:
    raise AssertionError(f"no connection is named, and {conn_id} was looked up")


@dataclass(frozen=True)
class Asker:
    """What a page asks of a flow that has copied twenty records live, and three of a window."""

    reader: Reader
    flow: str
    topic: str
    run: str

    @property
    def place(self) -> TopicPartition:
        """One of the two partitions."""
        return TopicPartition(topic=self.topic, partition=1)

    def answer(self, question: Any) -> Any:
        """What a page shows at last."""
        found: list[Any] = []

        def is_there() -> bool:
            one = self.reader.ask(self.flow, question)
            assert not one.error, one.error
            found.append(one.got)
            return not one.waiting and not one.is_asked and one.got is not None

        wait_until(is_there, f"an answer to {question}", 2 * ANSWER_S)
        return found[-1]

    def done(self, begin: Begin) -> JobStory:
        """What came of something."""
        story: JobStory = self.reader.act(self.flow, begin).got
        assert not story.refused
        found: list[JobStory] = []

        def is_done() -> bool:
            found.append(self.answer(OfJob(job=story.job)))
            return found[-1].done

        wait_until(is_done, f"{begin}", 2 * ANSWER_S)
        return found[-1]


@pytest.fixture
def asker(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Asker]:
    """A page with a reader of its own."""
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    run = lab.micro_run().plan.run
    with MicroRuns(lab.flow, lane=LANE) as runs:
        window = OffsetWindow(ranges={TopicPartition(topic=topic, partition=1): (1, 4)})
        lab.copy(runs, runs.open_run("jan", local_origin(), RunOptions(window=window)))
    config = lab.write(tmp_path)
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    process = ReaderProcess.of(tmp_path / "ferry", {})
    reader = Reader(process.exchange, config=str(config), deployment=lab.flow.deployment, lookup=unknown)
    yield Asker(reader, str(lab.flow.flow), topic, run)
    if process._process is not None:
        os.kill(process._process.pid, signal.SIGTERM)
        process._process.wait(ANSWER_S)


def test_each_question_of_a_page_is_answered_by_the_process(asker: Asker) -> None:
    wait_until(lambda: bool(asker.reader.status(asker.flow).runs), "a look", 2 * ANSWER_S)
    assert_it_was_looked_at(asker)
    assert_the_ledger_answers(asker)
    assert_it_is_planned_and_paused(asker)


def assert_it_was_looked_at(asker: Asker) -> None:
    answer, topic = asker.answer, asker.topic
    seen = asker.reader.status(asker.flow)
    assert (seen.troubles, seen.hindrances, seen.never_ran, seen.topics) == ((), (), False, 1)
    assert [(one.run, one.state, one.records) for one in seen.runs] == [(asker.run, PastState.SUCCESS, 20)]
    assert seen.other_lanes == 1
    assert [row.topic for row in answer(OfTopics()).rows] == [topic]
    assert [one.records for one in answer(OfTopic(topic=topic)).parts.rows] == [0, 0]
    assert answer(OfLag(place=asker.place)).records == 0
    assert answer(OfUnknown(topics=(topic, "nosuch"))).topic == "nosuch"
    assert answer(OfRefusals()).total == 0
    assert [one.records for one in answer(OfSeries(topic=topic)).runs] == [20]


def assert_the_ledger_answers(asker: Asker) -> None:
    answer, place = asker.answer, asker.place
    told = answer(OfRun(run=asker.run))
    assert (told.figures.records, told.receipts.total, told.opened.record.run) == (20, 2, asker.run)
    receipt = answer(OfReceipts(place=place)).rows[0].receipt
    assert receipt.source == place
    story = answer(OfReceipt(place=place, start=receipt.start))
    assert story.segments.total == 1
    part = story.segments.rows[0]
    where = answer(OfOffset(place=place, offset=part.source_start + 1))
    assert (where.word, where.offset, len(where.held)) == ("exact", part.target_start + 1, 1)
    assert answer(OfGroups()).groups.page == 1
    assert [(one.name, one.records) for one in answer(OfLanes())] == [(LANE, 3)]
    lane: LanePage = answer(OfLane(lane=LANE))
    assert ([one.run for one in lane.runs], lane.copied.total) == (["jan"], 1)


def assert_it_is_planned_and_paused(asker: Asker) -> None:
    plan = asker.done(Begin(who="ada", what="plan", event="ferry_dry_run"))
    assert plan.plan is not None
    assert (plan.plan.offsets, plan.plan.caught_up) == (0, 2)
    paused = asker.done(Begin(who="ada", what="pause", event="ferry_pause", why="migration", since_ms=wall_ms()))
    assert paused.text.startswith(f"Flow {asker.flow} is paused. ")
    wait_until(lambda: asker.reader.status(asker.flow).pause is not None, "the pause", 2 * ANSWER_S)
    resumed = asker.done(Begin(who="ada", what="resume", event="ferry_resume"))
    assert resumed.text.startswith(f"Flow {asker.flow} continues ")
