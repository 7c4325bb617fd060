"""What the charts show: measured lag where somebody measured, figures of runs elsewhere, and nothing in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect

from ferry.clock import wall_ms
from ferry.ledger.ledger import UNREAD
from ferry.reader.charts import Mark, Spell
from ferry.reader.documents import RunDigest
from ferry.reader.lag_point import APART_MS, MOST_POINTS, SPAN_MS, LagPoint, MeasuredSpans, followed
from ferry.reader.status import rows_of
from ferry.reader.watch import FlowPoll
from ferry_airflow.page import filters as shown_as
from ferry_airflow.page.dag_runs import Reason
from tests.airflow.page.conftest import HERE, TEXT, Desk, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.served import served, shown
from tests.airflow.page.values import digest
from tests.browser.page.test_accessibility import violations
from tests.chromium import chromium

HOUR_MS = 3_600_000
NINE = 1_790_000_000_000
"""When somebody looked first."""
TRACES = """(name) => {
  const plot = document.querySelector(`figure[data-chart=${name}] .plot`);
  return plot.data.map(({ name, x, y }) => [name, x.map((time) => time && Number(new Date(time))), [...y]]);
}"""


def point(at_ms: int) -> LagPoint:
    return LagPoint(at_ms=at_ms, records=at_ms % 97, bytes=5, seconds=1.0)


@given(st.lists(st.integers(-20_000, 400_000), max_size=60), st.integers(1, 12))
def test_every_stretch_of_measuring_is_a_line_of_its_own_that_ends_where_it_ended(waits: list[int], most: int) -> None:
    points: tuple[LagPoint, ...] = ()
    now = NINE
    for wait in waits:
        now += wait
        points = followed(points, point(now))
    times = [one.at_ms for one in points]
    assert times == sorted(set(times)), "also where a clock is set back"
    looks = MeasuredSpans.of(points)
    rows = rows_of(points, looks, most)
    parts: list[list[int]] = [[]]
    for row in rows:
        if row is None:
            parts.append([])
        else:
            parts[-1].append(row[0])
    assert [part[-1] for part in parts if part] == [end for _, end in looks.spans]
    assert sum(map(len, parts)) <= most + len(looks.spans)
    for (_, end), (begin, _) in pairwise(looks.spans):
        assert begin - end > APART_MS
        assert not looks.near(end + APART_MS + 1, begin - APART_MS - 1) or begin - end <= 2 * APART_MS + 2
    assert all(looks.near(at, at) for at in times)


def test_what_was_measured_is_cut_by_time_and_by_number() -> None:
    points: tuple[LagPoint, ...] = ()
    for look in range(MOST_POINTS + 50):
        points = followed(points, point(NINE + 1_000 * look))
    assert len(points) == MOST_POINTS
    after = followed(points, point(NINE + 6 * HOUR_MS))
    assert [one.at_ms for one in after] == [NINE + 6 * HOUR_MS]
    assert len(followed(points, point(points[0].at_ms + SPAN_MS + 1))) == MOST_POINTS


def test_after_hours_in_which_nobody_looked_the_runs_of_these_hours_are_there(desk: Desk) -> None:
    runs = [
        replace(digest(f"r{hour}"), generation=hour, started_ms=NINE + hour * HOUR_MS, ended_ms=NINE + hour * HOUR_MS)
        for hour in range(-2, 4)
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), runs[::-1])
    looked = (*range(NINE, NINE + 60_000, 5_000), *range(NINE + 3 * HOUR_MS, NINE + 3 * HOUR_MS + 60_000, 5_000))
    desk.watcher.amend(history=tuple(map(point, looked)))
    found = desk.client.get(f"/api{HERE}/series").json()
    assert [row and row[0] for row in found["lag"]] == [*looked[:12], None, *looked[12:]]
    assert {run["run"]: run["measured"] for run in found["runs"]} == {
        "r-2": False,
        "r-1": False,
        "r0": True,
        "r1": False,
        "r2": False,
        "r3": True,
    }


def test_the_charts_draw_what_was_measured_and_what_runs_tell_and_no_line_where_neither_is(desk: Desk) -> None:
    filled(desk)
    seen = desk.watcher.last
    looks = MeasuredSpans.of(seen.history)
    assert len(looks.spans) == 2, "somebody looked, went away, and came back"
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        drawn = {name: page.evaluate(TRACES, name) for name in ("lag", "due", "throughput", "timeline")}
        table = page.locator("figure[data-chart=due] tbody tr").all_text_contents()
    figures: tuple[tuple[str, Callable[[LagPoint], float | None], Callable[[RunDigest], int]], ...] = (
        ("lag", lambda one: one.seconds, lambda run: run.ended_ms),
        ("due", lambda one: one.records, lambda run: run.started_ms),
    )
    for name, figure, moment in figures:
        told, measured = _by_name(drawn[name])
        first, second = ([one for one in seen.history if begin <= one.at_ms <= end] for begin, end in looks.spans)
        wanted = [(one.at_ms, figure(one)) for one in first], [(one.at_ms, figure(one)) for one in second]
        assert measured == [*wanted[0], None, *wanted[1]]
        beside = [moment(run) for run in reversed(seen.runs) if not looks.near(run.started_ms, run.ended_ms)]
        assert [one[0] for one in told if one] == beside
        assert any(at < looks.spans[0][0] for at in beside)
        between = [at for at in beside if looks.spans[0][1] < at < looks.spans[1][0]]
        assert between, "runs ran while nobody looked"
        cut = told.index(None)
        assert told[cut - 1][0] < looks.spans[0][0] < told[cut + 1][0]
        assert told.count(None) == 1
    (bars,) = drawn["timeline"]
    assert bars[1] == sorted(run.started_ms for run in seen.runs), "every run is in the timeline"
    assert len(table) == 100
    assert table[0].endswith("measured")


def test_figures_of_runs_that_the_ledger_has_forgotten_in_part_are_drawn_as_such(desk: Desk) -> None:
    """Their bytes and seconds are of what is left: a rate of these is none, and how long they took not known."""
    runs = [
        replace(digest("r2"), generation=8, started_ms=NINE + HOUR_MS, ended_ms=NINE + HOUR_MS + 4_000, uncounted=True),
        replace(digest("r1"), ended_ms=NINE, records=0, bytes=0, uncounted=True),
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        took = page.locator("figure[data-chart=timeline] tbody tr td:nth-child(2)").all_text_contents()
        rates = page.locator("figure[data-chart=throughput] tbody tr").count()
    assert (took, rates) == (["at least 4.0 s", "not known"], 0)


def test_how_long_a_run_without_receipts_took_is_not_known_in_its_chart(desk: Desk) -> None:
    """The axis of the chart still begins at 0 s."""
    runs = [
        replace(digest("r2"), generation=8, started_ms=NINE + HOUR_MS, ended_ms=NINE + HOUR_MS + 4_000),
        replace(digest("r1"), ended_ms=NINE, records=0, bytes=0),
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), runs)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        figure = page.locator("figure[data-chart=timeline]")
        took = figure.locator("tbody tr td:nth-child(2)").all_text_contents()
        axis = figure.locator(".ytick text").all_text_contents()
    assert took == ["4.0 s", "not known"]
    assert "0 s" in axis
    assert "not known" not in axis


def _by_name(traces: list[Any]) -> tuple[list[Any], list[Any]]:
    """The points of both lines; None where a line is broken."""
    found = {name: [None if x is None else (x, y) for x, y in zip(xs, ys, strict=True)] for name, xs, ys in traces}
    told = next(name for name in found if name.endswith(", of a run"))
    return found[told], found[told.removesuffix(", of a run")]


def test_what_is_under_a_line_ends_where_the_line_is_broken(desk: Desk) -> None:
    filled(desk)
    first, second = MeasuredSpans.of(desk.watcher.last.history).spans
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        ((_, xs, ys),) = [one for one in page.evaluate(TRACES, "due") if one[0].endswith(", area")]
    cut = xs.index(None)
    assert xs.count(None) == 1
    assert [(xs[at], ys[at]) for at in (0, cut - 1, cut + 1, -1)] == [(at, 0) for at in (*first, *second)]


DRAWN_LIMIT = """(name) => {
  const { shapes, annotations } = document.querySelector(`figure[data-chart=${name}] .plot`).layout;
  const lines = (shapes || []).filter((one) => one.type === "line");
  const texts = (annotations || []).map((one) => one.text);
  return [lines.map((shape) => [shape.y0, shape.y1]), texts.filter((text) => text.startsWith("recovery point"))];
}"""


@pytest.mark.parametrize(
    ("seconds", "lines", "words"),
    [
        (150, [[150, 150]], ["recovery point 2 min 30 s"]),
        (86_400, [], ["recovery point 1 d, far above"]),
        (None, [], []),
    ],
)
def test_the_recovery_point_is_a_line_where_the_ages_are(
    desk: Desk, tmp_path: Path, seconds: int | None, lines: list[list[int]], words: list[str]
) -> None:
    if seconds is not None:
        (tmp_path / "flows.properties").write_text(f"{TEXT}ferry.rpo.seconds = {seconds}\nferry.rpo.records = 9\n")
    filled(desk)
    ask = f"/api{HERE}/series?topic=orders"
    records = None if seconds is None else 9
    assert desk.client.get(ask).json()["limits"] == {"lag": seconds, "due": None}
    assert desk.client.get(f"{ask}&partition=0").json()["limits"] == {"lag": seconds, "due": records}
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        assert page.evaluate(DRAWN_LIMIT, "lag") == [lines, words]
        assert page.evaluate(DRAWN_LIMIT, "due") == [[], []], "that of records is of each partition"
        label = page.locator("figure[data-chart=lag] .plot").get_attribute("aria-label") or ""
        assert ("recovery point" in label) == bool(words)
        ticks = page.locator("figure[data-chart=lag] .ytick text").all_text_contents()
        assert "1 min" in ticks if seconds == 150 else "2 min" in ticks or "1 min" in ticks


AXES = """() => [...document.querySelectorAll("figure[data-chart] .plot")]
  .filter((plot) => plot.layout).map((plot) => plot.layout.xaxis.range.map(Date.parse))"""
MARKED = """(name) => {
  const { shapes, annotations } = document.querySelector(`figure[data-chart=${name}] .plot`).layout;
  const [bands, runs] = [1, 0.025].map((height) => shapes.filter((one) => one.type === "rect" && one.y1 === height));
  return [bands.length, runs.length, annotations.map((one) => one.text)];
}"""


def test_the_charts_of_a_page_have_one_axis_and_one_cursor_and_marks(desk: Desk) -> None:
    filled(desk)
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/?range=1h")
        axes = page.evaluate(AXES)
        assert len(axes) == 5
        assert len({tuple(one) for one in axes}) == 1
        ((begin, end),) = {tuple(one) for one in axes}
        assert 1.01 < (end - begin) / HOUR_MS < 1.1, "the hour, and what its first and last bar need"
        bands, runs, names = page.evaluate(MARKED, "lag")
        assert (bands, names) == (1, ["backup did not answer"])
        assert runs == 9, "one every seven minutes"
        label = page.locator("figure[data-chart=lag] .plot").get_attribute("aria-label") or ""
        assert "backup did not answer from " in label
        page.locator("figure[data-chart=lag]").scroll_into_view_if_needed()
        first = page.locator("figure[data-chart=lag] .nsewdrag").bounding_box()
        assert first
        page.mouse.move(first["x"] + first["width"] * 0.5, first["y"] + first["height"] / 2)
        page.mouse.move(first["x"] + first["width"] * 0.95, first["y"] + first["height"] / 2)
        for name in ("lag", "due", "bytes"):
            expect(page.locator(f"figure[data-chart={name}] .hoverlayer .spikeline").first).to_be_attached()
        page.get_by_role("link", name="15 min").click()
        page.wait_for_url("**range=15m*")


ENDS = """() => {
  const { shapes, xaxis } = document.querySelector("figure[data-chart=lag] .plot").layout;
  const runs = shapes.filter((one) => one.type === "rect" && one.y1 === 0.025);
  return [...runs.map((one) => Date.parse(one.x1)), Date.parse(xaxis.range[1])].slice(-2);
}"""


@pytest.mark.parametrize("path", [f"{HERE}/", f"{HERE}/topic/orders", f"{HERE}/partition/orders/0"])
def test_an_active_run_is_drawn_until_now_though_it_has_written_nothing(desk: Desk, path: str) -> None:
    filled(desk)
    first, *rest = desk.watcher.last.runs
    begun = first.started_ms - 20 * 60_000
    desk.watcher.amend(runs=(replace(first, started_ms=begun, ended_ms=begun), *rest[3:]))
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{path}?range=1h")
        until, edge = page.evaluate(ENDS)
        assert until - begun >= 20 * 60_000
        assert edge - until < 5 * 60_000
        if path == f"{HERE}/":
            took = page.locator("figure[data-chart=timeline] tbody tr").first
            expect(took).to_contain_text(re.compile(r"20 min( \d+ s)? so far"))


def test_outages_that_runs_have_seen_are_bands_and_a_list_that_stays_open(desk: Desk) -> None:
    now = wall_ms()
    why = "cluster primary at h:9092 does not answer within 60 s (refused): check the address"
    desk.failures = tuple(Reason(run="r2", at_ms=now - at * 60_000, text=why) for at in (40, 30))
    runs = [
        replace(digest(run), generation=at, started_ms=now - at * 60_000, ended_ms=now - at * 60_000)
        for run, at in (("r1", 50), ("r3", 20))
    ]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), runs[::-1])
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/?range=1h")
        spells = page.locator("#spells")
        spells.locator("summary").click()
        expect(spells.locator("li")).to_have_count(1)
        expect(spells.locator("li")).to_contain_text("began after")
        expect(spells.locator("li")).to_contain_text("ended before")
        plot = page.locator("figure[data-chart=lag] .plot")
        expect(plot).to_have_attribute("aria-label", re.compile("primary did not answer from .* ended before"))
        bands = plot.evaluate("(plot) => plot.layout.shapes.filter((one) => one.y1 === 1).map((one) => one.opacity)")
        assert bands == [0.4, 1, 0.4]
        assert violations(page) == []
        desk.failures = ()
        desk.watcher.see(FlowPoll(view=UNREAD, lags=None, troubles={"backup": "silent"}), runs[::-1])
        expect(spells.locator("li")).to_contain_text("backup did not answer")
        expect(spells.locator("li")).to_be_visible()


def test_many_outages_are_counted_in_the_label_and_one_that_a_single_poll_saw_is_drawn(desk: Desk) -> None:
    now = wall_ms()
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}))
    begins = [now - at * 60_000 for at in (40, 30, 25, 20, 15, 10, 9, 8)]
    spells = [
        Spell(mark=Mark.OUTAGE, of="backup", since_ms=at, until_ms=at, after_ms=at - 5, before_ms=at + 5)
        for at in begins
    ]
    desk.watcher.amend(spells=tuple(spells))
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/?range=1h")
        plot = page.locator("figure[data-chart=lag] .plot")
        expect(plot).to_have_attribute("aria-label", re.compile("did not answer at .*older outages and pauses: 2"))
        label = plot.get_attribute("aria-label") or ""
        assert label.count("did not answer") == 6
        bands = plot.evaluate("(plot) => plot.layout.shapes.filter((one) => one.y1 === 1).map((one) => one.opacity)")
        assert bands == [1] * 8
        made = '<time datetime="2026-11-30T25:00:00Z">x</time>'
        page.evaluate(
            "(made) => { document.querySelector('#live').insertAdjacentHTML('beforeend', made); ferry.writeTimes(); }",
            made,
        )
        assert page.locator("time[datetime='2026-11-30T25:00:00Z']").text_content() == "x"


def test_a_bar_and_its_line_in_the_table_lead_to_the_run(desk: Desk) -> None:
    filled(desk)
    oldest = desk.watcher.last.runs[-1].run
    with served(desk) as address, chromium() as page:
        shown(page, address, f"{HERE}/")
        figure = page.locator("figure[data-chart=timeline]")
        figure.locator("summary").click()
        figure.locator("tbody tr").last.get_by_role("link").click()
        page.wait_for_url(f"**/run/{oldest}")
        shown(page, address, f"{HERE}/")
        figure.scroll_into_view_if_needed()
        bar = figure.locator(".bars path").first.bounding_box()
        assert bar
        page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
        expect(figure.locator(".hoverlayer")).to_contain_text("success: 4.0 s")
        page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
        page.wait_for_url(f"**/run/{oldest}")


def test_figures_and_times_are_written_alike_by_the_page_and_its_charts(desk: Desk) -> None:
    filled(desk)
    values = [0, 0.04, 0.5, 1, 9.96, 10, 59, 60, 61, 150, 999, 1_000, 3_600, 3_660, 86_400, 90_061, 44_400_000, 1e15]
    with served(desk) as address, chromium(locale="en-US", timezone_id="UTC") as page:
        shown(page, address, f"{HERE}/")
        whole = [int(one) for one in values]
        cases: tuple[tuple[str, Callable[[Any], str], Sequence[float]], ...] = (
            ("number", shown_as.number, whole),
            ("size", shown_as.size, whole),
            ("duration", shown_as.duration, values),
        )
        for name, write, given in cases:
            assert page.evaluate(f"(values) => values.map(ferry.write.{name})", given) == [*map(write, given)]
        times = page.locator("figure[data-chart=timeline] tbody td:first-child").all_text_contents()
        page.goto(f"{address}{HERE}/runs")
        written = page.locator("#live tbody time").first
        assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d", written.text_content() or "")
        assert written.text_content() == times[0]
