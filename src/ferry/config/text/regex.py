"""Java regular expressions as Python ones: translated where both mean the same, refused where Python cannot say it.

Source: `java.util.regex.Pattern` of Java 17. Flags beyond `i`, Unicode properties, class unions and intersections,
`\\G`, `\\R`, `\\X`, `\\Z` and `\\N` are refused rather than approximated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

_TERMINATORS = "\\n\\r\\u0085\\u2028\\u2029"
_PLAIN_ESCAPES = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f", "a": "\\x07", "e": "\\x1b"}
_CLASS_ESCAPES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": " \\t\\n\\x0b\\f\\r",
    "h": " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000",
    "v": "\\n\\x0b\\f\\r\\x85\\u2028\\u2029",
}
_QUANTIFIER = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_INLINE_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_MOST_OPEN = 50
"""How many groups may be open at once; Python's `re` recurses for each, and its limit depends on the caller."""
_GROUP_OPENERS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")


class NotExpressible(ValueError):
    """The expression is wrong in Java, or means something that Python's `re` cannot express.

    The text names the part.
    """


@lru_cache(maxsize=512)
def compile_java(pattern: str) -> re.Pattern[str]:
    """Return a Python pattern whose `fullmatch` agrees with Java's `Pattern.compile(pattern).matcher(text).matches()`.

    Raises NotExpressible, whose text names the offending part.
    """
    translated = _Translator(chars=unquoted(pattern)).translate()
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        raise NotExpressible(error.msg) from None
    except OverflowError as error:
        raise NotExpressible(str(error)) from None


def unquoted(pattern: str) -> list[str]:
    r"""Return the pattern as tokens: single characters, and two-character escapes.

    `\Q…\E` becomes escapes of literals.
    """
    tokens: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            end = pattern.find("\\E", at + 2)
            quoted = pattern[at + 2 : end if end >= 0 else len(pattern)]
            # Letters and digits are literals already; escaping them would give them another meaning.
            tokens += [char if char.isalnum() else f"\\{char}" for char in quoted]
            at = end + 2 if end >= 0 else len(pattern)
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            tokens.append(pattern[at : at + 2])
            at += 2
        else:
            tokens.append(pattern[at])
            at += 1
    return tokens


