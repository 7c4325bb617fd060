"""MirrorMaker 1's white- and blacklists as lists of MirrorMaker 2.

Source: `kafka.consumer.TopicFilter` (now `org.apache.kafka.server.util.TopicFilter`): commas mean `|`, blanks and the
quotes around the whole are dropped, and the expression must match the whole name. MirrorMaker 2 joins the items of a
list with `|` again, so that both make the same expression.
"""

from __future__ import annotations

import re

from ferry.config.keys import values
from ferry.config.reading.typos import QUOTES
from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence

_DANGLING_STAR = re.compile(r"(?<![\\.)\]}*+?])[A-Za-z0-9_-]\*")
_OPENERS, _CLOSERS = "([", ")]"


def as_list(written: str) -> tuple[str, ...]:
    """Return the items of a white- or blacklist; a lone `*`, as in the manuals, is `.*`.

    Raises BadValue, with the remedy, for what Java or Ferry cannot read, and for an empty list.
    """
    plain = re.sub(r"^[\"']+|[\"']+$", "", written.strip().replace(" ", ""))
    if plain and (plain[0] in QUOTES or plain[-1] in QUOTES):
        raise BadValue(sentence("value.topics.quotes", value=written))
    items = tuple(".*" if item == "*" else item for item in _items(plain) if item)
    if not items:
        raise BadValue(sentence("value.topics.none", value=written))
    values.pattern_list(", ".join(items))
    return items


def remark(items: tuple[str, ...]) -> str:
    """Return a warning about a list that means something else than it seems to; empty if there is none."""
    for item in items:
        if "consumer-offsets" in item:
            return f"; Kafka's topic is spelled __consumer_offsets, not {item}, and is never copied"
        if item != ".*" and _DANGLING_STAR.search(item) and ".*" not in item:
            return f"; {item} repeats only the letter before its *, as in Java: for any text write .*"
    return ""


def _items(expression: str) -> list[str]:
    r"""Return the expression cut at `,` and `|` outside groups, classes and `\Q...\E`; inside, a comma becomes `|`."""
    items = [""]
    depth = 0
    at = 0
    while at < len(expression):
        char = expression[at]
        taken = char
        if expression.startswith("\\Q", at):
            end = expression.find("\\E", at)
            taken = expression[at : end + 2 if end >= 0 else len(expression)]
        elif char == "\\":
            taken = expression[at : at + 2]
        at += len(taken)
        depth += (char in _OPENERS) - (char in _CLOSERS) if len(taken) == 1 else 0
        if taken in (",", "|") and depth <= 0:
            items.append("")
        else:
            items[-1] += taken.replace(",", "|")
    return items
