"""Check that every relative link in the Markdown files of this repository leads to a file, and to its heading."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|!\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
PLACED = re.compile(r"<a id=\"([^\"]+)\">")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


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


def main() -> int:
    """Print what is broken; the exit code is 1 when anything is."""
    checked = documents()
    complaints = [complaint for document in checked for complaint in broken(document)]
    for complaint in complaints:
        print(complaint)
    print(f"{len(checked)} documents, {len(complaints)} broken links")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
