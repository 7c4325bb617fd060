"""The map: every cluster on the sheet, and each flow's line with room for its figures."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect

from ferry.clock import wall_ms
from ferry.config.settings import parse_settings
from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD
from ferry.reader.documents import Status
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.chart_map import Drawing, drawn, name_lines
from ferry_airflow.page.chart_shapes import GAP, LABEL_HEIGHT, LABEL_WIDTH, NODE_HEIGHT, NODE_WIDTH, WIDTH, Box
from ferry_airflow.page.page_state import OpenFlow
from tests.airflow.page.conftest import Desk, Still, lag
from tests.airflow.page.served import served
from tests.airflow.page.values import digest
from tests.chromium import chromium


def flows(*names: str) -> list[OpenFlow]:
    """Flows of which only the names count."""
    aliases = sorted({alias for name in names for alias in name.split("->")})
    lines = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = h:1" for alias in aliases)]
    lines += [f"{name}.{key}" for name in names for key in ("enabled = true", "topics = t")]
    found = parse_settings("\n".join(lines), "test.properties").flows
    nothing = dict.fromkeys(("path", "reader", "dag", "standing", "rights", "user"))
    return [OpenFlow(config=one, seen=Status(), **nothing) for one in found]  # type: ignore[arg-type]


def mesh(*aliases: str) -> tuple[str, ...]:
    """Each cluster to each other."""
    return tuple(f"{one}->{other}" for one, other in permutations(aliases, 2))


def assert_all_has_room(drawing: Drawing, names: int) -> None:
    """No place and no label lies on another or beyond the sheet, and each line leads from its source to its target."""
    places = {place.alias: Box.of_place(place.x, place.y) for place in drawing.places}
    labels = [Box.of_label(line.x, line.y) for line in drawing.lines]
    assert len(labels) == names
    for box in (*places.values(), *labels):
        assert box.width / 2 <= box.x <= WIDTH - box.width / 2
        assert box.height / 2 <= box.y <= drawing.height - box.height / 2
    for one, other in combinations((*places.values(), *labels), 2):
        assert not one.touches(other), (one, other)
    for line in drawing.lines:
        spots = [float(number) for number in re.findall(r"-?[\d.]+", line.path)]
        for alias, (x, y) in ((line.flow.flow.source, spots[:2]), (line.flow.flow.target, spots[-2:])):
            near = Box(x=x, y=y, width=0, height=0)
            assert near.touches(places[alias]) or abs(x - places[alias].x) <= NODE_WIDTH / 2 + GAP + 0.1
            assert not places[alias].has((x, y)), "an arrow's tip is not to be seen under a place"


@pytest.mark.parametrize(
    "names",
    [
        ("a->b",),
        ("a->b", "b->a"),
        ("a->b", "b->c", "c->a"),
        ("a->b", "b->c", "c->d", "d->e", "e->f"),
        ("a->b", "c->b", "c->d"),
        ("a->b", "c->d", "d->c", "e->f", "b->e"),
        ("e1->r1", "e2->r1", "e3->r2", "e4->r2", "r1->z", "r2->z", "z->r1"),
        tuple(f"from{number}->to{number}" for number in range(12)),
        *(tuple(f"hub->leaf{number}" for number in range(many)) for many in (2, 5, 9, 20)),
        tuple(f"leaf{number}->hub" for number in range(5)),
        tuple(name for number in range(5) for name in (f"hub->leaf{number}", f"leaf{number}->hub")),
        *(mesh(*"abcdef"[:many]) for many in (3, 4, 5)),
    ],
)
def test_places_lie_on_the_sheet_and_labels_apart(names: tuple[str, ...]) -> None:
    assert_all_has_room(drawn(flows(*names)), len(names))


PAIRS = [f"{one}->{other}" for one, other in permutations("abcdef", 2)]


@given(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=9, unique=True))
def test_any_few_flows_have_room(names: list[str]) -> None:
    assert_all_has_room(drawn(flows(*names)), len(names))


def test_a_map_is_no_higher_than_its_labels_ask_for() -> None:
    heights = {many: drawn(flows(*(f"hub->leaf{number}" for number in range(many)))).height for many in (1, 2, 5, 6)}
    row = LABEL_HEIGHT + 24
    assert heights == {many: many * row for many in heights}
    assert drawn(flows("a->b", "b->a")).height == 2 * row
    assert row > NODE_HEIGHT


def test_places_of_one_hub_stand_evenly_around_it() -> None:
    drawing = drawn(flows(*(f"hub->leaf{number}" for number in range(9))))
    hub = next(place for place in drawing.places if place.alias == "hub")
    assert hub.y == drawing.height / 2
    for side in (-1, 1):
        downs = sorted(place.y for place in drawing.places if (place.x - hub.x) * side > 0)
        assert (downs[0] + downs[-1]) / 2 == hub.y
        assert len({below - above for above, below in pairwise(downs)}) == 1


def test_records_go_from_left_to_right_where_they_go_one_way() -> None:
    across = {place.alias: place.x for place in drawn(flows("b->c", "a->b")).places}
    assert across["a"] < across["b"] < across["c"]
    assert across["b"] - across["a"] > LABEL_WIDTH


@pytest.mark.parametrize(
    ("alias", "lines"),
    [
        ("primary", ("primary",)),
        ("kafka-production-eu-west-1", ("kafka-production-", "eu-west-1")),
        ("averyveryverylongnamewithoutanything", ("averyveryverylongn", "amewithoutanything")),
        ("a.name-that-has-more-letters.than-two-lines-can-show", ("a.name-t\u2026letters.", "than-two\u2026can-show")),
    ],
)
def test_a_long_name_takes_two_lines_that_fit(alias: str, lines: tuple[str, ...]) -> None:
    assert name_lines(alias) == lines
    assert all(len(line) <= 18 for line in lines)


HOUR_MS = 3_600_000
LONG = ("kafka-production-eu-west-1", "kafkaproductionclusterwww")
SPILLED = """() => [...document.querySelectorAll('.map rect')].flatMap((rect) => {
  const box = rect.getBoundingClientRect();
  return [...rect.parentElement.querySelectorAll('text')].filter((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return left < box.left || right > box.right || top < box.top || bottom > box.bottom;
  }).map((text) => text.textContent);
})"""
"""The words of the map that reach beyond their box."""


def shows(desk: Desk, monkeypatch: pytest.MonkeyPatch, file: Path, *names: str) -> dict[str, Still]:
    """A page of such flows, each with a thread of its own that has seen nothing yet."""
    aliases = dict.fromkeys(alias for name in names for alias in name.split("->"))
    lines = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = h:1" for alias in aliases)]
    file.write_text("\n".join([*lines, *(f"{n}.{key}" for n in names for key in ("enabled = true", "topics = t"))]))
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    watchers = {name: Still() for name in names}
    monkeypatch.setattr(desk.watchers, "of", lambda key, make: watchers[key[0]])
    return watchers


def test_a_flow_of_the_map_tells_its_lag_and_its_last_run_to_eyes_and_ears(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = "->".join(LONG)
    watchers = shows(desk, monkeypatch, tmp_path / "map.properties", "a->b", "b->a", "b->c", "c->b", far)
    now = wall_ms()
    seen = {
        "a->b": (5, 90.0, digest("r1")),
        "b->a": (0, None, digest("r1", PastState.PARTIAL)),
        "b->c": (3, 7.0, None),
        far: (71_838_000_000, 31_000_000.0, digest("r1", PastState.UNPLANNED)),
    }
    for name, (records, seconds, run) in seen.items():
        runs = [replace(run, started_ms=now - 12 * HOUR_MS, ended_ms=now - 11 * HOUR_MS)] if run else []
        troubles = {LONG[1]: "no answer"} if name == far else {}
        poll = FlowPoll(view=replace(UNREAD, end=1), lags=(lag("t", 0, records, seconds),), troubles=troubles)
        watchers[name].see(poll, runs)
        watchers[name].amend(never_ran=not runs)
    told = {
        "a to b": "lag 1 min 30 s healthy \u00b7 5 records last run 12 h ago: success",
        "b to a": "caught up partial last run 12 h ago: partial",
        "b to c": "lag 7.0 s never ran \u00b7 3 records no run has ended yet",
        "c to b": "lag not known yet connecting last run not known yet",
        " to ".join(LONG): "lag 358 d 19 h unreachable \u00b7 71\u202f838\u202f000\u202f000 records"
        " last run 12 h ago: unplanned",
    }
    with served(desk) as address, chromium() as page:
        page.goto(f"{address}/")
        for name, words in told.items():
            link = page.locator(".map").get_by_role("link", name=f"Flow {name} ")
            expect(link).to_have_accessible_name(f"Flow {name} {words}")
            link.focus()
        assert page.evaluate(SPILLED) == []
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/flow/{LONG[0]}/{LONG[1]}/")


def test_a_narrow_window_scrolls_the_map_rather_than_its_words_shrink(desk: Desk) -> None:
    with served(desk) as address, chromium(viewport={"width": 600, "height": 900}) as page:
        page.goto(f"{address}/")
        expect(page.locator(".sheet")).to_have_attribute("role", "region")
        sizes = page.evaluate(
            "[...document.querySelectorAll('.map text')].map((one) => one.getBoundingClientRect().height)"
        )
        assert min(sizes) > 9
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
