"""Slips that Java reads without a word: what was written, and the line that was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ferry.config.catalogue import may_be_shown
from ferry.config.properties import Property, written_raw
from ferry.config.secrets import HIDDEN

QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
"""Quotes, and what word processors and web pages make of them."""
ARROW = re.compile("[-=\u2010-\u2015\u2212]?(?:>|&gt;)|[\u2192\u21d2]")
"""The arrow of a flow, and what word processors, web pages and hasty hands make of it."""
COMMENT_BEHIND = re.compile(r"\s+[#!]")


def without_comment(entry: Property) -> tuple[str, ...] | None:
    """The comment behind a value on a line of its own, then the value alone; None when there is no comment."""
    match = COMMENT_BEHIND.search(entry.raw)
    if match is None:
        return None
    comment = " ".join(entry.raw[match.start() :].split())
    return comment, written_raw(entry.key, entry.raw[: match.start()])


def shown(correction: tuple[str, ...]) -> str:
    """Corrected lines inside a sentence, without the values of secret keys."""
    return " / ".join(hidden(correction))


def hidden(correction: tuple[str, ...]) -> list[str]:
    """Corrected lines without the values of secret keys, and without a comment that may be a part of one."""
    if not hides(correction):
        return list(correction)
    return [f"# {HIDDEN}" if line.startswith("#") else _hidden(line) for line in correction]


def hides(correction: tuple[str, ...]) -> bool:
    """Whether a corrected line holds what must not be shown."""
    return any(_hidden(line) != line for line in correction)


def _hidden(line: str) -> str:
    key, separator, _ = line.partition(" = ")
    if not separator or line.startswith("#") or may_be_shown(key):
        return line
    return f"{key}{separator}{HIDDEN}"


def alias_meant(text: str, aliases: tuple[str, ...]) -> str | None:
    """The alias that `text` is but for case and punctuation; None when there is none, or more than one."""
    same = [alias for alias in aliases if _bare(alias) == _bare(text)]
    return same[0] if len(same) == 1 else None


def alias_ahead(text: str, aliases: tuple[str, ...]) -> tuple[str, str] | None:
    """What stands for an alias at the front of `text`, up to one of its dots, and that alias; else None."""
    for end in reversed([match.start() for match in re.finditer(r"\.", text)]):
        meant = alias_meant(text[:end], aliases)
        if meant is not None:
            return text[:end], meant
    return None


def nearest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The word of `known` that is spelt most like `wrong`; None when none is as near as `cutoff` (1: the same).

    A known key behind something else is no slip of the hand: who wrote it spelt the key right, and meant another.
    """
    close = get_close_matches(wrong, [word for word in known if not wrong.endswith(f".{word}")], n=1, cutoff=cutoff)
    return close[0] if close else None


def _bare(text: str) -> str:
    return re.sub(r"[._-]", "", text).lower()
