"""What a controller's refusals come to: one topic at a time, and for good or for now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.admin.topic_settings import batch_limits, topic_settings, topic_settings_each
from ferry.kafka.admin.topics import (
    NewTopic,
    NotPermitted,
    PolicyViolated,
    QuotaExceeded,
    TooFewBrokers,
    create_topics,
    delete_topics,
    grow_topics,
)
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.model import ChangeKind, RefusalKind, TopicChange
from ferry.plan.change_topics import change_topics
from tests.golden import Golden, brief

pytestmark = pytest.mark.usefixtures("skipped_waits")

Answer = Callable[[list[str]], dict[str, int]]
Created = Callable[..., dict[str, FerryError]]


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> Iterator[Created]:
    """Creates topics on a controller that answers each request with a code by topic."""
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)

    def work(answer: Answer, names: list[str], partitions: int = 600) -> dict[str, FerryError]:
        async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
            said = answer([topic.name for topic in request.topics])
            return SimpleNamespace(
                topics=[SimpleNamespace(name=name, error_code=code, error_message=None) for name, code in said.items()]
            )

        monkeypatch.setattr(Cluster, "ask", ask)
        topics = [NewTopic(name=name, partitions=partitions, replication_factor=1, configs={}) for name in names]
        result: dict[str, FerryError] = loop.run(partial(create_topics, cluster, topics))
        return result

    yield work
    cluster.close()
    loop.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (codes.TOPIC_AUTHORIZATION_FAILED, NotPermitted),
        (codes.POLICY_VIOLATION, PolicyViolated),
        (codes.INVALID_REPLICATION_FACTOR, TooFewBrokers),
        (codes.INVALID_CONFIG, Refused),
    ],
    ids=brief,
)
def test_a_refusal_names_the_topic_and_the_remedy(
    created: Created, code: int, kind: type[Refused], golden: Golden
) -> None:
    failed = created(lambda names: {name: code if name == "bad" else 0 for name in names}, ["good", "bad", "last"])
    assert set(failed) == {"bad"}
    assert type(failed["bad"]) is kind
    golden(failed["bad"])


def test_a_quota_is_waited_for(created: Created) -> None:
    asked: list[list[str]] = []

    def answer(names: list[str]) -> dict[str, int]:
        asked.append(names)
        return {name: codes.THROTTLING_QUOTA_EXCEEDED if len(asked) == 1 else 0 for name in names}

    assert created(answer, ["one"]) == {}
    assert asked == [["one"], ["one"]]


def test_a_quota_that_stays_used_up_leaves_topics_to_the_next_run(created: Created, golden: Golden) -> None:
    """Six hundred partitions each: a request takes one of them."""

    def answer(names: list[str]) -> dict[str, int]:
        return {name: 0 if name == "first" else codes.THROTTLING_QUOTA_EXCEEDED for name in names}

    failed = created(answer, ["first", "second", "third"])
    assert {name: type(error) for name, error in failed.items()} == {"second": QuotaExceeded, "third": QuotaExceeded}
    golden(failed["third"])


def test_a_quota_that_asks_for_more_than_the_patience_is_not_waited_for(
    created: Created, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker has paused the connection for so long, and everything else would wait behind it."""
    asked: list[list[str]] = []
    monkeypatch.setattr(Cluster, "pause_s", 89.0)

    def answer(names: list[str]) -> dict[str, int]:
        asked.append(names)
        return {name: 0 if name == "first" else codes.THROTTLING_QUOTA_EXCEEDED for name in names}

    failed = created(answer, ["first", "second", "third"])
    assert {name: type(error) for name, error in failed.items()} == {"second": QuotaExceeded, "third": QuotaExceeded}
    assert len(asked) == 2, "one request for each portion that was begun, none again"


def test_a_controller_that_moves_all_the_time_is_no_quota(created: Created) -> None:
    def answer(names: list[str]) -> dict[str, int]:
        return dict.fromkeys(names, codes.NOT_CONTROLLER)

    with pytest.raises(Unreachable):
        created(answer, ["one"])


@pytest.mark.parametrize("code", [codes.REQUEST_TIMED_OUT, codes.NOT_ENOUGH_REPLICAS])
def test_a_topic_that_is_never_created_in_time_stops_no_other(created: Created, code: int, golden: Golden) -> None:
    """Six hundred partitions each: each is in a request of its own."""
    asked: list[str] = []

    def answer(names: list[str]) -> dict[str, int]:
        asked.extend(names)
        return {name: code if name == "bad" else 0 for name in names}

    failed = created(answer, ["first", "bad", "last"])
    assert {name: type(error) for name, error in failed.items()} == {"bad": Unreachable}
    assert (asked[0], asked[-1], asked.count("last")) == ("first", "last", 1)
    golden(failed["bad"])


def test_a_topic_that_is_late_and_a_quota_are_named_each(created: Created) -> None:
    said = {"late": codes.REQUEST_TIMED_OUT, "over": codes.THROTTLING_QUOTA_EXCEEDED}

    def answer(names: list[str]) -> dict[str, int]:
        return {name: said.get(name, 0) for name in names}

    failed = created(answer, ["first", "late", "over", "next"], partitions=300)
    assert {name: type(error) for name, error in failed.items()} == {
        "late": Unreachable,
        "over": QuotaExceeded,
        "next": QuotaExceeded,
    }


