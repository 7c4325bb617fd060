"""Check that Ferry's texts use plain words (docs/style.md): documents, help, messages, the page, docstrings, comments.

tools/words.toml lists the words that are not used. Without arguments all files are checked, else those that are named.
"""

import ast
import inspect
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "tools/words.toml"
MOST_WORDS = 25
"""The most words of a sentence in a text; a code span, a link or a number counts as one."""
LEAST_WORDS = 3
"""The fewest words of a docstring: with less it cannot stand alone."""
CHECKED = (
    "*.md",
    "src/*.py",
    "src/*.jinja",
    "plugins/*.py",
    "jobs/*.py",
    "dags/*.py",
    "plugins/*.html",
    "plugins/*.js",
    "alerts/*.json",
    "alerts/ferry-rules.yml",
    "Makefile",
    "pyproject.toml",
    "mkdocs.yml",
    "docker/*",
    "tools/*",
    "hatch_build.py",
)
EXEMPT = (
    "docs/adr/",
    "tests/",
    "docs/internals/fault-campaign.md",
    "docs/internals/steady-soak.md",
    "tools/words.toml",
)
"""Decisions are kept unchanged, and so are records of what was measured. The list of words has the words."""
CODE_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"``[^`]+``|`[^`\n]+`|\{[\w.:]+\}")
"""Code spans, and names of facts in messages."""
TAG = re.compile(r"<!--.*?-->|<[^<>\n]+>|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
ATTRIBUTE = re.compile(r'\b(?:title|aria-label|placeholder|alt)="([^"]+)"')
"""What people read of a tag."""
RULE = re.compile(r"^( *)(?:summary|description): (.*(?:\n\1 +.*)*)", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ENDED = re.compile(r"(?<=[.!?:;])\s+(?=[\"'(A-Z`*\[<]|$)|\n{2,}")

PARTED = re.compile(r"[.!?:;]\s+|\n")
"""Where a message, a help text or a line of a list in one ends, or its next part begins."""


class Text(NamedTuple):
    """A piece of prose: the line it begins on, its kind, and its words."""

    line: int
    kind: str
    words: str


class Word(NamedTuple):
    """A word that is not used, as a pattern, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


@cache
def read_words(table: str) -> list[Word]:
    """Read a table of words.toml."""
    listed: dict[str, str] = tomllib.loads(WORDS.read_text())[table]
    begin, end = ("^", "") if table == "docstrings" else (r"(?<![\w-])(?:", r")(?![\w-])")
    flags = 0 if table == "docstrings" else re.IGNORECASE
    return [Word(re.compile(f"{begin}{pattern}{end}", flags), instead) for pattern, instead in listed.items()]


def blank(match: re.Match[str]) -> str:
    """Return as many lines as there were, and one word that is in no list."""
    return "`code`" + "\n" * match.group().count("\n")


def of_document(text: str) -> Iterator[Text]:
    """Return paragraphs, list items and table cells, without code."""
    plain = CODE.sub(blank, CODE_BLOCK.sub(lambda match: "\n" * match.group().count("\n"), text))
    plain = LINK.sub(lambda match: match.group(1) + "\n" * match.group().count("\n"), plain)
    first, lines = 1, list[str]()
    for number, line in enumerate([*plain.splitlines(), ""], 1):
        row = line.strip()
        alone = row.startswith(("#", "|"))
        if lines and (not row or alone or re.match(r"([-*>]|\d+\.) ", row)):
            yield Text(first, "prose", "\n".join(lines))
            lines = []
        if alone:
            yield from (Text(number, "prose", cell) for cell in row.strip("#|").split("|"))
        elif row:
            first = number if not lines else first
            lines.append(re.sub(r"^([-*>]|\d+\.) ", "", row))


def of_strings(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Return the strings of a module, those of an f-string as one, with a word for each of its values."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(one) for one in ast.walk(node) if isinstance(one, ast.Constant))
            yield node, "".join(str(one.value) if isinstance(one, ast.Constant) else "`code`" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node, node.value


def of_python(text: str) -> Iterator[Text]:
    """Return docstrings, comments, and strings of more than one word."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings.add(id(statement.value))
    for string, words in of_strings(tree):
        if " " in words.strip():
            yield Text(string.lineno, "docstring" if id(string) in docstrings else "string", CODE.sub(blank, words))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], "comment", CODE.sub(blank, token.string.lstrip("#! ")))


