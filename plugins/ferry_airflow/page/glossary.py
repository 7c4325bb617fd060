"""What the words of the badges mean, as docs/troubleshooting.md has it: the page has no documents beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ferry_airflow.page.run_words import Mood

FILE = Path(__file__).with_name("words.json")
Of = Literal["state", "kind"]
"""What a word is of: a flow or a run, or a refusal or gap."""
COLOURS: Mapping[str, Mood] = {
    "green": Mood.GOOD,
    "blue": Mood.BUSY,
    "amber": Mood.WARN,
    "red": Mood.BAD,
    "violet": Mood.HELD,
    "grey": Mood.UNKNOWN,
}
"""As docs/page.md names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a word means, what to look at first, and what mends it, as HTML; of docs/troubleshooting.md."""

    of: Of
    section: str
    word: str
    colour: str
    means: str
    look: str
    mends: str

    @property
    def mood(self) -> Mood:
        """Its colour, the first where it may have several."""
        return COLOURS.get(self.colour.partition(";")[0], Mood.BAD if self.section.startswith("What") else Mood.WARN)

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"{self.of}-{self.word.replace(' ', '-')}"


@cache
def all_words() -> tuple[Word, ...]:
    """As `tools/page_words.py` writes them."""
    return tuple(Word(**one) for one in json.loads(FILE.read_text()))


def anchor_of(word: str, of: Of) -> str:
    """Where a word is told on the page; empty where it is not."""
    return _anchors().get((of, word), "")


@cache
def _anchors() -> dict[tuple[str, str], str]:
    return {(one.of, one.word): one.anchor for one in all_words()}