def test_a_controller_that_never_answers_is_unreachable(created: Created) -> None:
    def answer(names: list[str]) -> dict[str, int]:
        raise Retryable("connection refused")

    with pytest.raises(Unreachable):
        created(answer, ["one"])


def test_a_topic_that_an_earlier_try_grew_is_done_though_another_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)

    async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
        return SimpleNamespace(
            results=[
                SimpleNamespace(
                    name=topic.name,
                    error_code=codes.REQUEST_TIMED_OUT if topic.name == "late" else codes.INVALID_REQUEST,
                    error_message=None,
                )
                for topic in request.topics
            ]
        )

    async def refresh(_: Cluster, topics: Collection[str]) -> dict[str, Any]:
        return {name: SimpleNamespace(partitions=dict.fromkeys(range(6 if name == "grown" else 2))) for name in topics}

    monkeypatch.setattr(Cluster, "ask", ask)
    monkeypatch.setattr(Cluster, "refresh", refresh)
    failed = loop.run(lambda: grow_topics(cluster, {"grown": 6, "late": 6}))
    assert {name: type(error) for name, error in failed.items()} == {"late": Unreachable}
    cluster.close()
    loop.close()


def test_topics_are_deleted_by_their_ids_each_with_its_own_refusal(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)
    ids = {name: UUID(int=number) for number, name in enumerate(("done", "gone", "kept", "later"), start=1)}
    said = {
        ids["done"]: codes.NONE,
        ids["gone"]: codes.UNKNOWN_TOPIC_ID,
        ids["kept"]: codes.TOPIC_AUTHORIZATION_FAILED,
        ids["later"]: codes.THROTTLING_QUOTA_EXCEEDED,
    }

    async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
        assert all(state.name is None for state in request.topics)
        return SimpleNamespace(
            responses=[
                SimpleNamespace(name=None, topic_id=state.topic_id, error_code=said[state.topic_id], error_message=None)
                for state in request.topics
            ]
        )

    monkeypatch.setattr(Cluster, "ask", ask)
    failed: dict[str, FerryError] = loop.run(lambda: delete_topics(cluster, ids))
    assert {name: type(error) for name, error in failed.items()} == {"kept": NotPermitted, "later": QuotaExceeded}
    golden(failed["kept"])
    assert loop.run(lambda: delete_topics(cluster, {})) == {}
    cluster.close()
    loop.close()


def test_a_deletion_that_keeps_timing_out_is_a_refusal_and_the_others_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)
    ids = {f"a.{name}": UUID(int=number) for number, name in enumerate(("gone", "other"), start=1)}
    cluster.topics = {
        name: TopicInfo(name=name, topic_id=topic_id, internal=False, partitions={}) for name, topic_id in ids.items()
    }

    async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
        late = {ids["a.gone"]: codes.REQUEST_TIMED_OUT}
        return SimpleNamespace(
            responses=[
                SimpleNamespace(
                    name=None, topic_id=one.topic_id, error_code=late.get(one.topic_id, 0), error_message=None
                )
                for one in request.topics
            ]
        )

    async def look() -> None:
        pass

    monkeypatch.setattr(Cluster, "ask", ask)
    changes = [
        TopicChange(kind=ChangeKind.DELETE, topic=name, source_topic=name[2:], partitions=1, replication_factor=1)
        for name in ids
    ]
    changed = loop.run(lambda: change_topics(cluster, changes, look))
    assert [one.topic for one in changed.done] == ["a.other"]
    assert {name: (one.topic, one.kind) for name, one in changed.unset.items()} == {
        "gone": ("gone", RefusalKind.NO_LEADER)
    }
    cluster.close()
    loop.close()


def test_settings_of_one_topic_that_are_answered_with_an_error_leave_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
        names = [one.resource_name for one in request.resources]
        asked.append(names)
        said = {"odd": -1, "secret": codes.TOPIC_AUTHORIZATION_FAILED, "late": 7 if len(asked) < 2 else 0}
        return SimpleNamespace(
            results=[SimpleNamespace(resource_name=name, error_code=said.get(name, 0), configs=[]) for name in names]
        )

    monkeypatch.setattr(Cluster, "ask", ask)
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)
    try:
        listed = loop.run(partial(topic_settings_each, cluster, ["good", "odd", "secret", "late"]))
        assert (sorted(listed.found), listed.denied, sorted(listed.failed)) == (["good", "late"], {"secret"}, ["odd"])
        assert asked[:3] == [["good", "odd", "secret", "late"], ["odd", "late"], ["odd"]]
        with pytest.raises(Unreachable, match="odd"):
            loop.run(partial(topic_settings, cluster, ["good", "odd"]))
        assert loop.run(partial(batch_limits, cluster, ["good", "odd"])) == {}
    finally:
        cluster.close()
        loop.close()
