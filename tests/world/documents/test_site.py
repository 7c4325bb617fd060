"""The site of the documents: every page has a place, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from tests.golden import Golden

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "docs_site.py"
SITE = ROOT / "build" / "site"
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""What a browser asks for by itself, by tag."""


class Read(HTMLParser):
    """A page's anchors, the addresses that it fetches, and those that it links to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


def in_nav() -> list[str]:
    """The pages that mkdocs.yml names."""
    return list(runpy.run_path(str(TOOL))["pages"](yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))


def titles(part: Any) -> Iterator[tuple[str, str]]:
    """Pages with the titles that `nav` of mkdocs.yml gives them."""
    if isinstance(part, dict):
        for title, below in part.items():
            if isinstance(below, str):
                yield below, title
            else:
                yield from titles(below)
    elif isinstance(part, list):
        for below in part:
            yield from titles(below)


@cache
def read(page: Path) -> Read:
    return Read(page)


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    """The built site's pages."""
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [page for page in SITE.rglob("*.html") if page.name != "404.html"]


def test_every_page_of_the_repository_is_built(pages: list[Path]) -> None:
    named = {ROOT / name for name in in_nav()}
    built = {ROOT / page.relative_to(SITE).with_suffix(".md") for page in pages}
    assert {page.with_name("index.md") if page.name == "README.md" else page for page in named} == built


def test_no_page_fetches_anything_from_elsewhere(pages: list[Path]) -> None:
    for page in pages:
        for address in read(page).fetched:
            assert not urlsplit(address).netloc, f"{page}: {address}"
            assert address.startswith("data:") or (page.parent / urlsplit(address).path).is_file(), f"{page}: {address}"
    for sheet in SITE.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", sheet.read_text()) == [], sheet


def test_every_link_leads_to_a_page_and_its_heading(pages: list[Path]) -> None:
    broken = []
    for page in pages:
        for link in read(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            there = target.is_file() and target.is_relative_to(SITE)
            anchor = unquote(parts.fragment) if target.suffix == ".html" else ""
            if not there or (anchor and anchor not in read(target).anchors):
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []


@pytest.mark.parametrize("runbook", sorted(path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")))
def test_the_steps_of_a_runbook_are_one_list_from_first_to_last(runbook: str, pages: list[Path]) -> None:
    """Markdown nests by three spaces here, and the site's reader by four."""
    text = (ROOT / "docs" / "runbooks" / f"{runbook}.md").read_text()
    steps = [line.partition(". ")[0] for line in text.splitlines() if re.match(r"\d+\. ", line)]
    built = next(page for page in pages if page.parts[-2:] == ("runbooks", f"{runbook}.html")).read_text()
    lists = re.findall(r"<ol( start=\"\d+\")?>", built)
    begun = [number for at, number in enumerate(steps) if at == 0 or int(number) != int(steps[at - 1]) + 1]
    within = re.findall(r"^   1\. ", text, re.MULTILINE)
    assert len(lists) == len(begun) + len(within)
    assert built.count("```") == 0


def test_the_search_knows_the_pages(pages: list[Path]) -> None:
    index = (SITE / "search.json").read_text()
    assert [page for page in pages if str(page.relative_to(SITE)) not in index and page.name != "index.html"] == []


def test_a_page_without_a_place_is_named(golden: Golden) -> None:
    complaints: Any = runpy.run_path(str(TOOL))["complaints"]
    named = in_nav()
    assert list(complaints(named)) == []
    golden("\n".join(complaints([page for page in named if page != "docs/ledger.md"])), "a page without a place")
    golden("\n".join(complaints([*named, "docs/nowhere.md", "docs/json.md"])), "one twice, and one that is not there")


def test_the_list_of_all_documents_has_all() -> None:
    """docs/README.md is to the repository what nav is to the site; decisions are a folder."""
    text = (ROOT / "docs" / "README.md").read_text()
    linked = set(re.findall(r"\]\(((?:runbooks/)?[\w-]+\.md)\)", text))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert linked == pages | {f"runbooks/{page.name}" for page in (ROOT / "docs" / "runbooks").glob("*.md")}


def test_a_page_has_one_title() -> None:
    """Its heading, its place in nav, and its link in docs/README.md say the same."""
    named = dict(titles(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert {page: (ROOT / page).read_text().partition("\n")[0] for page in named} == {
        page: f"# {title}" for page, title in named.items()
    }
    text = (ROOT / "docs" / "README.md").read_text()
    listed = {
        str((ROOT / "docs" / page).resolve().relative_to(ROOT)): title
        for title, page in re.findall(r"^\| \[([^\]]+)\]\((\S+\.md)\)", text, re.MULTILINE)
    }
    assert {page: title for page, title in listed.items() if not page.startswith("docs/adr/")} == {
        page: title for page, title in named.items() if page != "docs/README.md"
    }


def test_each_picture_is_shown_and_small() -> None:
    shown = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    linked = {
        (page.parent / found).resolve() for page in shown for found in re.findall(r"\((\S+\.png)\)", page.read_text())
    }
    assert linked == set((ROOT / "docs" / "pictures").iterdir())
    assert {path.name for path in linked if path.stat().st_size > 120_000} == set(), (
        "run make pictures, which packs them"
    )


def test_figures_of_the_page_about_sizing_are_those_of_the_bench() -> None:
    bench = (ROOT / "bench" / "README.md").read_text().splitlines()
    tables = (ROOT / "docs" / "sizing.md").read_text().split("<!-- from the bench -->\n")[1:]
    assert tables
    for table in tables:
        rows = table.partition("\n\n")[0].splitlines()
        assert len(rows) > 2
        assert [row for row in rows if row not in bench] == []
