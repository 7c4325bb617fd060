"""The questions of the page to its reader, each a dataclass; the answers are in `ferry.reader.documents`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ferry.model import TopicPartition

A_PAGE = 50
"""Rows of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfStatus:
    """The state of the flow with `runs` of its runs; no answer if the last one has this `mark` and nothing changed."""

    runs: int
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTopics:
    """A page of the topics in an order; `paused`: only those that are."""

    page: int = 1
    q: str = ""
    sort: str = "seconds"
    paused: bool = False
    size: int = A_PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTopic:
    """A topic, and a page of its partitions."""

    topic: str
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLag:
    """The lag of one partition."""

    place: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnknown:
    """The first of some topics that the source did not show at the last poll, if it answered; a poll follows then."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRefusals:
    """A page of what runs refused, one row for each reason and place."""

    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSeries:
    """Figures over time of the flow, of one topic or of one partition."""

    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    """A run, and a page of each of its lists; `q` is a part of the names of topics."""

    run: str
    lane: str = ""
    q: str = ""
    page: int = 1
    dealt: int = 1
    refused: int = 1
    notes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReceipts:
    """A page of the receipts of a source partition, newest first."""

    place: TopicPartition
    page: int = 1
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReceipt:
    """The receipt that begins at an offset, and a page of its segments; with an empty `run` the newest one."""

    place: TopicPartition
    start: int
    run: str = ""
    lane: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDealt:
    """The target partitions of a repartitioned source partition; `offset` and `key` are of a record, if given."""

    place: TopicPartition
    page: int = 1
    parts: int = 1
    offset: int | None = None
    key: str = ""
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOffset:
    """The target offset of a source offset; `backward`: the source offset of a target offset."""

    place: TopicPartition
    offset: int
    backward: bool = False
    lane: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGroups:
    """A page of the consumer groups; `group`: that one alone, with a page of its `partitions`."""

    page: int = 1
    q: str = ""
    group: str = ""
    partitions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLanes:
    """The lanes other than the flow's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfLane:
    """A lane, and a page of its runs and of what it has copied."""

    lane: str
    page: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReports:
    """A page of the reports that are about the flow."""

    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReport:
    """The page of a report, as it is in the folder."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Plan a run, pause or resume a topic, for `who`. An empty `topic` is the whole flow."""

    who: str
    what: Literal["plan", "pause", "resume"]
    event: str
    """Its name in Airflow's audit log: each user has at most one running of a kind."""
    topics: tuple[str, ...] = ()
    topic: str = ""
    why: str = ""
    since_ms: int = 0
    until_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfJob:
    """The state of a job, of any flow."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Poll now rather than in a few seconds."""
