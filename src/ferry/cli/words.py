"""What the words of Ferry mean: of flows, runs, refusals, gaps, alerts and errors, and the terms of the glossary.

`tools/word_list.py` writes words.json from docs/troubleshooting.md and docs/glossary.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

LINK = re.compile(r"\[([^]]+)\]\(([^)#]*)(#[^)]*)?\)")
FILE = Path(__file__).with_name("words.json")
Of = Literal["state", "kind", "alert", "error", "term"]
"""What a word is of: a flow or a run, a refusal or a gap, an alert, an error of a command. Or it is a term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word, what it means, what to check first, and what fixes it; the three texts are Markdown, or empty.

    `also` are other names of the same thing: the Prometheus rules of an alert. `colour` is that of its badge.
    """

    of: Of
    section: str
    word: str
    also: tuple[str, ...]
    colour: str
    means: str
    look: str
    fixes: str


@cache
def all_words() -> tuple[Word, ...]:
    """Return all words, in the order of the documents."""
    return tuple(Word(**{**one, "also": tuple(one["also"])}) for one in json.loads(FILE.read_text()))


def with_places(text: str, place: Callable[[str, str], str]) -> str:
    """Return Markdown with each link as its words and its place; `place` takes the document and the anchor."""
    return LINK.sub(lambda link: f"{link[1]} ({place(link[2], link[3] or '')})", text)


def document_place(document: str, anchor: str) -> str:
    """Return the path of a link of docs/troubleshooting.md; an empty document is that one."""
    return f"docs/{document or 'troubleshooting.md'}{anchor}"
