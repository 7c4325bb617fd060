"""The questions of the page to its reader, each with the type of its answer (`ferry.reader.documents`). Pure.

Questions about a feature are in the feature's folder (`ferry.page.part`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ferry.model import TopicPartition
from ferry.model.switch import Verb
from ferry.page.cut import A_PAGE, Cut
from ferry.page.question import Question
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.charts import Missed, Series
from ferry.reader.documents import (
    ClustersStory,
    DealtPage,
    Done,
    JobStory,
    LaneLine,
    LanePage,
    OffsetStory,
    ReceiptLine,
    ReceiptStory,
    Recurring,
    RunStory,
    Status,
    TopicRow,
    TopicStory,
    Unknown,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfStatus(Question[Status]):
    """The state of the flow with `runs` of its runs; no answer if the last one has this `mark` and nothing changed."""

    runs: int
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfClusters(Question[ClustersStory]):
    """What the brokers of both clusters show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTopics(Question[Cut[TopicRow]]):
    """A page of the topics in an order; `paused`: only those that are.

    `q` is a part of their names. `copies`: topics of the target instead, by name; each once, with one of its sources.
    """

    page: int = 1
    q: str = ""
    copies: bool = False
    sort: str = "seconds"
    paused: bool = False
    size: int = A_PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTopic(Question[TopicStory]):
    """A topic, and a page of its partitions."""

    topic: str
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLag(Question[PartitionLag]):
    """The lag of one partition."""

    place: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnknown(Question[Unknown]):
    """The first of some topics that the source did not show at the last poll, if it answered; a poll follows then."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRefusals(Question[Cut[Recurring]]):
    """A page of what runs refused, one row for each reason and place."""

    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSeries(Question[Series]):
    """Figures over time of the flow, of one topic or of one partition, since a time (epoch ms)."""

    topic: str | None = None
    partition: int | None = None
    since_ms: int = 0
    missed: tuple[Missed, ...] = ()
    """What Airflow keeps of tasks that a cluster did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun(Question[RunStory]):
    """A run, and a page of each of its lists; `q` is a part of the names of topics."""

    run: str
    lane: str = ""
    q: str = ""
    page: int = 1
    dealt: int = 1
    refused: int = 1
    notes: int = 1
    at_work: bool = False
    """Whether the run is active: then nothing of it is unfinished yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReceipts(Question[Cut[ReceiptLine]]):
    """A page of the receipts of a source partition, newest first."""

    place: TopicPartition
    page: int = 1
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReceipt(Question[ReceiptStory]):
    """The receipt that begins at an offset, and a page of its segments; with an empty `run` the newest one."""

    place: TopicPartition
    start: int
    run: str = ""
    lane: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDealt(Question[DealtPage]):
    """The target partitions of a repartitioned source partition; `offset` and `key` are of a record, if given."""

    place: TopicPartition
    page: int = 1
    parts: int = 1
    offset: int | None = None
    key: str = ""
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOffset(Question[OffsetStory]):
    """The target offset of a source offset; `backward`: the source offset of a target offset."""

    place: TopicPartition
    offset: int
    backward: bool = False
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLanes(Question[tuple[LaneLine, ...]]):
    """The lanes other than the flow's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLane(Question[LanePage]):
    """A lane, and a page of its runs and of what it has copied."""

    lane: str
    page: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Question[JobStory]):
    """Plan a run, check readiness, pause or resume a topic, for `who`. An empty `topic` is the whole flow."""

    who: str
    what: Literal["plan", "readiness", "pause", "resume"]
    event: str
    """Its name in Airflow's audit log: each user has at most one running of a kind."""
    topics: tuple[str, ...] = ()
    topic: str = ""
    why: str = ""
    since_ms: int = 0
    until_ms: int = 0
    verb: Verb = Verb.SWITCHOVER
    """The switch that readiness is checked for."""
    reverse: bool = True
    """Whether that switch starts the flow back at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfJob(Question[JobStory]):
    """The state of a job, of any flow."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Question[Done]):
    """Poll now rather than in a few seconds."""
