"""The page of a report: it stands alone, says what the evidence says, and prints on A4."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from ferry.features.evidence.acts.html import rendered
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.evidence.rules.document import SHOWN
from ferry.model.evidence import EvidenceReport, GroupMoved, StepOutcome, TimelineStep
from tests.chromium import chromium
from tests.pure.reports.values import EVIDENCE, STEPS, loss

A4 = 794
"""Pixels of CSS across a sheet."""
MARGINS = 106


def page(evidence: EvidenceReport = EVIDENCE) -> str:
    return rendered(SealedReport(number=3, evidence=evidence, previous=None, signer=None), "c0ffee" * 10)


class Elements(HTMLParser):
    """Every element of a page, and its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name.removeprefix("xlink:") in ("src", "href", "srcset", "data") and not (value or "").startswith("#"):
                self.fetched.append(value or "")


def test_a_page_stands_alone_and_runs_nothing() -> None:
    text = page()
    found = Elements(text)
    assert not found.tags & {"script", "link", "iframe", "object", "embed", "img"}
    assert found.fetched == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert sorted(found.ids) == sorted(set(found.ids)), "two charts of one page share no id"
    for name in re.findall(r"(?:href=\"|url\()#([^\")]+)", text):
        assert name in found.ids


def test_each_figure_of_a_table_has_the_title_of_its_column() -> None:
    """A phone shows rows as cards, without the head of the table."""
    for table in re.findall(r"<table>.*?</table>", page(), re.DOTALL):
        titles = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        labels = [re.findall(r'data-label="(.*?)"', row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
        assert all(row == titles[len(titles) - len(row) :] for row in labels)
        assert any(len(row) == len(titles) - 1 for row in labels)


def test_a_page_fits_on_a_phone() -> None:
    """Nothing is wider than the screen but charts, which scroll in their own place."""
    with chromium(viewport={"width": 390, "height": 844}) as browser:
        browser.set_content(page())
        across = "({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth]"
        assert browser.evaluate(f"() => ({across})(document.documentElement)") == [390, 390]
        wide = """() => [...document.querySelectorAll("body *")]
          .filter((one) => !one.closest("figure") && one.getBoundingClientRect().right > 391)
          .map((one) => one.outerHTML.slice(0, 120))"""
        assert browser.evaluate(wide) == []
        shown = "() => [...document.querySelectorAll('tbody tr')].map((one) => getComputedStyle(one).display)"
        assert set(browser.evaluate(shown)) == {"grid"}


def test_what_others_named_is_text() -> None:
    text = page(replace(EVIDENCE, notes=("<script>alert(1)</script>",), steps=(*EVIDENCE.steps[:1], step("<b>&"))))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    for chart in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(chart)


def test_sentences_write_numbers_as_the_tables_do() -> None:
    said = "71838 records up to offset 1204111"
    check = replace(EVIDENCE.checks[0], message=f"check: {said}")
    told = replace(step("x"), detail=f"step: {said}")
    text = page(
        replace(
            EVIDENCE,
            summary=f"summary: {said}",
            checks=(check,),
            steps=(told,),
            samples=tuple(replace(one, lag_records=71838) for one in EVIDENCE.samples),
            notes=(f"notes: {said}",),
            refusals=(f"refusals: {said}",),
            deviations=(f"deviations: {said}",),
            would=(f"would: {said}",),
        )
    )
    for name in ("summary", "check", "step", "notes", "refusals", "deviations", "would"):
        assert f"{name}: 71\N{NARROW NO-BREAK SPACE}838 records up to offset 1204111" in text
    assert "71838" not in text


def step(title: str) -> TimelineStep:
    return TimelineStep(name="x", title=title, began_ms=0, ended_ms=9_000, outcome=StepOutcome.FAILED)


def test_a_large_flow_shows_its_worst_partitions_and_says_how_many_there_are() -> None:
    losses = tuple(loss(number, number, number / 10) for number in range(10_000))
    text = page(replace(EVIDENCE, losses=(*losses, loss(0, None, None, topic="silent"))))
    shown = re.findall(r'<th scope="row">((?:orders|silent)-\d+)</th>', text)
    assert len(shown) == SHOWN
    assert shown[:3] == ["silent-0", "orders-9999", "orders-9998"]
    assert "9\N{NARROW NO-BREAK SPACE}801 more partitions" in text


def test_in_a_browser_all_is_there_and_on_paper_nothing_is_cut_off(tmp_path: Path) -> None:
    name = "group-" + "x" * 60
    long = GroupMoved(
        group=name, target_group=f"{name}.drill", partitions=1_000_000, committed=1, exact=1, reread=0, skipped=0
    )
    file = tmp_path / "report.html"
    file.write_text(page(replace(EVIDENCE, groups=(*EVIDENCE.groups, long))))
    problems: list[str] = []
    with chromium() as window:
        window.on("console", lambda message: problems.append(message.text))
        window.on("pageerror", lambda error: problems.append(str(error)))
        window.goto(file.as_uri())
        text = window.locator("body").inner_text()
        for words in (
            "Shadow drill of primary \u2192 backup",
            "! deviations",
            "4.2 s",
            "anna@ops",
            "\u00d7 missed",
            *STEPS,
        ):
            assert words in text
        charts = window.locator("svg").all()
        assert [chart.get_attribute("role") for chart in charts] == ["img", "img"]
        assert all(chart.get_attribute("aria-label") for chart in charts)
        assert problems == [], "the page's own policy forbids nothing that it needs"
        window.emulate_media(media="print")
        window.set_viewport_size({"width": A4 - MARGINS, "height": 1000})
        wide = window.evaluate(
            "[...document.querySelectorAll('table, svg, dl, h1')]"
            ".filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map(e => e.outerHTML.slice(0, 200))"
        )
        assert wide == []
