"""Slips that Java reads without an error: what was written, and the line that was meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from ferry.config.keys.catalogue import find, may_be_shown
from ferry.config.text.properties import Property, is_comment, is_continued, parse_all, written_raw
from ferry.config.text.secrets import HIDDEN

QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
"""Quotes, and what word processors and web pages make of them."""
ARROW = re.compile("[-=\u2010-\u2015\u2212]?(?:>|&gt;)|[\u2192\u21d2]")
"""The arrow of a flow, and what word processors, web pages and typing errors make of it."""
_ARROW_AT_END = re.compile(rf"(.*?)(?:{ARROW.pattern})")
COMMENT_BEHIND = re.compile(r"\s+[#!]")


def without_comment(entry: Property) -> tuple[str, ...] | None:
    """Return the comment after a value on a line of its own, then the value alone.

    None when there is no comment, or where it cannot be distinguished from the value. That is so after a backslash,
    which escapes the blank. In an entry of several lines, too, the value may continue after the comment.
    """
    match = COMMENT_BEHIND.search(entry.raw)
    if match is None or is_continued(entry.raw[: match.start()]) or entry.last_line > entry.line:
        return None
    comment = " ".join(entry.raw[match.start() :].split())
    return comment, written_raw(entry.key, entry.raw[: match.start()])


def has_comment(entry: Property) -> bool:
    """Return whether something that resembles a comment follows the value."""
    return COMMENT_BEHIND.search(entry.raw) is not None


def torn_apart(entry: Property, aliases: Collection[str] = ()) -> tuple[str, str] | None:
    """Return key and raw value of `S -> T.name = value`, which Java reads as the key S or S->; None for other entries.

    Between one of `aliases` and a blank, other arrows are understood as well.
    """
    before, behind = _ARROW_AT_END.fullmatch(entry.key), ARROW.match(entry.raw)
    if find(entry.key, "flow", "worker") is not None:
        return None
    _, arrow, target = entry.key.partition("->")
    if arrow and (not target or ("." not in target and entry.raw.startswith("."))):
        head, rest = entry.key, entry.raw
    elif before is not None and before.group(1) in aliases:
        head, rest = f"{before.group(1)}->", entry.raw
    elif behind is not None and "->" not in entry.key and (behind.group() == "->" or entry.key in aliases):
        head, rest = f"{entry.key}->", entry.raw[behind.end() :].lstrip()
    else:
        return None
    read = parse_all(rest)[0]
    if len(read) != 1:
        return None
    key, raw = read[0].key, read[0].raw
    separator = re.search(r"[=:]", rest)
    if separator is not None and ("." not in key or key.endswith(".") or raw.startswith(".")):
        # Blanks around the dot as well: the key continues up to the separator.
        key, raw = "".join(rest[: separator.start()].split()), rest[separator.end() :].lstrip()
    return head + key, raw


def shown(correction: tuple[str, ...]) -> str:
    """Return corrected lines for a sentence, without the values of secret keys."""
    return " / ".join(hidden(correction))


def hidden(correction: tuple[str, ...]) -> list[str]:
    """Return corrected lines without the values of secret keys, and without a comment that may be a part of one."""
    if not hides(correction):
        return list(correction)
    return [f"# {HIDDEN}" if is_comment(line) else _hidden(line) for line in correction]


def hides(correction: tuple[str, ...]) -> bool:
    """Return whether a corrected line holds what must not be shown."""
    return any(_hidden(line) != line for line in correction)


def _hidden(line: str) -> str:
    key, separator, _ = line.partition(" = ")
    if not separator or is_comment(line) or may_be_shown(key):
        return line
    return f"{key}{separator}{HIDDEN}"


def alias_meant(text: str, aliases: tuple[str, ...]) -> str | None:
    """Return the alias that `text` is apart from case and punctuation; None when there is none, or more than one."""
    same = [alias for alias in aliases if _bare(alias) == _bare(text)]
    return same[0] if len(same) == 1 else None


def alias_ahead(text: str, aliases: tuple[str, ...]) -> tuple[str, str] | None:
    """Return what replaces an alias at the front of `text`, up to one of its dots, and that alias; else None."""
    for end in reversed([match.start() for match in re.finditer(r"\.", text)]):
        meant = alias_meant(text[:end], aliases)
        if meant is not None:
            return text[:end], meant
    return None


def nearest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the word of `known` that is spelt most like `wrong`, in any case; None: none is as near as `cutoff`.

    A cutoff of 1 is the same spelling. A known key after something else is not a typing error: its writer spelt the key
    right, and meant another one.
    """
    spelt = {word.lower(): word for word in known if not wrong.endswith(f".{word}")}
    close = get_close_matches(wrong.lower(), spelt, n=1, cutoff=cutoff)
    return spelt[close[0]] if close else None


def _bare(text: str) -> str:
    return re.sub(r"[._-]", "", text).lower()
