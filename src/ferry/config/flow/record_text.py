"""A transform's SQL as words, and the slips that the words alone show: see `ferry.config.flow.record_sql`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ferry.config.flow.selection_rules import MOMENTARY, not_of_one_record, not_the_same, star_with, takes_share

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

TABLE = "records"
_RANDOM = frozenset(
    (
        "java_method", "monotonically_increasing_id", "rand", "randn", "random", "randstr", "reflect", "shuffle",
        "spark_partition_id", "try_reflect", "uniform", "uuid",
    )
)  # fmt: skip
"""Functions that Spark calls not deterministic."""
_GENERATORS = frozenset(("explode", "explode_outer", "inline", "inline_outer", "posexplode", "posexplode_outer"))
_AGGREGATES = frozenset(("avg", "count", "max", "min", "sum"))
_SHARE = "tablesample"
_TOLD = _RANDOM | MOMENTARY | _GENERATORS | _AGGREGATES | {_SHARE}
_BEGINNINGS = frozenset(("SELECT", "FROM", "TABLE", "("))
"""The words that a query begins with; a command is not a query."""
_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_ENDLESS = frozenset((",", ".", "=", "==", "<", ">", "<=", ">=", "<=>", "<>", "!=", "+", "-", "/", "||", "->", "::"))
"""The signs with which no text ends."""
_BEHIND_STAR = frozenset(("REPLACE", "RENAME", "EXCLUDE"))
"""Words that other engines allow after a star, where Spark allows only EXCEPT."""
_BEFORE_STAR = frozenset(("SELECT", ",", "."))
"""A star after one of these means all columns, and no multiplication."""
_BEFORE_NAMES = frozenset((".", ")", "]", "AS"))
"""After these a word with a bracket is not a function of the session, but a catalogue's, a method, or an alias."""
_SYNTAX = frozenset(
    (
        "cast", "dateadd", "extract", "geography", "geometry", "identifier", "overlay", "position", "struct", "time",
        "timediff", "timestampadd", "timestampdiff", "try_cast",
    )
)  # fmt: skip
"""Words with a bracket that are in Spark's grammar, and not in its list of functions."""
_MISSING = re.compile(r"Missing (?:(?P<mark>.+) from )?(?P<line>\d+):(?P<column>\d+)")

