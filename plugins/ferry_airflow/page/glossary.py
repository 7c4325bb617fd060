"""What the words of the badges and the terms mean, as HTML: `ferry.cli.words` has them, from the documents."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ferry.cli import words
from ferry.cli.words import Of
from ferry_airflow.page.run_words import Condition

COLOURS: Mapping[str, Condition] = {
    "green": Condition.GOOD,
    "blue": Condition.BUSY,
    "amber": Condition.WARN,
    "red": Condition.BAD,
    "violet": Condition.HELD,
    "grey": Condition.UNKNOWN,
}
"""The colours of badges, by their names in docs/page.md."""
SHOWN = ("state", "kind", "term")
"""What badges show, and the terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a word means, what to check first, and what fixes it, as HTML."""

    of: Of
    section: str
    word: str
    also: tuple[str, ...]
    colour: str
    means: str
    look: str
    fixes: str

    @property
    def condition(self) -> Condition:
        """Its colour, the first one if it may have several."""
        return COLOURS.get(
            self.colour.partition(";")[0], Condition.BAD if self.section.startswith("What") else Condition.WARN
        )

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"{self.of}-{self.word.replace(' ', '-')}"


@cache
def all_words() -> tuple[Word, ...]:
    """The words of badges and the terms, in the order of the documents."""
    return tuple(
        Word(
            of=one.of,
            section=one.section,
            word=one.word,
            also=one.also,
            colour=one.colour,
            means=_html(one.means),
            look=_html(one.look),
            fixes=_html(one.fixes),
        )
        for one in words.all_words()
        if one.of in SHOWN
    )


def anchor_of(word: str, of: Of) -> str:
    """Where the page explains a word; empty where it does not."""
    return _anchors().get((of, word), "")


@cache
def _anchors() -> dict[tuple[str, str], str]:
    return {(one.of, one.word): one.anchor for one in all_words()}


def meaning_of(term: str) -> str:
    """What a term of docs/glossary.md means, as text; KeyError for a word that has no row there."""
    return _meanings()[term]


@cache
def _meanings() -> dict[str, str]:
    return {one.word: one.means.replace("`", "") for one in words.all_words() if one.of == "term"}


def _html(cell: str) -> str:
    """Markdown as HTML. A link names another table of the page, or a document, which the page cannot open."""
    text = words.with_places(html.escape(cell, quote=False), _place)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _place(document: str, anchor: str) -> str:
    here = {f"#{_slug(one.section)}": one.section for one in words.all_words() if one.of in SHOWN}
    if not document and anchor in here:
        return f"on this page: {here[anchor]}"
    return words.document_place(document, anchor)


def _slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^a-z -]", "", heading.lower()).replace(" ", "-")
