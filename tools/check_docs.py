"""Check the links of this repository's Markdown files.

Every relative link leads to a file, and to its heading. On each page for users the first use of a term of
docs/glossary.md in the text is a link to its row there (docs/style.md). No line is too long.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|!\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
PLACED = re.compile(r"<a id=\"([^\"]+)\">")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)

LONGEST = 120
"""The most characters of a line, but for those of tables, code and links."""
FROZEN = re.compile(r"docs/adr/.*|docs/cli-reference\.md|docs/internals/(fault-campaign|steady-soak)\.md")
"""Records of decisions and of what was measured are kept as they are; a tool writes the reference."""
USER_PAGES = re.compile(r"README\.md|docs/(runbooks/)?[^/]+\.md")
NO_PROSE = frozenset(f"docs/{name}.md" for name in ("README", "cli-reference", "glossary", "keys", "style"))
"""Lists of pages, commands, words and keys, and what says how to write: they link to no terms."""

GENERATED = re.compile(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", re.DOTALL)
NO_TEXT = re.compile(r"^(?:#| *\|).*$|<[^<>\n]+>", re.MULTILINE)
"""Headings, rows of tables and tags."""

A_NOUN = r"\b(?:a|the|this|that|each|every|one|no|its|last|first|next|newer|such a)\s+"
"""Words before a word that make it a verb."""

TERMS = {
    anchor: re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)
    for anchor, words in {
        "flow": r"flows?",
        "run": rf"micro-runs?|{A_NOUN}runs?",
        "slice": r"slices?",
        "slot": r"(?<!one )slots?",
        "chunk": r"chunks?",
        "receipt": r"receipts?",
        "ledger": r"ledgers?",
        "offset-map": r"offset\s+maps?",
        "gap": r"gaps?",
        "lane": r"lanes?",
        "generation": r"generations?",
        "refusal": r"refusals?",
        "guard": r"guards?",
        "checkpoint": r"(?<!Flink )checkpoints?",
        "switch": rf"{A_NOUN}switch(?:es)?",
        "flow-back": r"flows?\s+back",
        "cut-over": r"cut-overs?",
        "stranded": r"stranded",
        "drill": r"drills?",
        "dead-letter": r"dead[ -]letters?",
        "byte-path": r"(?:byte|record)\s+paths?",
        "transcoded": r"transcod(?:ed|es|ing)",
    }.items()
}
"""The terms of the glossary that are Ferry's own and mean nothing else, by their anchors there."""


def documents() -> list[Path]:
    """List the Markdown files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


@cache
def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a document's headings, spelled as code hosts do, and those that it defines itself."""
    text = FENCE.sub("", document.read_text())
    found: list[str] = []
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeated = sum(1 for name in found if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", name))
        found.append(f"{anchor}-{repeated}" if repeated else anchor)
    return frozenset([*found, *PLACED.findall(text)])


def links(document: Path) -> Iterator[str]:
    """Return the targets of a document's links and images outside code."""
    text = CODE.sub("", FENCE.sub("", document.read_text()))
    for match in LINK.finditer(text):
        yield match.group(1) or match.group(2)


def broken(document: Path) -> Iterator[str]:
    """Make one sentence for each link of `document` that leads nowhere."""
    for link in links(document):
        if ELSEWHERE.match(link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (document.parent / name).resolve() if name else document
        where = document.relative_to(ROOT)
        if not target.exists():
            yield f"{where}: the link {link} leads to no file."
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{where}: the link {link} leads to no heading."


def blank(match: re.Match[str]) -> str:
    """Return as many underscores and lines as were found, so that all else stays where it is."""
    return re.sub(r"[^\n]", "_", match.group())


def first_uses(text: str) -> Iterator[tuple[str, int, int]]:
    """Find the first use of each term in the text of a page that is not a link to it: anchor, begin and end.

    A term that is linked before its first such use is not returned. Links to other pages do not count as uses.
    """
    for pattern in (FENCE, GENERATED, CODE, NO_TEXT):
        text = pattern.sub(blank, text)
    linked: dict[str, int] = {}
    for match in LINK.finditer(text):
        name, _, anchor = (match.group(1) or "").partition("#")
        if name.endswith("glossary.md"):
            linked.setdefault(anchor, match.start())
    text = LINK.sub(blank, text)
    for anchor, pattern in TERMS.items():
        found = pattern.search(text)
        if found and linked.get(anchor, len(text)) > found.start():
            yield anchor, *found.span()


def without_link(document: Path) -> Iterator[str]:
    """Make one sentence for each term of which the first use on a page for users does not link to the glossary."""
    where = str(document.relative_to(ROOT))
    if not USER_PAGES.fullmatch(where) or where in NO_PROSE:
        return
    text = document.read_text()
    for anchor, begin, end in first_uses(text):
        line = text.count("\n", 0, begin) + 1
        word = " ".join(text[begin:end].split())
        yield f"{where}:{line}: {word!r} is the first use of a term: link it to glossary.md#{anchor}."


def long_lines(document: Path) -> Iterator[str]:
    """Make one sentence for each line that could be broken and is too long."""
    where = str(document.relative_to(ROOT))
    if FROZEN.fullmatch(where):
        return
    text = document.read_text()
    for pattern in (FENCE, GENERATED, CODE, LINK, NO_TEXT):
        text = pattern.sub(blank, text)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST and " " in line[:LONGEST].strip("->*0123456789. "):
            yield f"{where}:{number}: {len(line)} characters, {LONGEST} at most: break the line."


CHECKS = (broken, without_link, long_lines)


def main() -> int:
    """Print what is wrong; the exit code is 1 when anything is."""
    checked = documents()
    complaints = [found for document in checked for check in CHECKS for found in check(document)]
    for complaint in complaints:
        print(complaint)
    print(f"{len(checked)} documents, {len(complaints)} complaints about links and lines")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
