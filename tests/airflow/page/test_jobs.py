"""A job of the page: who may read it, what its end shows, and that waiting for it takes no thread of Airflow's."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from anyio import to_thread
from fastapi import Request
from httpx import ASGITransport, AsyncClient

from ferry.model import AclBinding, AclChange, ChangeKind, Refusal, RefusalKind, TopicChange, Unsupported
from ferry.reader.client import Reader
from ferry.reader.process import Slow
from ferry.reader.watch import FlowWatch
from ferry.reader.watcher import MOST_WAITING, Job
from ferry_airflow.page import actions
from tests.airflow.page.conftest import HERE, Desk, Somebody
from tests.golden import Golden
from tests.pure.decide.values import PLAN, dealt_slice, piece, place
from tests.tiers import ANSWER_S


def test_a_job_is_told_only_to_who_began_it(desk: Desk) -> None:
    _, begun = desk.act("dry-run", {})
    answer = desk.client.get(f"/api/job/{begun['job']}")
    assert answer.json()["done"] is False
    job = desk.watcher.job(str(begun["job"]))
    assert job is not None
    job.who = "eve"
    assert desk.client.get(f"/api/job/{begun['job']}").status_code == 404


def test_a_plan_is_shown_and_an_error_told_by_the_request_itself(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    refused = Refusal(kind=RefusalKind.LOOP, topic="a", partition=0, message="topic <a> goes round")

    def ended(answer: object, error: str) -> None:
        def ask(who: str, what: str, work: Callable[[FlowWatch], Any]) -> Job:
            done = threading.Event()
            done.set()
            return Job(id="1", who=who, what=what, work=work, done=done, answer=answer, error=error)

        monkeypatch.setattr(desk.watcher, "ask", ask)

    ended(replace(PLAN, slices=(piece("orders", 3),), refusals=(refused,)), "")
    _, answer = desk.act("dry-run", {})
    assert answer["done"] is True
    assert "orders-3" in str(answer["html"])
    assert "topic &lt;a&gt; goes round" in str(answer["html"])
    ended(replace(PLAN, refusals=(refused,) * 22, notes=("late",) * 21), "")
    html = str(desk.act("dry-run", {})[1]["html"])
    assert (html.count("goes round"), html.count(">late<")) == (20, 20)
    more = re.findall(r'<li class="dim"><span class="text">([^<]*)', html)
    assert [re.findall(r"\d+", one) for one in more] == [["2"], ["1"]]
    golden("\n".join(more), "more refusals and notes, no more gaps")
    acl = AclBinding(
        resource_type="topic",
        resource_name="a.orders",
        pattern_type="literal",
        principal="User:ann",
        host="*",
        operation="Read",
        permission="allow",
    )
    drift = TopicChange(
        kind=ChangeKind.CONFIGURE,
        topic="a.orders",
        source_topic="orders",
        partitions=1,
        replication_factor=0,
        configs=(("retention.ms", "7"),),
    )
    besides = replace(
        PLAN,
        slices=(),
        acls=(AclChange(kind="create", binding=acl, source=acl),),
        drift=(drift,),
        not_copied=(Unsupported(what="client-quotas", count=2, message="two quotas"),),
    )
    ended(besides, "")
    html = str(desk.act("dry-run", {})[1]["html"]).replace("<wbr>", "")
    assert ["User:ann" in html, "retention.ms" in html, "two quotas" in html] == [True] * 3, "though nothing is copied"
    unit = dealt_slice(
        topic="t", target=place("a.t", 7), starts=(1, 0), ends=(5, 3), slot=0, since=1, partitions=2, digest=""
    )
    ended(replace(PLAN, slices=(unit, replace(unit, target=place("a.t", 8)))), "")
    _, answer = desk.act("dry-run", {})
    assert "a.t-7" in str(answer["html"]).replace("<wbr>", "")
    figure = re.search(r"<dd>(\d+)<small>([^<]*)", str(answer["html"]))
    assert figure is not None
    assert figure[1] == "7", "each is read once"
    golden(figure[2], "bytes of what is repartitioned")
    ended(None, "cluster backup does not answer")
    _, answer = desk.act("pause", {"topic": "orders", "why": "x"})
    assert (answer["done"], answer["error"]) == (True, "cluster backup does not answer")


def test_requests_that_wait_for_a_cluster_take_no_thread_of_airflows_and_are_few(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty-five people plan runs while no cluster answers: more than the threads of all synchronous routes."""
    monkeypatch.setattr(actions, "WAIT_SECONDS", 1e6)

    def signed_in(request: Request) -> Somebody:
        return Somebody(request.headers["X-User"])

    desk.app.dependency_overrides[get_user] = signed_in
    sent = {"X-Ferry-Request": "1", "Accept": "application/json"}

    async def pressed(client: AsyncClient, user: str) -> int:
        return (await client.post(f"/api{HERE}/dry-run", json={}, headers={**sent, "X-User": user})).status_code

    async def everybody() -> tuple[list[int], list[int]]:
        async with AsyncClient(transport=ASGITransport(app=desk.app), base_url="http://testserver") as client:
            asked = [asyncio.create_task(pressed(client, f"user{number}")) for number in range(45)]
            while sum(one.done() for one in asked) < 45 - MOST_WAITING:
                await asyncio.sleep(0.01)
            # Another route still answers, and no thread is held, once the last of those that wait has left its own.
            page = await client.get(f"{HERE}/", headers={"Accept": "text/html", "X-User": "ada"})
            assert page.status_code == 200
            while to_thread.current_default_thread_limiter().borrowed_tokens:
                await asyncio.sleep(0.01)
            assert sum(not one.done() for one in asked) == MOST_WAITING
            again = await pressed(client, "user0")
            refused = [one.result() for one in asked if one.done()]
            for job in list(desk.watcher.jobs):
                job.done.set()
            return [again, *refused], list(await asyncio.gather(*asked))

    refused, all_of_them = asyncio.run(everybody())
    assert set(refused) == {429}
    assert all_of_them.count(202) == MOST_WAITING
    assert all_of_them.count(429) == 45 - MOST_WAITING


