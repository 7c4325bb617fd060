"""What passes between the page and its reader: each question and each answer has a form, and nothing else is made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest

from ferry.config.flow.parts import RecoveryPoint
from ferry.errors import Corrupt
from ferry.features.evidence.rules.page import OfReport, OfReports, ReportPage, ReportsStory
from ferry.features.groups.rules.page import OfGroups
from ferry.model import TopicPartition
from ferry.page.cut import Cut
from ferry.page.question import Question, answer_type
from ferry.plan.rules.lag import PartitionLag, total_of
from ferry.reader import questions
from ferry.reader.answering import handlers
from ferry.reader.documents import Status, TopicRow, TopicStory
from ferry.reader.limits import MOST_REFUSALS
from ferry.reader.questions import OfDealt, OfJob, OfRun, OfStatus, OfTopics
from ferry.reader.snapshot import Snapshot, by_topic, topic_rows
from ferry.reader.status import status_of, topics_of
from ferry.reader.typed import dump, load
from tests.pure.decide.values import place

LAG = PartitionLag(
    source=place("orders"), target=place("a.orders"), position=3, source_end=9, records=6, bytes=None, seconds=2.5
)
ROW = TopicRow(topic="orders", target="a.orders", total=total_of([LAG]), paused=None)


def again(hint: Any, value: Any) -> Any:
    """A value that was written and read."""
    return load(hint, json.loads(json.dumps(dump(hint, value))))


ALL = (*handlers(), OfJob)


@pytest.mark.parametrize("question", ALL, ids=lambda of: of.__name__)
def test_each_question_and_its_answer_have_a_form(question: type[Question[Any]]) -> None:
    for hint in (question, answer_type(question)):
        with pytest.raises(Corrupt):
            load(hint, 7)


def test_no_two_questions_pass_under_the_same_name() -> None:
    assert len({of.__name__ for of in ALL}) == len(ALL)


def test_a_question_of_a_page_has_a_handler() -> None:
    own = {of for of in vars(questions).values() if isinstance(of, type) and of.__module__ == questions.__name__}
    assert own <= {*ALL}
    assert {OfReports, OfReport, OfGroups} <= {*ALL}
    assert (answer_type(OfReports), answer_type(OfReport)) == (ReportsStory, ReportPage)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (OfRun, OfRun(run="manual__2026-11-22T10:15:00+00:00", q="é\ud800")),
        (OfDealt, OfDealt(place=TopicPartition("t", 0), offset=7)),
        (OfStatus, OfStatus(runs=3)),
        (Cut[TopicRow], Cut(rows=(ROW,), page=1, pages=2, total=51)),
        (TopicStory, TopicStory(row=None, parts=Cut(rows=(LAG,), page=1, pages=1, total=1))),
        (ReportPage, ReportPage(content=b"\xff<p>")),
        (Status, Status(number=3, total=total_of([LAG]))),
    ],
)
def test_what_is_written_is_read_again(hint: Any, value: Any) -> None:
    assert again(hint, value) == value


class Colour(Enum):
    """One of two."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A value of each kind."""

    number: int
    share: float
    name: str | None
    colour: Colour
    word: Literal["a", "b"]
    rows: tuple[tuple[int, str], ...]
    fact: int | str


GOOD = {"number": 1, "share": 2, "name": None, "colour": "red", "word": "a", "rows": [[1, "x"]], "fact": "y"}


def test_a_value_of_each_kind_is_read() -> None:
    thing = Thing(number=1, share=2.0, name=None, colour=Colour.RED, word="a", rows=((1, "x"),), fact="y")
    assert load(Thing, GOOD) == thing
    assert again(Thing, thing) == thing


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": True},
        {"number": "1"},
        {"share": "2"},
        {"name": 3},
        {"colour": "green"},
        {"word": "c"},
        {"rows": {"1": "x"}},
        {"rows": [[1]]},
        {"rows": "ab"},
        {"fact": 1.5},
    ],
)
def test_what_is_of_another_kind_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        load(Thing, {**GOOD, **wrong})


def test_what_lacks_a_field_or_has_another_is_refused() -> None:
    for body in ({key: value for key, value in GOOD.items() if key != "word"}, {**GOOD, "more": 1}, [GOOD]):
        with pytest.raises(Corrupt):
            load(Thing, body)


def test_a_status_of_ten_thousand_partitions_is_small_and_a_page_of_them_too() -> None:
    lags = [
        PartitionLag(
            source=TopicPartition(f"topic-{number:05d}", 0),
            target=TopicPartition(f"a.topic-{number:05d}", 0),
            position=1,
            source_end=2,
            records=1,
            bytes=1,
            seconds=1.0,
        )
        for number in range(10_000)
    ]
    seen = Snapshot(number=1, lags=by_topic(lags), topics=topic_rows(by_topic(lags), {}), total=total_of(lags))
    status = status_of(seen, RecoveryPoint(records=0, seconds=None), "live")
    assert status.topics == 10_000
    assert status.behind is not None
    assert status.behind.count == 10_000
    assert len(json.dumps(dump(Status, status))) < 4_000
    page = topics_of(seen, OfTopics(size=MOST_REFUSALS))
    assert len(json.dumps(dump(Cut[TopicRow], page))) < 20_000
