"""A feature's part of the page: a row of the registry is enough for the reader to answer its questions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Refused
from ferry.page.cut import Cut
from ferry.page.part import FromClusters, FromFiles, shared
from ferry.page.question import Question
from ferry.reader.client import Reader
from ferry.reader.documents import Answer
from ferry.reader.flows import Flows
from ferry.reader.service import Service
from ferry.reader.watch import FlowWatch
from ferry.reader.watcher import Watcher, Watchers
from ferry.registry import FEATURES, Feature, parts_of
from tests.golden import Golden

FLOW = "a->b"
TEXT = """clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
topics = orders
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema of a feature that does not exist."""

    subject: str
    flow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSchemas(Question[Cut[Schema]]):
    """A page of the schemas, from files."""

    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSchema(Question[Schema]):
    """A schema, from the clusters."""

    subject: str


READ: list[str] = []
"""What was read, by the order in which it was."""


def find_all(flow: FlowConfig, asked: OfSchemas) -> list[str]:
    READ.append(f"page {asked.page}")
    return [f"orders-{number}" for number in range(60)]


def show_all(flow: FlowConfig, asked: OfSchemas, found: list[str]) -> Cut[Schema]:
    return Cut.of([Schema(subject=one, flow=str(flow.flow)) for one in found], asked.page)


def find_one(flow: FlowConfig, asked: OfSchema, patience_s: float) -> str | None:
    READ.append(f"{asked.subject} within {patience_s} s")
    if asked.subject == "denied":
        raise Refused("not permitted: grant READ")
    return asked.subject if asked.subject == "orders" else None


def show_one(flow: FlowConfig, asked: OfSchema, found: str) -> Schema:
    return Schema(subject=found, flow=str(flow.flow))


PAGE = (
    FromFiles(of=OfSchemas, find=find_all, show=show_all, same=shared),
    FromClusters(of=OfSchema, find=find_one, show=show_one),
)


class AtOnce(Watcher):
    """A watcher that polls nothing: what it is asked for, it does at once."""

    def __init__(self, flow: FlowConfig) -> None:
        super().__init__(lambda: flow, "a", "b")
        self.flow = flow

    def _start(self) -> None:
        pass

    def answer(
        self, key: tuple[Any, ...], work: Callable[[FlowWatch], Any], *, fresh_seconds: float, waits: bool = True
    ) -> Answer:
        try:
            return Answer(got=work(FlowWatch(self.flow, patience_s=3.0)), at_ms=wall_ms())
        except Refused as error:
            return Answer(error=str(error), failed_ms=wall_ms())


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A page that asks a reader of an installation with one more feature; all passes as between two processes."""
    acts = ModuleType("ferry.features.schemas.acts.page")
    acts.PAGE = PAGE  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, acts.__name__, acts)
    monkeypatch.setattr("ferry.registry.FEATURES", {**FEATURES, "schemas": Feature(page=f"{acts.__name__}:PAGE")})
    READ.clear()
    config = tmp_path / "flows.properties"
    config.write_text(TEXT)
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    flows, watchers = Flows(), Watchers()
    (flow,) = flows.now().flows
    watcher = AtOnce(flow)
    monkeypatch.setattr(watchers, "of", lambda key, make: watcher)

    def lookup(conn_id: str) -> dict[str, str]:
        raise BadInput(f"Airflow connection {conn_id!r} does not exist")

    service = Service(flows, watchers, stays=True)
    return Reader(lambda message, _: service.reply(message), config=str(config), lookup=lookup)


def told(reader: Reader, question: Question[Any]) -> Answer:
    """The answer, once it is there."""
    found = reader.ask(FLOW, question)
    while found.is_asked:
        found = reader.ask(FLOW, question)
    return found


def test_the_questions_of_a_feature_are_in_its_rules() -> None:
    for name, answers in parts_of("page").items():
        assert {one.of.__module__ for one in answers} == {f"ferry.features.{name}.rules.page"}


def test_files_are_read_once_for_all_pages_of_a_list(reader: Reader) -> None:
    first, last = told(reader, OfSchemas()).got, told(reader, OfSchemas(page=2)).got
    assert (first.total, first.rows[0]) == (60, Schema(subject="orders-0", flow=FLOW))
    assert [one.subject for one in last.rows] == [f"orders-{number}" for number in range(50, 60)]
    assert READ == ["page 1"]


def test_clusters_are_asked_with_the_patience_of_the_flows_thread(reader: Reader) -> None:
    assert told(reader, OfSchema(subject="orders")).got == Schema(subject="orders", flow=FLOW)
    nothing = told(reader, OfSchema(subject="nosuch"))
    assert (nothing.got, nothing.error, nothing.waiting) == (None, "", False)
    assert told(reader, OfSchema(subject="denied")).error == "not permitted: grant READ"
    assert READ == ["orders within 3.0 s", "nosuch within 3.0 s", "denied within 3.0 s"]


def test_a_question_that_no_feature_answers_is_named(reader: Reader, golden: Golden) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class OfNothing(Question[Schema]):
        """A question of a page of another version."""

    assert "OfNothing" in told(reader, OfNothing()).error
    golden(told(reader, OfNothing()).error)
