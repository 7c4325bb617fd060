"""The manual pages: one for each command, with all that the reference has, and without a fault of roff."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from ferry import __version__
from tests.golden import Golden

ROOT = Path(__file__).resolve().parents[3]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "man_pages.py"))
PAGES: dict[str, str] = TOOL["pages"](ROOT, TOOL["version_of"](ROOT))
REFERENCE = (ROOT / "docs" / "cli-reference.md").read_text()


def shown(page: str) -> str:
    """What a page shows, near enough: without requests, fonts and escapes, on one line."""
    text = re.sub(r"^\.(?:TP|PP|nf|fi|RS 4|RE|SH .*|TH .*)$", "", page, flags=re.MULTILINE)
    text = re.sub(r"^\.(?:SS|BR|B) ", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda found: chr(int(found[1], 16)), text)
    for escape, plain in (("\\fB", ""), ("\\fR", ""), ("\\&", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`")):
        text = text.replace(escape, plain)
    return " ".join(text.replace("\\e", "\\").split())


def test_each_command_has_a_page_and_each_page_is_named_by_the_first() -> None:
    commands = re.findall(r"^## `ferry ([\w-]+)", REFERENCE, re.MULTILINE)
    assert {*PAGES} == {"ferry.1"} | {f"ferry-{name}.1" for name in commands}
    for name in commands:
        assert f"ferry-{name} (1)" in shown(PAGES["ferry.1"])


@pytest.mark.parametrize("words", re.findall(r"^## `ferry (.+)`$", REFERENCE, re.MULTILINE))
def test_a_page_has_all_that_the_reference_has(words: str) -> None:
    page = shown(PAGES[f"ferry-{words.partition(' ')[0]}.1"])
    section = REFERENCE.partition(f"## `ferry {words}`\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if line.startswith(("|---", "```")) or line == "| | |":
            continue
        plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", line.replace("\\|", "\0")).replace("`", "")
        for cell in (part.strip().replace("\0", "|") for part in plain.removeprefix("$ ").split("|")):
            assert " ".join(cell.split()) in page, cell


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    found = re.findall(r"^\.TP\n\\fB(\d+)\\fR$", PAGES["ferry.1"], re.MULTILINE)
    assert found == ["0", "1", "2", "3", "4", "130"]


def test_the_version_is_the_programs() -> None:
    for name, page in PAGES.items():
        title = name.removesuffix(".1").upper().replace("-", "\\-")
        assert page.startswith(f'.TH {title} 1 "" "ferry {__version__}" "Ferry"\n')


@pytest.mark.parametrize("name", PAGES)
def test_no_line_is_a_request_by_accident(name: str) -> None:
    known = re.compile(r"\.(TH|SH|SS|PP|TP|BR?|nf|fi|RS|RE)\b")
    for line in PAGES[name].splitlines():
        assert line.isascii()
        assert line.strip()
        assert not line.startswith("'")
        assert not line.startswith(".") or known.match(line), line


def test_a_reference_of_another_form_is_refused(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("cli.md", "cli-reference.md"):
        (tmp_path / "docs" / name).write_text("# Commands\n\n## `ferry run`\n\nUsage: run\n")
    with pytest.raises(ValueError, match="form") as caught:
        TOOL["pages"](tmp_path, "1")
    golden(caught.value)
