"""The command lines that the documents tell people to type."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
WHOLE: Mapping[str, Any] = dict(runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))["every_command"]())
"""The commands of `ferry`, as its parser has them, by their words."""

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}\S.*\n)+")
SHELL = frozenset(["", "bash", "sh", "shell"])
"""Languages of blocks in which every line is typed; in a `console` block those behind a `$` are."""

LANGUAGES = SHELL | {"console", "text", "properties", "python", "json", "yaml", "java"}
CONNECTS = frozenset(["&&", "||", ";", "|"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command without what connects it to the next, and the document that has it."""

    document: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """As it would be typed on one line."""
        return shlex.join(self.words)


def documents() -> list[Path]:
    """README.md, the pages of `docs`, the runbooks and the bench; decisions name commands only in passing."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    return [ROOT / "README.md", ROOT / "bench" / "README.md", *pages, *runbooks()]


def runbooks() -> list[Path]:
    """The pages of `docs/runbooks`."""
    return sorted((ROOT / "docs" / "runbooks").glob("*.md"))


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language of each block of code, and what it holds; of those that are only indented "" is the language."""
    for found in FENCE.finditer(text):
        yield found["language"], found["body"]
    for found in INDENTED.finditer(FENCE.sub("", text)):
        yield "", found[0]


def typed() -> list[Typed]:
    """Every command of every document, in order."""
    return [
        Typed(document=str(document.relative_to(ROOT)), words=words)
        for document in documents()
        for language, block in blocks(document.read_text())
        for words in commands(language, block)
    ]


def told(*words: str) -> Typed:
    """The one line of the documents that has these words; a test that runs it takes it from here."""
    found = {one.line: one for one in typed() if set(words) <= set(one.words)}
    assert len(found) == 1, f"lines with {words}: {sorted(found)}"
    return next(iter(found.values()))


def placed(one: Typed, places: Mapping[str, object]) -> list[str]:
    """A line's words behind its program, with what stands in the places of the documents' names here."""
    missing = places.keys() - set(one.words)
    assert not missing, f"{one.document}: {one.line} names no {sorted(missing)}"
    return [str(places.get(word, word)) for word in one.words[1:]]


def commands(language: str, block: str) -> Iterator[tuple[str, ...]]:
    """The commands of a block, each as the words that a shell makes of it."""
    lines = block.replace("\\\n", " ").splitlines()
    if language == "console":
        lines = [line.strip().removeprefix("$ ") for line in lines if line.strip().startswith("$ ")]
    elif language not in SHELL:
        return
    waiting = ""
    for line in lines:
        waiting += line + "\n"
        try:
            words = _split(waiting)
        except ValueError:  # a quotation goes on in the next line
            continue
        waiting = ""
        yield from _simple(words)
    assert not waiting, f"a quotation without an end: {waiting}"


def answered(page: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The commands of a page's `console` blocks in order, each with the lines that the page shows as its answer."""
    found: list[tuple[str, list[str]]] = []
    for language, block in blocks(page.read_text()):
        if language != "console":
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip().startswith("$ "):
                words = list(_simple(_split(line.strip().removeprefix("$ "))))
                found += [(shlex.join(one), []) for one in words]
            elif line.strip():
                found[-1][1].append(line.strip())
    return [(line, tuple(shown)) for line, shown in found]


WHO = re.compile(r"[\w.-]+@[\w.-]+")
ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
SIZE = re.compile(r"\d+(?:\.\d+)? (?:B|kB|MB|GB)\b")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def unlike(shown: Iterable[str], printed: str) -> list[str]:
    """The lines that a page shows and a command did not print.

    Numbers, times, ids, sizes, spaces and the caller's name may differ. `...` is any text.
    """
    lines = [_plain(line) for line in printed.splitlines()]
    return [
        line
        for line in shown
        if not any(re.fullmatch(".*".join(re.escape(_plain(part)) for part in line.split("...")), one) for one in lines)
    ]


def _plain(text: str) -> str:
    """A line without what differs from one call to the next."""
    for pattern, word in ((WHO, "who"), (ID, "id"), (SIZE, "0 B"), (NUMBER, "0")):
        text = pattern.sub(word, text)
    return " ".join(text.split())


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    return list(lexer)


def _simple(words: list[str]) -> Iterator[tuple[str, ...]]:
    command: list[str] = []
    for word in [*words, ";"]:
        if word in CONNECTS:
            if command:
                yield tuple(command[: command.index(">")] if ">" in command else command)
            command = []
        else:
            command.append(word)


def spans() -> Iterator[tuple[str, str]]:
    """Documents with what they have between backquotes inside of a line, where that begins with `ferry`."""
    for document in documents():
        for span in re.findall(r"`(ferry [^`\n]+)`", FENCE.sub("", document.read_text())):
            yield str(document.relative_to(ROOT)), span


def resolved(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """The command that words behind `ferry` name, and what is left for it; groups without a command's name show."""
    rest, name = list(words), ""
    while name not in WHOLE:
        below = {one.removeprefix(f"{name} ").split()[0] for one in WHOLE if f"{one} ".startswith(f"{name} ".lstrip())}
        if rest and rest[0] in below:
            name = f"{name} {rest.pop(0)}".strip()
        elif "show" in below:
            name += " show"
        else:
            raise AssertionError(f"no command: ferry {' '.join(words)}")
    return name, rest
