"""Build the site of the documents from mkdocs.yml into build/site; it works without a network.

Usage: python tools/docs_site.py [--check]; --check only reports which pages have no place, or a place and no file.

The pages are in several folders of the repository (README.md, docs, bench). They are copied to build/pages in the same
layout, with every file that they link to. So a link that works in the repository works on the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_docs import ELSEWHERE, ROOT, documents, links

CONFIG = ROOT / "mkdocs.yml"
PICTURE = re.compile(r"<(?:img|source)\b[^>]*?\bsrc(?:set)?=\"([^\"]+)\"")
"""A picture that is written as HTML, as a picture for each theme must be."""

STEP = re.compile(r"\d+\. ")
"""The beginning of a numbered step."""

BESIDE = frozenset(["docs"])
"""Folders of which every document has a place on the site."""


def pages(part: Any) -> Iterator[str]:
    """Return the files that `nav` of mkdocs.yml names, in order."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for below in part.values():
            yield from pages(below)
    else:
        for below in part:
            yield from pages(below)


def complaints(named: list[str]) -> Iterator[str]:
    """Make one sentence for each document without a place, place without a document, and document with two places."""
    there = {str(path.relative_to(ROOT)) for path in documents()}
    for page in sorted({page for page in named if named.count(page) > 1}):
        yield f"mkdocs.yml: {page} is named twice in nav."
    for page in named:
        if page not in there:
            yield f"mkdocs.yml: nav names {page}, which is not a document of the repository."
    for page in sorted(there - set(named)):
        if page.partition("/")[0] in BESIDE:
            yield f"{page} has no place on the site: name it in nav of mkdocs.yml."


def linked(page: Path) -> Iterator[Path]:
    """Return the files of the repository that a page links to."""
    for link in [*links(page), *PICTURE.findall(page.read_text())]:
        name = unquote(link).partition("#")[0]
        if name and not ELSEWHERE.match(link):
            target = (page.parent / name).resolve()
            if target.is_file() and target.is_relative_to(ROOT):
                yield target


def lay_out(named: list[str], folder: Path) -> None:
    """Copy the files, and what the pages among them link to."""
    shutil.rmtree(folder, ignore_errors=True)
    wanted = {ROOT / name for name in named}
    for file in wanted | {target for page in wanted if page.suffix == ".md" for target in linked(page)}:
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            place.write_text(nested(file.read_text()))
        else:
            shutil.copyfile(file, place)


def nested(text: str) -> str:
    """Return a page with what belongs to a numbered step indented by four spaces, which Python-Markdown asks for."""
    lines, is_step = list[str](), False
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.startswith("   "):
            is_step = STEP.match(line) is not None
        lines.append(f" {line}" if is_step and line.startswith("   ") else line)
    return "".join(lines)


def main(arguments: list[str]) -> int:
    """Build the site; the exit code is 1 when a page has no place or a link leads nowhere."""
    config = yaml.safe_load(CONFIG.read_text())
    named = list(pages(config["nav"]))
    found = list(complaints(named))
    for complaint in found:
        print(complaint)
    if found or "--check" in arguments:
        print(f"{len(named)} pages, {len(found)} complaints")
        return 1 if found else 0
    lay_out(named, ROOT / config["docs_dir"])
    command = [
        str(Path(sys.executable).with_name("zensical")),
        "build",
        "--strict",
        "--clean",
        "--config-file",
        str(CONFIG),
    ]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode == 0:
        print(f"Open {ROOT / config['site_dir'] / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
