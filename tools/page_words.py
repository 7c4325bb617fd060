"""Write the words of docs/troubleshooting.md to where the page in Airflow reads them: it has no documents beside it.

Usage: python tools/page_words.py [--check]; --check only says whether the file is as the documents have it.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "troubleshooting.md"
FILE = ROOT / "plugins" / "ferry_airflow" / "page" / "words.json"
SECTIONS = {"The flow's word": "state", "A run's word": "state", "What a run refuses": "kind", "Gaps": "kind"}
"""Headings with tables of words, and what the words are of."""
COLUMNS = {
    "what it means": "means",
    "check first": "look",
    "what fixes it": "mends",
}
LINK = re.compile(r"\[([^]]+)\]\(([^)#]*)(#[^)]*)?\)")


def shown(cell: str) -> str:
    """A cell as HTML; a link says in words where it leads: to another table of the page, or to which document."""
    text = html.escape(cell.replace("\\|", "|"), quote=False)
    text = LINK.sub(lambda found: f"{found[1]} ({_place(found[2], found[3] or '')})", text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _place(document: str, anchor: str) -> str:
    here = {"#" + re.sub(r"[^a-z -]", "", name.lower()).replace(" ", "-"): name for name in SECTIONS}
    if not document and anchor in here:
        return f"on this page: {here[anchor]}"
    return f"docs/{document or SOURCE.name}{anchor}"


def entries() -> Iterator[dict[str, str]]:
    """Each word with what it means, what to check first, and what fixes it, in the document's order."""
    section, head = "", [""]
    for line in SOURCE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if section not in SECTIONS or not line.startswith("|") or set(line) <= set("|-"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[0].startswith("`"):
            found = dict(zip(head, cells, strict=True))
            yield {
                "of": SECTIONS[section],
                "section": section,
                "word": cells[0].strip("`"),
                "colour": found.get("colour", ""),
                **{name: shown(found.get(column, "")) for column, name in COLUMNS.items()},
            }
        else:
            head = cells


def rendered() -> str:
    """The file's text."""
    return json.dumps(list(entries()), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(FILE.read_text() != rendered())
    FILE.write_text(rendered())