_NAMES = frozenset(("VAR", "IDENTIFIER", "STRING", "NUMBER"))
"""Kinds of words after which a word with a bracket is not a call: columns of an alias."""
_ASKED = "the job asks Spark before it copies anything, and ferry plan --sample asks it now"
_OF_SESSION = "correct it unless Spark's catalogue there has a function of that name"
_DOUBT = f"is not understood without Spark{{}}: correct it if it is a slip; {_ASKED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """What is wrong with a text, at a place in it, counted from 1."""

    why: str
    """Half a sentence, whose subject is the text."""
    line: int | None = None
    column: int | None = None
    is_sure: bool = True
    """False: Spark may understand what is not understood here."""

    def __str__(self) -> str:
        where = "" if self.line is None else f"at line {self.line}, column {self.column} "
        return f"{where}{self.why}"


@lru_cache(maxsize=1)
def spark_functions() -> frozenset[str]:
    """Return the names of Spark's own functions (`spark_functions.json`, written by tools/spark_functions.py)."""
    text = resources.files("ferry.config.flow").joinpath("spark_functions.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)["names"])


class Text:
    """A text, its tokens, and the places in the writer's part of it."""

    def __init__(self, whole: str, start: int, end: int) -> None:
        self.whole, self._start, self._end = whole, start, end
        self.tokens: Sequence[Token] = ()

    def slip(self, at: int, why: str, *, is_sure: bool = True) -> Slip:
        """Return a slip at a place in the whole text."""
        at = min(max(at, self._start), max(self._start, self._end - 1))
        line = self.whole.count("\n", self._start, at) + 1
        column = at - max(self._start, self.whole.rfind("\n", self._start, at) + 1) + 1
        return Slip(why=why, line=line, column=column, is_sure=is_sure)

    def unclosed(self, error: Exception) -> Slip:
        """Return the slip of a text that could not be divided into words."""
        found = _MISSING.search(f"{error.__cause__}")
        if found is None:
            return self.doubt(None, None)
        lines = self.whole.split("\n")[: int(found["line"]) - 1]
        at = sum(len(line) + 1 for line in lines) + max(0, int(found["column"]) - 1)
        at = max(at, self.whole.find(found["mark"] or "", at))
        return self.slip(at, f"opens {found['mark'] or 'a comment'} that nothing closes: close it")

    def written(self) -> Iterator[Slip]:
        """Yield the slips that the words alone show."""
        first = self.tokens[0] if self.tokens and not self._start else None
        if first is not None and first.text.upper() == "WITH":
            yield self.slip(first.start, not_of_one_record("WITH"))
        elif first is not None and first.text.upper() not in _BEGINNINGS:
            yield self.slip(first.start, f"begins with {first.text}: write SELECT ... FROM {TABLE} WHERE ...")
        mine = self._mine()
        yield from self._statements(mine)
        yield from self._brackets(mine)
        if mine and self._is_sign(mine[-1], _ENDLESS):
            yield self.slip(mine[-1].start, f"ends with {mine[-1].text}, which needs something after it: write it")
        for number, token in enumerate(mine):
            name = token.text.lower()
            after = mine[number + 1] if number + 1 < len(mine) else None
            before = mine[number - 1] if number else None
            if self._is_sign(token, ("*",)) and after is not None and after.text.upper() in _BEHIND_STAR:
                behind = mine[number + 2] if number + 2 < len(mine) else None
                of_all = before is not None and before.text.upper() in _BEFORE_STAR and not self._quoted(before)
                if of_all and behind is not None and self._is_sign(behind, ("(",)) and not self._quoted(after):
                    yield self.slip(after.start, star_with(after.text.upper()))
            if name not in _TOLD or after is None or self._quoted(token):
                continue
            if not self._is_sign(after, ("(",)) or (before is not None and self._is_sign(before, (".",))):
                continue
            if name == _SHARE:
                yield self.slip(token.start, takes_share())
            elif name in _GENERATORS:
                yield self.slip(token.start, not_of_one_record("a generator such as explode"))
            elif name in _AGGREGATES:
                yield self.slip(token.start, not_of_one_record("an aggregate"))
            else:
                yield self.slip(token.start, not_the_same(name))

    def _statements(self, mine: Sequence[Token]) -> Iterator[Slip]:
        """Yield a slip for more than one statement: a query may end with semicolons, a part of one has none."""
        ends = [number for number, token in enumerate(mine) if self._is_sign(token, (";",))]
        if ends and self._start:
            yield self.slip(mine[ends[0]].start, "has a ; where it is a part of a statement: take it out")
        elif ends and ends[0] + len(ends) < len(mine):
            yield self.slip(mine[ends[0]].start, "has several statements: write one, and nothing after the ;")

    def unknown_functions(self) -> Iterator[Slip]:
        """Yield doubts about functions that Spark does not have by itself.

        A catalogue may have them, or an extension of the session.
        """
        mine = self._mine()
        for number, token in enumerate(mine[:-1]):
            name, before = token.text.lower(), mine[number - 1] if number else None
            if token.token_type.name != "VAR" or not self._is_sign(mine[number + 1], ("(",)) or self._quoted(token):
                continue
            if before is not None and (before.text.upper() in _BEFORE_NAMES or before.token_type.name in _NAMES):
                continue
            if name not in spark_functions() and name not in _SYNTAX:
                near = get_close_matches(name, sorted(spark_functions()), 1, 0.7)
                hint = f" (did you mean {near[0]}?)" if near else ""
                why = f"calls {token.text}(), which Spark does not have by itself{hint}: {_OF_SESSION}; {_ASKED}"
                yield self.slip(token.start, why, is_sure=False)

    def _mine(self) -> list[Token]:
        """Return the words of the writer's part."""
        return [token for token in self.tokens if self._start <= token.start < self._end]

    def _brackets(self, mine: Sequence[Token]) -> Iterator[Slip]:
        """Yield a slip for a bracket without its other one, placed in the writer's part."""
        if self._unpaired(self.tokens) is not None:
            token = self._unpaired(mine) or self._unpaired(self.tokens)
            if token is not None and token.text in _CLOSE:
                yield self.slip(token.start, f"has a {token.text} that nothing opens: take it out")
            elif token is not None:
                yield self.slip(token.start, f"opens {token.text} and does not close it: close it")

    def _unpaired(self, tokens: Sequence[Token]) -> Token | None:
        opened: list[Token] = []
        for token in tokens:
            if self._is_sign(token, _OPEN):
                opened.append(token)
            elif self._is_sign(token, _CLOSE) and (
                not opened or _OPEN.index(opened.pop().text) != _CLOSE.index(token.text)
            ):
                return token
        return opened[-1] if opened else None

    def _is_sign(self, token: Token, signs: Sequence[str] | frozenset[str]) -> bool:
        return token.text in signs and not self._quoted(token)

    def _quoted(self, token: Token) -> bool:
        return self.whole[token.start : token.start + len(token.text)] != token.text

    def doubt(self, line: int | None, column: int | None) -> Slip:
        """Return a doubt about what sqlglot does not understand and Spark may understand.

        Its place is that of the word whose end sqlglot reports.
        """
        word = next((one for one in self.tokens if (one.line, one.col) == (line, column)), None)
        if word is None or not self._start <= word.start < self._end:
            return Slip(why=_DOUBT.format(""), is_sure=False)
        return self.slip(word.start, _DOUBT.format(f" (near {word.text})"), is_sure=False)

    def place_of(self, quoted: str) -> int:
        """Return the place of a text in quotes."""
        found = (one.start for one in self.tokens if one.text == quoted and self._quoted(one))
        return next(found, self._start)
