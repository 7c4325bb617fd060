"""The benchmark of the page asks every GET route that the page has, and its table in bench/README.md has them all."""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from ferry.config.settings import parse_settings
from ferry_airflow.page.app import page_app

BENCH = Path(__file__).resolve().parents[3] / "bench"


@dataclass(frozen=True)
class Asked:
    """What the benchmark asks by route, when what the page led to is as here."""

    addresses: Mapping[str, Sequence[str]]
    dealt: str


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """As `bench/page_routes.py` has it; the scripts of bench import each other by their bare names."""
    monkeypatch.syspath_prepend(str(BENCH))
    made: dict[str, Any] = runpy.run_path(str(BENCH / "page_routes.py"))
    here = made["FLOW_PAGE"]
    found = made["Found"](
        run="scheduled__2026-11-22T10:15:00+00:00",
        job="1",
        report="7",
        charts="/charts/6.5.0.js",
        receipt=f"{here}/receipt/wide-050/7/0?run=a",
        old_receipt=f"{here}/receipt/history/42/0?run=a",
    )
    return Asked(addresses=made["addresses"](found), dealt=made["DEALT"])


def routes() -> dict[str, APIRoute]:
    """What the page answers to GET."""
    return {one.path: one for one in page_app().routes if isinstance(one, APIRoute) and "GET" in one.methods}


def test_every_route_of_the_page_is_asked_and_no_other(asked: Asked) -> None:
    assert set(asked.addresses) == set(routes())
    assert all(asked.addresses.values())


def test_each_address_is_of_its_route(asked: Asked) -> None:
    there = routes()
    for path, addresses in asked.addresses.items():
        for address in addresses:
            scope = {"type": "http", "method": "GET", "path": address.partition("?")[0]}
            taken = next(one.path for one in there.values() if one.matches(scope)[0] is Match.FULL)
            assert taken == path, address


def test_partitions_of_a_topic_that_is_dealt_are_asked_of_the_flow_and_of_a_lane(asked: Asked) -> None:
    partitions = [path for path in asked.addresses if path.endswith("/partition/{topic}/{partition}")]
    assert len(partitions) == 2
    for path in partitions:
        assert any(f"/partition/{asked.dealt}/" in address for address in asked.addresses[path]), path


def test_the_flow_of_the_benchmark_deals_that_topic_and_no_other(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    made = runpy.run_path(str(BENCH / "page.py"))
    (config,) = parse_settings(made["SETTINGS"].replace("SOURCE", "h:1").replace("TARGET", "h:2"), "bench").flows
    dealt = {topic: config.transform_of(topic) for topic in (asked.dealt, "wide-000")}
    assert dealt["wide-000"] is None
    assert (spec := dealt[asked.dealt]) is not None
    assert spec.partitions == made["DEALT_TO"]


def test_what_the_benchmark_looks_for_on_a_page_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    made = runpy.run_path(str(BENCH / "page.py"))
    templates = BENCH.parent / "plugins" / "ferry_airflow" / "page" / "templates"
    text = "".join(path.read_text() for path in templates.glob("*.html"))
    assert made["DEALT_SHOWN"] in text
    assert all(word in text for word in made["UNREADY"])


def test_the_table_in_the_readme_has_every_route_in_that_order(asked: Asked) -> None:
    below = (BENCH / "README.md").read_text().partition("| GET | requests | median ms | slowest ms |")[2]
    table = below.lstrip("\n").partition("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) == list(asked.addresses)
