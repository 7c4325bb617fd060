"""Many groups at their coordinators: what goes wrong with one is said of it, and the others are done."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from ferry.errors import FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.features.groups.acts.written import outcome_of
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld, TopicInfo, event_loop
from ferry.kafka.groups.coordinators import NotPermittedGroup, coordinators
from ferry.kafka.groups.offsets import (
    MOST_CHECKS,
    CommittedOffsets,
    GroupActive,
    LastCheck,
    commit_offsets,
    fetch_offsets,
)
from ferry.model import CommittedOffset, TopicPartition
from tests.golden import Golden

pytestmark = pytest.mark.usefixtures("skipped_waits")

PLACES = [TopicPartition("orders", number) for number in range(3)]


class Scripted(Cluster):
    """Group `two` is kept by broker 2, all others by broker 1; nothing is connected, `say` is what they answer."""

    def __init__(self) -> None:
        self.codes: dict[str, Iterator[int]] = {}
        self.parts: dict[TopicPartition, int] = {}
        self.silent: set[int] = set()
        self.moved = False
        self.asked: Counter[str] = Counter()
        self.sent: list[Any] = []
        self.old = False
        super().__init__(event_loop(), "primary", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.4)

    @property
    def brokers(self) -> tuple[int, ...]:
        return (1, 2)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        return self.topics

    def _node(self, group: str) -> int:
        return 2 if group == "two" and not self.moved else 1

    async def submit(self, request: Any, node: int | None = None, **_: Any) -> Any:
        return request  # one by one, as brokers before 3.0 are asked

    async def answered(self, answer: Any) -> Any:
        return SimpleNamespace(error_code=codes.NONE, node_id=self._node(answer.key))

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        if isinstance(request, MetadataRequest):
            return SimpleNamespace(error_code=codes.NONE)
        if isinstance(request, FindCoordinatorRequest):
            if self.old:
                raise TooOld("too old")
            found = [
                SimpleNamespace(
                    key=group,
                    node_id=self._node(group),
                    error_code=codes.GROUP_AUTHORIZATION_FAILED if group == "hidden" else codes.NONE,
                )
                for group in request.coordinator_keys
            ]
            return SimpleNamespace(coordinators=found)
        if node in self.silent:
            self.moved = True
            raise Retryable(f"broker {node}: connection refused")
        self.sent.append(request)
        self.asked[request.group_id] += 1
        code = next(self.codes.get(request.group_id, iter(())), codes.NONE)
        topics = [
            SimpleNamespace(
                name=topic.name,
                partitions=[
                    SimpleNamespace(
                        partition_index=part.partition_index,
                        error_code=code or self.parts.get(TopicPartition(topic.name, part.partition_index), 0),
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return SimpleNamespace(topics=topics)

    def commit(self, *groups: str) -> CommittedOffsets:
        offsets = {group: {place: CommittedOffset(offset=7) for place in PLACES} for group in groups}
        found: CommittedOffsets = self.loop.run(partial(commit_offsets, self, offsets))
        return found


@pytest.fixture
def cluster() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.close()
    scripted.loop.close()


def forever(code: int) -> Iterator[int]:
    while True:
        yield code


@pytest.mark.parametrize(
    ("answers", "kind", "said"),
    [
        (lambda: forever(codes.GROUP_AUTHORIZATION_FAILED), NotPermittedGroup, "grant READ on it$"),
        (lambda: forever(codes.UNKNOWN_MEMBER_ID), GroupActive, "has members"),
        (lambda: forever(codes.REBALANCE_IN_PROGRESS), GroupActive, "its offsets are theirs"),
        (lambda: forever(codes.STALE_MEMBER_EPOCH), GroupActive, "has members"),
        (lambda: forever(codes.GROUP_ID_NOT_FOUND), Refused, r"\(69\)"),
        (lambda: forever(codes.COORDINATOR_LOAD_IN_PROGRESS), Unreachable, r"\(14\): look at that broker"),
    ],
)
def test_what_stands_against_one_group_is_its_own(
    cluster: Scripted, answers: Callable[[], Iterator[int]], kind: type[FerryError], said: str
) -> None:
    cluster.codes["bad"] = answers()
    done = cluster.commit("bad", "good", "two")
    assert done.refused == {}
    (error,) = done.failed.values()
    assert (list(done.failed), type(error)) == (["bad"], kind)
    assert re.search(said, str(error)), error
    assert (cluster.asked["good"], cluster.asked["two"]) == (1, 1), "who is done is not asked again"
    assert (cluster.asked["bad"] > 1) is (kind is Unreachable), "what is final is not asked again"


def test_what_passes_is_waited_for(cluster: Scripted) -> None:
    cluster.codes["bad"] = iter([codes.COORDINATOR_LOAD_IN_PROGRESS, codes.NOT_COORDINATOR])
    assert cluster.commit("bad", "good") == CommittedOffsets(failed={}, refused={})
    assert cluster.asked == {"bad": 3, "good": 1}


def test_groups_of_a_broker_that_is_gone_are_asked_where_they_are_then(cluster: Scripted) -> None:
    cluster.silent = {2}
    assert cluster.commit("two", "good") == CommittedOffsets(failed={}, refused={})
    assert cluster.asked == {"two": 1, "good": 1}


def test_what_stands_against_one_partition_leaves_the_others_of_its_group(cluster: Scripted) -> None:
    cluster.parts = {
        PLACES[0]: codes.UNKNOWN_TOPIC_OR_PARTITION,
        PLACES[1]: codes.TOPIC_AUTHORIZATION_FAILED,
        PLACES[2]: codes.OFFSET_METADATA_TOO_LARGE,
    }
    done = cluster.commit("app")
    assert done.failed == {}
    assert list(done.refused["app"]) == PLACES
    for said, place in zip(("no longer has orders-0", "grant READ on its topic", "metadata"), PLACES, strict=True):
        assert said in done.refused["app"][place]


def test_a_group_that_may_not_be_seen_is_said(cluster: Scripted, golden: Golden) -> None:
    done = cluster.commit("hidden", "good")
    golden(done.failed["hidden"], "commit")
    assert cluster.asked == {"good": 1}
    found = cluster.loop.run(partial(coordinators, cluster, ["hidden"]))
    golden(found.denied["hidden"], "coordinator")


def test_old_brokers_are_asked_one_by_one(cluster: Scripted) -> None:
    cluster.old = True
    found = cluster.loop.run(partial(coordinators, cluster, ["a", "two"]))
    assert (found.nodes, found.denied, found.failed) == ({"a": 1, "two": 2}, {}, {})


def test_a_group_with_very_many_offsets_is_written_in_parts(cluster: Scripted) -> None:
    """A broker writes a request as one batch, and metadata may be 4 KiB for each partition."""
    places = [TopicPartition("orders", number) for number in range(200)]
    offsets = {"app": {place: CommittedOffset(offset=1, metadata="m" * 4_000) for place in places}}
    assert cluster.loop.run(partial(commit_offsets, cluster, offsets)).failed == {}
    assert len(cluster.sent) > 1
    sent = [part.partition_index for request in cluster.sent for topic in request.topics for part in topic.partitions]
    assert sorted(sent) == list(range(200))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (codes.UNKNOWN_MEMBER_ID, GroupActive),
        (codes.GROUP_AUTHORIZATION_FAILED, NotPermittedGroup),
        (codes.COORDINATOR_LOAD_IN_PROGRESS, Unreachable),
    ],
)
def test_what_was_written_of_a_group_before_it_failed_counts(
    cluster: Scripted, code: int, kind: type[FerryError]
) -> None:
    """A member joins between two requests, a grant is taken away, or the coordinator moves and does not load."""
    places = [TopicPartition(f"topic-{number % 30}", number // 30) for number in range(3_000)]
    offsets = {"app": {place: CommittedOffset(offset=1) for place in places}, "good": {PLACES[0]: CommittedOffset(7)}}
    cluster.codes["app"] = chain([codes.NONE], forever(code))
    done = cluster.loop.run(partial(commit_offsets, cluster, offsets))
    first = next(request for request in cluster.sent if request.group_id == "app")
    acknowledged = {
        TopicPartition(topic.name, part.partition_index) for topic in first.topics for part in topic.partitions
    }
    assert 0 < len(acknowledged) < len(places)
    assert done.written == {"app": acknowledged, "good": {PLACES[0]}}
    assert {group: type(error) for group, error in done.failed.items()} == {"app": kind}
    assert f"{len(acknowledged)} of 3000 offsets" in str(done.failed["app"])
    outcome = outcome_of(offsets, done, left=(), unchanged=0, at_ms=0)
    assert (outcome.groups, outcome.offsets) == (2, len(acknowledged) + 1)
    assert [one.group for one in outcome.left] == ["app"]


def test_a_partition_that_another_answer_refuses_is_not_written(cluster: Scripted) -> None:
    cluster.parts = {PLACES[1]: codes.UNKNOWN_TOPIC_OR_PARTITION}
    done = cluster.commit("app")
    assert (done.written, list(done.refused["app"])) == ({"app": {PLACES[0], PLACES[2]}}, [PLACES[1]])


def test_nothing_is_asked_about_no_group(cluster: Scripted) -> None:
    assert cluster.commit() == CommittedOffsets(failed={}, refused={})
    assert cluster.loop.run(partial(fetch_offsets, cluster, {}, stable=True)).found == {}
    assert not cluster.asked


def test_the_last_check_comes_after_the_connection_and_right_before_each_commit(cluster: Scripted) -> None:
    """A process that sleeps in between must not write what another one has written since."""
    events: list[str] = []
    ask = cluster.ask

    async def noted(request: Any, node: int | None = None, **more: Any) -> Any:
        events.append(type(request).__name__)
        if isinstance(request, MetadataRequest):
            return SimpleNamespace(error_code=codes.NONE)
        return await ask(request, node, **more)

    cluster.ask = noted  # type: ignore[method-assign]
    offsets = {group: {PLACES[0]: CommittedOffset(offset=7)} for group in ("good", "better")}

    async def look() -> None:
        events.append("look")

    looked = partial(commit_offsets, cluster, offsets, last_check=look)
    assert cluster.loop.run(looked).failed == {}
    commits = [at for at, event in enumerate(events) if event == "OffsetCommitRequest"]
    assert len(commits) == 2
    assert [events[at - 1] for at in commits] == ["look", "look"]
    assert events.index("MetadataRequest") < events.index("look")


def test_after_a_look_that_finds_another_process_nothing_is_written(cluster: Scripted) -> None:
    async def lost() -> None:
        raise Superseded("another process does it")

    cluster.codes["good"] = iter(())
    offsets = {"good": {PLACES[0]: CommittedOffset(offset=7)}}
    with pytest.raises(Superseded):
        cluster.loop.run(partial(commit_offsets, cluster, offsets, last_check=lost))
    assert not cluster.sent


class Ticks:
    """A clock that moves by what each look takes, and by sleeps between them."""

    def __init__(self, looks: float = 0.01) -> None:
        self.now = 100.0
        self.looked = 0
        self._takes = looks

    async def look(self) -> None:
        self.looked += 1
        self.now += self._takes


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    made = Ticks()
    monkeypatch.setattr("ferry.kafka.groups.offsets.time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_requests_that_follow_at_once_share_a_look_and_a_sleep_ends_it(ticks: Ticks) -> None:
    last = LastCheck(ticks.look)
    for _ in range(20):
        asyncio.run(last())
    assert ticks.looked == 1
    ticks.now += 3600
    asyncio.run(last())
    assert ticks.looked == 2


def test_a_sleep_within_a_look_is_followed_by_another_look(ticks: Ticks) -> None:
    slept = iter([5.0, 0.0])

    async def look() -> None:
        await ticks.look()
        ticks.now += next(slept)

    asyncio.run(LastCheck(look)())
    assert ticks.looked == 2


def test_a_ledger_that_always_answers_slowly_stops_no_switch(ticks: Ticks) -> None:
    async def slow() -> None:
        await ticks.look()
        ticks.now += 1

    asyncio.run(LastCheck(slow)())
    assert ticks.looked == MOST_CHECKS


def test_a_look_that_has_not_ended_does_not_count_for_another_request(ticks: Ticks) -> None:
    """Requests to several coordinators are on their way at the same time."""

    async def look() -> None:
        await asyncio.sleep(0)
        raise Superseded("another process does it")

    async def both() -> tuple[BaseException | None, ...]:
        last = LastCheck(look)
        return tuple(await asyncio.gather(last(), last(), return_exceptions=True))

    assert [type(one) for one in asyncio.run(both())] == [Superseded, Superseded]