async def signed_in_at_once() -> Somebody:
    """As Airflow's own: a coroutine, which takes no thread."""
    return Somebody()


def test_what_waits_for_the_reader_takes_no_thread_of_airflows(desk: Desk) -> None:
    """Pages and actions of twenty people, while the reader does not answer."""
    waiting, answers = threading.Semaphore(0), threading.Event()

    def silent(_: bytes, within: float) -> bytes:
        waiting.release()
        assert answers.wait(ANSWER_S)
        raise Slow

    desk.app.dependency_overrides[get_user] = signed_in_at_once
    desk.app.state.office = replace(desk.app.state.office, reader=Reader(silent, lookup=lambda _: {}))

    async def everybody() -> float:
        async with AsyncClient(transport=ASGITransport(app=desk.app), base_url="http://testserver") as client:
            sent = {"X-Ferry-Request": "1"}
            asked = [asyncio.create_task(client.get(f"{HERE}/topics")) for _ in range(10)]
            asked += [asyncio.create_task(client.post(f"/api{HERE}/dry-run", json={}, headers=sent)) for _ in range(10)]
            assert await asyncio.to_thread(waiting.acquire, timeout=ANSWER_S)
            taken = to_thread.current_default_thread_limiter().borrowed_tokens
            answers.set()
            await asyncio.gather(*asked)
            return taken

    assert asyncio.run(everybody()) == 0


@pytest.mark.parametrize(
    ("verb", "body", "question"),
    [("dry-run", {}, b"Begin"), ("record", {"topic": "orders", "partition": 0, "offset": 7}, b"OfRecord")],
)
def test_an_action_that_the_reader_does_not_accept_takes_no_thread_of_airflows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: str, body: dict[str, object], question: bytes
) -> None:
    """The flow's state has its last answer, so that the action itself is what waits."""
    monkeypatch.setattr(actions, "WAIT_SECONDS", 0.0)
    waiting, answers = threading.Event(), threading.Event()

    def silent(message: bytes, _: float) -> bytes:
        if question in message:
            waiting.set()
            assert answers.wait(ANSWER_S)
        raise Slow

    desk.app.dependency_overrides[get_user] = signed_in_at_once
    desk.app.state.office = replace(desk.app.state.office, reader=Reader(silent, lookup=lambda _: {}))

    async def pressed() -> float:
        async with AsyncClient(transport=ASGITransport(app=desk.app), base_url="http://testserver") as client:
            asked = asyncio.create_task(client.post(f"/api{HERE}/{verb}", json=body, headers={"X-Ferry-Request": "1"}))
            assert await asyncio.to_thread(waiting.wait, ANSWER_S)
            taken = to_thread.current_default_thread_limiter().borrowed_tokens
            answers.set()
            await asked
            return taken

    assert asyncio.run(pressed()) == 0


def test_one_of_a_kind_is_done_at_a_time_for_each_person(desk: Desk, golden: Golden) -> None:
    assert desk.act("dry-run", {})[0] == 202
    status, answer = desk.act("dry-run", {"topics": ["orders"]})
    assert status == 429
    golden(str(answer["detail"]))
    assert desk.act("pause", {"topic": "orders", "why": "migration"})[0] == 202
    for job in desk.watcher.jobs:
        job.done.set()
    assert desk.act("dry-run", {})[0] == 202
