"""docs/troubleshooting.md has each word that tells of trouble: of the page, of refusals, gaps, alerts and errors."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from ferry.config.flow.guards import GUARD_KEYS, GuardKey, OnGuard
from ferry.features.observe.rules.alerts import AlertKind
from ferry.model import RefusalKind, Resolution
from ferry_airflow.page import flow_health
from ferry_airflow.page.airflow_side import UNDER_WAY
from ferry_airflow.page.run_words import Condition

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "troubleshooting.md").read_text()

COLOURS: Mapping[str, str] = {
    Condition.GOOD: "green",
    Condition.BUSY: "blue",
    Condition.WARN: "amber",
    Condition.BAD: "red",
    Condition.HELD: "violet",
    Condition.UNKNOWN: "grey",
}
"""As docs/page.md has them."""

OF_REPORTS = "unfinished"
"""What a report says of slices that nobody refused, as a refusal's kind."""


def rows(heading: str) -> list[list[str]]:
    """The cells of all table rows below a heading of the second level, without the tables' own heads."""
    _, found, below = TEXT.partition(f"\n## {heading}\n")
    assert found, f"no heading {heading}"
    lines = below.partition("\n## ")[0].splitlines()
    tables = [line for line in lines if line.startswith("|")]
    heads = {number for number, line in enumerate(tables[1:]) if set(line) <= set("|-")}
    kept = [line for number, line in enumerate(tables) if number not in heads and number - 1 not in heads]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in kept]


def words(heading: str) -> list[str]:
    """What the first cells of these rows name."""
    return [found for row in rows(heading) for found in re.findall(r"`([^`]+)`", row[0])]


def row_of(heading: str, word: str) -> list[str]:
    return next(row for row in rows(heading) if row[0] == f"`{word}`")


@cache
def standings() -> frozenset[tuple[str, str]]:
    """Each word with each of its conditions, as standing.py makes them."""
    tree = ast.parse(Path(flow_health.__file__).read_text())
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and ast.unparse(one.func) == "Standing"]
    found = frozenset(pair for call in calls for pair in _made(call))
    assert ("healthy", "good") in found
    return found


def _made(call: ast.Call) -> Iterator[tuple[str, str]]:
    given = {one.arg: one.value for one in call.keywords}
    condition, word = ast.unparse(given["condition"]), given["word"]
    match word:
        case ast.Constant(value=str(text)):
            named = [text]
        case ast.Name(id=name):
            named = [getattr(flow_health, name)]
        case ast.Attribute(value=ast.Name(id=name), attr="word"):
            badge = getattr(flow_health, name)
            assert condition == f"{name}.condition"
            condition, named = f"Condition.{badge.condition.name}", [badge.word]
        case _:
            assert ast.unparse(word) == "run.state", f"a word that this test cannot read: {ast.unparse(word)}"
            named = sorted(UNDER_WAY)
    yield from ((one, Condition[condition.removeprefix("Condition.")].value) for one in named)


def test_each_word_of_the_page_has_a_row_and_its_colours() -> None:
    assert sorted(words("The flow's word")) == sorted({word for word, _ in standings()})
    for word, condition in standings():
        assert COLOURS[condition] in row_of("The flow's word", word)[1], f"{word} may be {COLOURS[condition]}"
    page = (ROOT / "docs" / "page.md").read_text().partition("## A flow's state")[2].partition("\n## ")[0]
    of_page = {row.split("|")[1].strip(): row for row in page.splitlines() if row.startswith("|")}
    assert {
        (word, condition) for word, condition in standings() if f"`{word}`" not in of_page[COLOURS[condition]]
    } == set()


def test_each_kind_of_refusal_has_one_row() -> None:
    assert sorted(words("What a run refuses")) == sorted([*RefusalKind, OF_REPORTS])
    for row in rows("What a run refuses"):
        assert row[1], row
        assert row[2], row
    assert [row[0] for row in rows("What a run refuses") if not row[3]] == [f"`{RefusalKind.STUCK}`"]


@pytest.mark.parametrize("guard", GUARD_KEYS, ids=lambda guard: guard.kind)
def test_a_guard_that_may_be_softened_is_named_with_what_it_may_do(guard: GuardKey) -> None:
    cells = row_of("What a run refuses", guard.kind)[3]
    for policy in guard.policies:
        said = f"{guard.key} = {policy}" in cells or f"`{policy}`" in cells
        assert said == (policy is not OnGuard.FAIL), f"{guard.kind}: {policy}"


def test_no_other_guard_is_named() -> None:
    keys = {guard.key: guard for guard in GUARD_KEYS}
    for key, policy in re.findall(r"(ferry\.guard\.[a-z.]+) = (\w+)", TEXT):
        assert policy in keys[key].policies, f"{key} = {policy}"


def test_gaps_alerts_and_errors_are_all_there() -> None:
    assert sorted(words("Gaps")) == sorted(Resolution)
    assert sorted(words("An alert came")) == sorted(AlertKind)
    rules = re.findall(r"- alert: (\w+)", (ROOT / "alerts" / "ferry-rules.yml").read_text())
    told = [name for row in rows("An alert came") for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(told) == sorted(rules)
    schema = json.loads((ROOT / "docs" / "schemas" / "error.json").read_text())
    kinds = schema["properties"]["error"]["properties"]["kind"]["enum"]
    heading = "A command ends with an error"
    assert sorted(words(heading)) == sorted(kinds)