def of_dashboard(text: str) -> Iterator[Text]:
    """Return titles, descriptions and words of a dashboard of Grafana: tools/dashboard.py writes it."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r'\s*"(title|description|label|text)": "(.*)",?$', line):
            yield Text(number, "string", CODE.sub(blank, found[2]))


def of_rules(text: str) -> Iterator[Text]:
    """Return summaries and descriptions of Prometheus's rules."""
    for found in RULE.finditer(text):
        words = TAG.sub(blank, CODE.sub(blank, found[2].removeprefix(">-"))).strip(' "')
        yield Text(text.count("\n", 0, found.start()) + 1, "prose", words)


def of_lines(text: str) -> Iterator[Text]:
    """Return the lines of a file of another language: comments, and what it prints."""
    for number, line in enumerate(text.splitlines(), 1):
        yield Text(number, "line", CODE.sub(blank, line))


def of_page(text: str) -> Iterator[Text]:
    """Return the words of a template: those between the tags, and those of attributes that people read."""
    for found in ATTRIBUTE.finditer(text):
        yield Text(text.count("\n", 0, found.start()) + 1, "string", TAG.sub(blank, found[1]))
    for number, line in enumerate(TAG.sub(blank, text).splitlines(), 1):
        yield Text(number, "page", line)


def texts(file: Path) -> Iterator[Text]:
    """Return all prose of a file."""
    text = file.read_text()
    match file.suffix:
        case ".md":
            yield from of_document(text)
        case ".py":
            yield from of_python(text)
        case ".json":
            yield from of_dashboard(text)
        case ".yml" if file.parent.name == "alerts":
            yield from of_rules(text)
        case ".html" | ".jinja" | ".js":
            yield from of_page(text)
        case _:
            yield from of_lines(text)


def sentences(text: Text) -> Iterator[str]:
    """Return the sentences. A message has two parts, and each counts as one; a list item is a sentence of its own."""
    if text.kind == "docstring":
        for piece in of_document(inspect.cleandoc(text.words)):
            yield from ENDED.split(piece.words)
    else:
        yield from (PARTED if text.kind == "string" else ENDED).split(text.words)


def long_sentences(text: Text) -> Iterator[tuple[int, str]]:
    """Find sentences of more than MOST_WORDS words: how many, and how they begin."""
    for sentence in sentences(text):
        count = len(re.findall(r"[^\s\u2013\u2014\u00b7|/&=+<>-]\S*", sentence))
        if count > MOST_WORDS:
            yield count, " ".join(sentence.split()[:6])


def complaints(file: Path) -> Iterator[str]:
    """Make one line for each word that is not used, and for each sentence that is too long."""
    name = file.relative_to(ROOT)
    words, beginnings = read_words("instead"), read_words("docstrings")
    for text in texts(file):
        for word in words:
            for match in word.pattern.finditer(text.words):
                line = text.line + text.words[: match.start()].count("\n")
                yield f"{name}:{line}: {match.group()!r}: {word.instead}"
        if text.kind == "docstring":
            if (count := len(text.words.split())) < LEAST_WORDS:
                yield f"{name}:{text.line}: a docstring of {count} words, {LEAST_WORDS} at least: {text.words.strip()}"
            for word in beginnings:
                if begins := word.pattern.match(text.words):
                    yield f"{name}:{text.line}: {begins.group()!r} begins a docstring: {word.instead}"
        if text.kind in ("prose", "string", "docstring", "comment"):
            for count, beginning in long_sentences(text):
                yield f"{name}:{text.line}: a sentence of {count} words, {MOST_WORDS} at most: {beginning} …"


def files() -> list[Path]:
    """Return the files to check, in order."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *CHECKED]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in listed if not name.startswith(EXEMPT) and (ROOT / name).exists()]


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong; the exit code is 1 when anything is."""
    chosen = [Path(name).resolve() for name in arguments] or files()
    found = [complaint for file in chosen for complaint in complaints(file)]
    print("\n".join([*found, f"{len(chosen)} files, {len(found)} complaints about words"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
