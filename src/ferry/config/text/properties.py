"""Java `.properties` text, read exactly as `java.util.Properties.load` reads it, with line numbers kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ferry.errors import BadInput
from ferry.words import has_utf8, visible

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_ESCAPED = re.compile(r"[\\ \t\f=:#!]")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_UNICODE = re.compile(r"\\(?:u(.{0,4})|.)", re.DOTALL)
MALFORMED = (
    "malformed \\uXXXX escape; write four hexadecimal digits after \\u, two escapes for a character beyond \\uFFFF, or "
    "\\\\ for a backslash"
)
"""Why a file is refused, as the second half of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One `key = value` entry; `line` is where the entry begins, counted from 1, and `last_line` where it ends."""

    key: str
    value: str
    raw: str
    """The value as the file spells it, with unread escapes and its lines joined."""
    line: int
    last_line: int

    def __repr__(self) -> str:
        # The value may be a password, and a repr ends up in logs and tracebacks.
        return f"Property({self.key!r}, line {self.line})"


def parse(text: str, file: str) -> tuple[Property, ...]:
    r"""Return every entry of `text` in file order, duplicates included (Java keeps the last one).

    Source: `java.util.Properties.load(Reader)`. Raises BadInput for a malformed `\uXXXX`, the only text Java refuses.
    Also for half of a surrogate pair, which Java takes, and writes as a question mark.
    """
    entries, malformed = parse_all(text)
    if malformed:
        raise BadInput(f"{file}:{malformed[0].line}: {visible(malformed[0].key)}: {MALFORMED}")
    return entries


def parse_all(text: str) -> tuple[tuple[Property, ...], tuple[Property, ...]]:
    """Return every entry of `text` in file order, and those of them that `parse` refuses.

    A malformed escape is in the value of such an entry as it is written.
    """
    entries, malformed = [], []
    for line, last_line, logical in _logical_lines(text):
        key_end, value_start = _split(logical)
        raw = logical[value_start:]
        key, value = _unescaped(logical[:key_end]), _unescaped(raw)
        entry = Property(key=key, value=value, raw=raw, line=line, last_line=last_line)
        entries.append(entry)
        if _is_malformed(logical[:key_end]) or _is_malformed(raw) or not has_utf8(key + value):
            malformed.append(entry)
    return tuple(entries), tuple(malformed)


def written(key: str, value: str) -> str:
    """Return a line that reads back as this entry."""
    text = (
        value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f").replace("\t", "\\t")
    )
    return written_raw(key, chr(92) + text if text.startswith(" ") else text)


def written_raw(key: str, raw: str) -> str:
    """Return a line with this key and the value that another line spells as `raw` (`Property.raw`)."""
    escaped = _ESCAPED.sub(r"\\\g<0>", key)
    return f"{escaped} = {raw}"


def lines_of(text: str) -> list[str]:
    """Return the physical lines of a file, which `Property.line` counts from 1."""
    return _LINE_END.split(text)


def is_comment(line: str) -> bool:
    """Return whether Java takes a physical line for a comment, unless the line continues another one."""
    return line.lstrip(_BLANKS).startswith(("#", "!"))


def is_continued(text: str) -> bool:
    """Return whether Java continues with the next line: the last backslash is not escaped by another one."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _logical_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield logical lines as (numbers of the first and the last line, text).

    Comments and blank lines are dropped, and continued lines joined.
    """
    begun = 0
    number = 0
    joined = ""
    continuing = False
    alone = False
    for number, physical in enumerate(lines_of(text), start=1):
        content = physical.lstrip(_BLANKS)
        # Java expects a comment wherever nothing has been collected yet, even after a lone backslash.
        if not joined and (not content or content[0] in "#!"):
            continuing = False
            continue
        if content:
            alone = not joined and content == "\\"
        if not continuing or not joined:
            begun = number
        joined += content
        continuing = is_continued(joined)
        if continuing:
            joined = joined[:-1]
        elif joined:
            yield begun, number, joined
            joined = ""
    if joined or (alone and _ends_in_lone_backslash(text)):
        yield begun, number, joined


def _ends_in_lone_backslash(text: str) -> bool:
    """Return whether the text ends right after a backslash that began a line: Java reads an empty entry."""
    lines = _LINE_END.split(text if text.endswith("\r\n") or not text.endswith(("\r", "\n")) else text[:-1])
    return lines[-1].lstrip(_BLANKS) == "\\"


def _split(logical: str) -> tuple[int, int]:
    """Return where the key ends and where the value begins: `=`, `:` or blanks, the first that is not escaped."""
    key_end = 0
    while key_end < len(logical) and logical[key_end] not in "=:" + _BLANKS:
        key_end += 2 if logical[key_end] == "\\" else 1
    key_end = min(key_end, len(logical))
    value_start = key_end
    separator_seen = False
    while value_start < len(logical):
        char = logical[value_start]
        if char in "=:" and not separator_seen:
            separator_seen = True
        elif char not in _BLANKS:
            break
        value_start += 1
    return key_end, value_start


def _is_malformed(text: str) -> bool:
    return any(_HEX4.match(found.group(1)) is None for found in _UNICODE.finditer(text) if found.group(1) is not None)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            is_one = _HEX4.fullmatch(digits) is not None
            out.append(chr(int(digits, 16)) if is_one else "\\u")
            at += 4 if is_one else 0
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java strings are UTF-16: two escaped surrogates are one character there, and must be one here.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
