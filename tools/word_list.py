"""Write the words of docs/troubleshooting.md and docs/glossary.md to src/ferry/cli/words.json.

`ferry explain` and the page in Airflow read them there.

Usage: python tools/word_list.py [--check]; --check only says whether the file is as the documents have it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "troubleshooting.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
TERM = re.compile(r'^\| <a id="[\w-]+"></a>([^|]+) \| (.+) \|$', re.MULTILINE)
"""A row of the glossary: the names of a thing, and what they mean."""
FILE = ROOT / "src" / "ferry" / "cli" / "words.json"
SECTIONS = {
    "The flow's word": "state",
    "A run's word": "state",
    "What a run refuses": "kind",
    "Gaps": "kind",
    "An alert came": "alert",
    "A command ends with an error": "error",
}
"""Headings with tables of words, and what the words are of."""
COLUMNS = {"what it means": "means", "check first": "look", "check": "look", "what fixes it": "fixes"}
NAMES = ("Prometheus rule",)
"""Columns with other names of the same thing."""


def entries() -> Iterator[dict[str, object]]:
    """Each word with what it means, what to check first, and what fixes it, in the document's order; as Markdown."""
    section, head = "", [""]
    for line in SOURCE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if section not in SECTIONS or not line.startswith("|") or set(line) <= set("|-"):
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        found = dict(zip(head, cells, strict=True)) if len(cells) == len(head) else {}
        names = re.findall(r"`([^`]+)`", ", ".join([cells[0], *(found.get(column, "") for column in NAMES)]))
        if cells[0] and not cells[0].startswith("`"):
            head = cells
        elif names:
            texts = {name: found[column] for column, name in COLUMNS.items() if column in found}
            yield {
                "of": SECTIONS[section],
                "section": section,
                "word": names[0],
                "also": names[1:],
                "colour": found.get("colour", ""),
                **{name: texts.get(name, "") for name in ("means", "look", "fixes")},
            }


def terms() -> Iterator[dict[str, object]]:
    """Each term of the glossary with what it means; as Markdown."""
    for names, means in TERM.findall(GLOSSARY.read_text()):
        word, *also = names.split(", ")
        found = {"of": "term", "section": "Terms", "word": word, "also": also, "colour": ""}
        yield {**found, "means": means, "look": "", "fixes": ""}


def rendered() -> str:
    """The file's text."""
    return json.dumps([*entries(), *terms()], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(FILE.read_text() != rendered())
    FILE.write_text(rendered())
