"""Topic names that a Java regular expression may match, to try with others: lists cannot be compared as such."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

from ferry.config.text.filters import LEGAL_NAME
from ferry.config.text.regex import NotExpressible, compile_java, unquoted

_CHARACTERS = f"{string.ascii_lowercase}{string.digits}{string.ascii_uppercase}-._"
_ANY_TEXT = "any-topic"
_LONGEST_NAME = 249
_VARIANTS = 4
"""Names for each item: with the first, the last and middle characters of its classes, and each of its words."""
_NO_TEXT = ("(?=", "(?!", "(?<=", "(?<!")
"""Groups that match no text of their own: the caller that tries the name finds out whether they hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Characters:
    any_of: str

    def text(self, variant: int) -> str:
        return self.any_of[variant * (len(self.any_of) - 1) // (_VARIANTS - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sequence:
    parts: tuple[_Node, ...]

    def text(self, variant: int) -> str:
        return "".join(part.text(variant) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    options: tuple[_Node, ...]

    def text(self, variant: int) -> str:
        return self.options[variant % len(self.options)].text(variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated:
    part: _Node
    low: int
    high: int

    def text(self, variant: int) -> str:
        is_any = isinstance(self.part, _Characters) and self.part.any_of == _CHARACTERS
        if is_any and self.low <= 1 and self.high > len(_ANY_TEXT):
            return _ANY_TEXT if variant or self.low else ""
        text = self.part.text(variant)
        # One character more than the longest name is enough for no name.
        most = _LONGEST_NAME // max(len(text), 1) + 1
        return text * min(max(self.low, 1 if variant else 0), self.high, most)


_Node = _Characters | _Sequence | _Choice | _Repeated


@lru_cache(maxsize=64)
def samples(pattern: str, most: int) -> tuple[str, ...]:
    """Return legal names, at most `most`, that `pattern` is likely to match; none where this reader cannot read it."""
    try:
        options = _Reader(tokens=unquoted(pattern)).options()
    except (ValueError, IndexError, RecursionError):
        return ()
    texts = (option.text(variant) for variant in range(_VARIANTS) for option in options)
    legal = (text for text in texts if len(text) <= _LONGEST_NAME and LEGAL_NAME.fullmatch(text))
    return tuple(dict.fromkeys(islice(legal, most)))


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Reads the tokens of an expression that Java accepts."""

    tokens: list[str]
    at: int = 0

    def options(self) -> tuple[_Node, ...]:
        found = []
        while True:
            found.append(_Sequence(parts=tuple(self._parts())))
            if self.at >= len(self.tokens) or self.tokens[self.at] == ")":
                return tuple(found)
            self.at += 1

    def _parts(self) -> Iterator[_Node]:
        while self.at < len(self.tokens) and self.tokens[self.at] not in "|)":
            yield self._repeated(self._atom())

    def _atom(self) -> _Node:
        token = self.tokens[self.at]
        self.at += 1
        if token == "(":
            return self._group()
        if token == "[":
            begin = self.at - 1
            self.at = self.tokens.index("]", self.at + 1) + 1
            token = "".join(self.tokens[begin : self.at])
        if token in ("^", "$", "\\b", "\\B", "\\A", "\\z"):
            return _Sequence(parts=())
        return _Characters(any_of=_matching(token))

    def _group(self) -> _Node:
        opener = "".join(self.tokens[self.at : self.at + 3])
        has_text = not f"({opener}".startswith(_NO_TEXT)
        if opener.startswith("?"):
            # Names and flags end here; the condition of a lookaround is skipped.
            while self.tokens[self.at] not in ":>=!)":
                self.at += 1
            if self.tokens[self.at] == ")":
                self.at += 1
                return _Sequence(parts=())
            self.at += 1
        options = self.options()
        self.at += 1
        return _Choice(options=options) if has_text else _Sequence(parts=())

    def _repeated(self, part: _Node) -> _Node:
        sign = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if sign not in ("*", "+", "?", "{"):
            return part
        low, high = {"*": (0, _LONGEST_NAME), "+": (1, _LONGEST_NAME), "?": (0, 1), "{": (0, 0)}[sign]
        self.at += 1
        if sign == "{":
            end = self.tokens.index("}", self.at)
            first, comma, last = "".join(self.tokens[self.at : end]).partition(",")
            low, high = int(first), int(last or _LONGEST_NAME) if comma else int(first)
            self.at = end + 1
        if self.at < len(self.tokens) and self.tokens[self.at] in ("?", "+"):
            self.at += 1
        return _Repeated(part=part, low=low, high=high)


@cache
def _matching(atom: str) -> str:
    """Return the characters of topic names that one character of an expression, or a class, matches."""
    pattern = compile_java(atom)
    found = "".join(one for one in _CHARACTERS if pattern.fullmatch(one))
    if not found:
        raise NotExpressible(f"{atom} matches no character of a topic name")
    return found
