"""What documents tell people to press and to look for on the page is there, by the same words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferry.model.switch import Verb

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "plugins" / "ferry_airflow" / "page"
SHOWN = "".join(path.read_text() for path in [*sorted((PAGE / "templates").glob("*.html")), PAGE / "mount.py"])
TABS = {
    name.capitalize()
    for path in PAGE.rglob("*.py")
    for name in re.findall(r'\bTab\([^)]*\bname="([a-z]+)"', path.read_text())
}
"""The templates write the names of tabs with a capital."""

VERBS = {verb.capitalize() for verb in Verb if "verb|capitalize" in SHOWN}
"""Buttons, too."""

BOLD = re.compile(r"\*\*([A-Z][^*\n]+)\*\*")
ITALIC = re.compile(r"(?<!\*)\*([A-Z][^*\n]+)\*(?!\*)")
TOLD = {
    "tutorial.md": ((BOLD, ITALIC), {"Ferry", "Runs", "Offsets", "Overview", "Resume flow"}),
    "troubleshooting.md": ((ITALIC,), {"Run now", "Dry run", "Since when", "Tasks and logs"}),
}
"""How a document writes what is on the page, and some of what it has to name."""

OTHERWISE = {"Copy it under another name"}
"""Written so for another reason."""


def is_shown(label: str) -> bool:
    """As the whole text of an element, as a string that one is made of, or as a tab or the name of a switch's verb."""
    return label in TABS or label in VERBS or any(text in SHOWN for text in (f">{label}<", f'"{label}"'))


@pytest.mark.parametrize("document", TOLD)
def test_what_is_to_be_pressed_is_on_the_page(document: str) -> None:
    patterns, some = TOLD[document]
    text = (ROOT / "docs" / document).read_text()
    labels = {label for pattern in patterns for label in pattern.findall(text)} - OTHERWISE
    assert some <= labels
    assert {label for label in labels if not is_shown(label)} == set()


def test_the_buttons_that_the_page_is_said_to_have_are_there() -> None:
    _, _, below = (ROOT / "docs" / "page.md").read_text().partition("| button | does | needs in Airflow |\n")
    cells = [row.split("|")[1].strip() for row in below.partition("\n\n")[0].splitlines()[1:]]
    buttons = [label for cell in cells for label in cell.split(", ")]
    assert {"Run now", "Resume"} <= set(buttons)
    assert [label for label in buttons if not is_shown(label)] == []


def test_a_receipt_in_the_tutorial_has_the_columns_of_the_page() -> None:
    macro = (PAGE / "templates" / "parts.html").read_text().partition("macro receipts_table")[2]
    head = macro.partition("</thead>")[0].replace("{{ flow.source }}", "primary").replace("{{ flow.target }}", "backup")
    head = re.sub(r'\{\{ term\("\w+", "([^"]+)"\) \}\}', r"\1", head)
    columns = re.findall(r"<th[^>]*>([^<]+)</th>", head)
    (told,) = re.findall(r"^ +\| (Source offsets \|.*) \|$", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE)
    named = told.split(" | ")
    assert named == [column for column in columns if column in named]