@dataclass(slots=True, kw_only=True)
class _Translator:
    """One pass over the tokens.

    A group's frame is the wrapper of the flags that are in force there, empty without any. It is closed at the group's
    end and where flags change, and opened again after `|`.
    """

    chars: list[str]
    at: int = 0
    out: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=lambda: [""])
    groups: int = 0
    quantifiable: bool = False

    def translate(self) -> str:
        while self.at < len(self.chars):
            self._one()
        if len(self.frames) > 1:
            raise NotExpressible("unclosed group: a ( has no )")
        self._close_wrapper()
        return "".join(self.out)

    def _rest(self, length: int) -> str:
        return "".join(self.chars[self.at : self.at + length])

    def _emit(self, text: str, *, quantifiable: bool, taken: int = 1) -> None:
        self.out.append(text)
        self.quantifiable = quantifiable
        self.at += taken

    def _close_wrapper(self) -> None:
        if self.frames[-1]:
            self.out.append(")")

    def _one(self) -> None:
        token = self.chars[self.at]
        if len(token) == 2:
            self._escape(token[1])
        elif token == "\\":
            raise NotExpressible("a backslash stands alone at the end")
        elif token == "(":
            self._open_group()
        elif token == ")":
            self._close_group()
        elif token == "|":
            self._close_wrapper()
            self._emit(f"|{self.frames[-1]}", quantifiable=False)
        elif token in "*+?{":
            self._quantify(token)
        elif token == "[":
            self._class()
        elif token == ".":
            self._emit(f"[^{_TERMINATORS}]", quantifiable=True)
        elif token == "$":
            self._emit(f"(?=(?:\\r\\n|[{_TERMINATORS}])?\\Z)", quantifiable=False)
        elif token == "^":
            self._emit("^", quantifiable=False)
        else:
            self._emit(re.escape(token), quantifiable=True)

    def _quantify(self, token: str) -> None:
        if token == "{":
            # Join far enough for any sensible bound; the expression matches at the front of it.
            match = _QUANTIFIER.match(self._rest(40))
            if match is None:
                raise NotExpressible("a { that begins no {n}, {n,} or {n,m}; note that a comma ends a list item")
            low, comma, high = match.groups()
            if comma and high and int(high) < int(low):
                raise NotExpressible(f"repetition {match.group()} ends before it begins")
            text, taken = match.group(), len(match.group())
        else:
            text, taken = token, 1
        if not self.quantifiable:
            raise NotExpressible(f"dangling {text!r}: nothing to repeat before it (any text is .*)")
        self._emit(text, quantifiable=False, taken=taken)
        if self.at < len(self.chars) and self.chars[self.at] in ("?", "+"):
            self._emit(self.chars[self.at], quantifiable=False)

    def _open_group(self) -> None:
        head = self._rest(80)
        if not head.startswith("(?"):
            self.groups += 1
            self._push("(", 1)
            return
        for opener in _GROUP_OPENERS:
            if head.startswith(opener):
                self._push(opener, len(opener))
                return
        if named := _GROUP_NAME.match(head):
            self.groups += 1
            self._push(f"(?P<{named.group(1)}>", len(named.group()))
            return
        flags = _INLINE_FLAGS.match(head)
        if flags is None:
            raise NotExpressible(f"unknown group {head[:4]!r}")
        on, off, end = flags.group(1), flags.group(2) or "", flags.group(3)
        if set(on + off) - {"i"}:
            raise NotExpressible(f"flag in {flags.group()!r}: only i (ignore case) is supported")
        opener = "(?-i:" if off else "(?i:" if on else "(?:"
        if end == ":":
            self._push(opener, len(flags.group()))
            return
        # A bare (?i) applies to the end of its group, through every | in it, or to the next one.
        if not (on or off) or opener == self.frames[-1]:
            opener = ""
        else:
            self._close_wrapper()
            self.frames[-1] = opener
            self._refuse_deep()
        self._emit(opener, quantifiable=False, taken=len(flags.group()))

    def _refuse_deep(self) -> None:
        if len(self.frames) + sum(map(bool, self.frames)) > _MOST_OPEN:
            raise NotExpressible(f"more than {_MOST_OPEN} groups are open at once")

    def _push(self, opener: str, taken: int) -> None:
        self._refuse_deep()
        self.frames.append("")
        self._emit(opener, quantifiable=False, taken=taken)

    def _close_group(self) -> None:
        if len(self.frames) == 1:
            raise NotExpressible("unmatched ): it closes no (")
        self._close_wrapper()
        self.frames.pop()
        self._emit(")", quantifiable=True)

    def _escape(self, char: str) -> None:
        if char.lower() in _CLASS_ESCAPES:
            negation = "^" if char.isupper() else ""
            self._emit(f"[{negation}{_CLASS_ESCAPES[char.lower()]}]", quantifiable=True)
        elif char in "bBA":
            self._emit(f"\\{char}", quantifiable=False)
        elif char == "z":
            self._emit("\\Z", quantifiable=False)
        elif char in "123456789":
            if int(char) > self.groups:
                raise NotExpressible(f"\\{char} refers to a group that does not exist before it")
            if self.at + 1 < len(self.chars) and self.chars[self.at + 1] in set("0123456789"):
                raise NotExpressible(f"\\{char} followed by a digit; write the digit as a class, such as [0]")
            self._emit(f"(?:\\{char})", quantifiable=True)
        else:
            self._emit(self._literal_escape(), quantifiable=True, taken=0)

    def _literal_escape(self) -> str:
        """Return the escape at `at` that means one character, as Python text; move past it."""
        char = self.chars[self.at][1]
        self.at += 1
        if char in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[char]
        if char == "x" and (match := re.match(r"[0-9a-fA-F]{2}", self._rest(2))):
            self.at += 2
            return f"\\x{match.group()}"
        if char == "u" and (match := re.match(r"[0-9a-fA-F]{4}", self._rest(4))):
            self.at += 4
            return f"\\u{match.group()}"
        if char.isascii() and char.isalnum():
            raise NotExpressible(f"\\{char} is not supported")
        return re.escape(char)

    def _class(self) -> None:
        self.at += 1
        negated = self.at < len(self.chars) and self.chars[self.at] == "^"
        self.at += negated
        members: list[str] = []
        while True:
            if self.at >= len(self.chars):
                raise NotExpressible("unclosed class: a [ has no ]")
            if self.chars[self.at] == "]" and members:
                break
            members.append(self._member())
        self._emit(f"[{'^' if negated else ''}{''.join(members)}]", quantifiable=True)

    def _member(self) -> str:
        token = self.chars[self.at]
        if token == "[" or (token == "&" and self.chars[self.at + 1 : self.at + 2] == ["&"]):
            raise NotExpressible("a class inside a class, or &&, has no counterpart; write the characters out")
        if len(token) == 2 and token[1].lower() in _CLASS_ESCAPES:
            self.at += 1
            if token[1].islower():
                return _CLASS_ESCAPES[token[1]]
            if token[1] in "DWS":
                return token
            raise NotExpressible(f"{token} inside a class is not supported")
        low = self._single()
        following = self.chars[self.at : self.at + 2]
        if following[:1] != ["-"] or following[1:] in ([], ["]"], ["["]):
            return low
        self.at += 1
        if len(following[1]) == 2 and following[1][1].lower() in _CLASS_ESCAPES:
            raise NotExpressible(f"range ends in {following[1]}, which is not a single character")
        high = self._single()
        return f"{low}-{high}"

    def _single(self) -> str:
        token = self.chars[self.at]
        if len(token) == 2:
            return self._literal_escape()
        if token == "\\":
            raise NotExpressible("a backslash stands alone at the end")
        self.at += 1
        # Every punctuation mark is escaped: Python warns about [[, --, && and ~~ that Java takes as they are.
        return token if token.isalnum() else re.escape(token) if token != "&" else "\\&"
