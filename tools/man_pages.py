"""Write the manual pages, ferry.1 and one for each command, from docs/cli-reference.md and docs/cli.md.

Usage: python tools/man_pages.py FOLDER. The wheel has them, too: `hatch_build.py` writes them when it is built. So this
module imports nothing but Python's own library.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path("docs") / "cli-reference.md"
EXPLAINED = Path("docs") / "cli.md"

_SECTION = re.compile(r"^## `ferry (.+)`$", re.MULTILINE)
_ROW = re.compile(r"^\| (.+?) \| (.*) \|$", re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`|\[([^]]+)\]\([^)]+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One section of the reference: its words after `ferry`, and its text."""

    words: str
    usage: str
    paragraphs: list[str]
    options: list[tuple[str, str]]
    examples: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The first sentence, without its full stop."""
        return _first_sentence(self.paragraphs[0])


def pages(root: Path, version: str) -> dict[str, str]:
    """Return the text of each page by its file name. Raises ValueError when the reference has another form."""
    head, commands = _read((root / REFERENCE).read_text())
    groups: dict[str, list[Command]] = {}
    for one in commands:
        groups.setdefault(one.words.partition(" ")[0], []).append(one)
    table = (root / EXPLAINED).read_text().partition("\n## Exit codes\n")[2].strip().partition("\n\n")[0]
    codes = [(code, _first_sentence(meaning)) for code, meaning in _rows(table)[1:]]  # without the table's head
    if not (head and codes and groups):
        raise ValueError(f"{REFERENCE} or {EXPLAINED} has another form than tools/man_pages.py reads")
    made = {f"ferry-{name}.1": _command_page(name, group, head, version) for name, group in groups.items()}
    return {"ferry.1": _main_page(groups, head, codes, version), **made}


def _first_sentence(text: str) -> str:
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


def _read(text: str) -> tuple[list[tuple[str, str]], list[Command]]:
    """Return the options of all commands, and the commands."""
    head, *parts = _SECTION.split(text)
    return _rows(head), [_command(words, body) for words, body in zip(parts[::2], parts[1::2], strict=True)]


def _command(words: str, body: str) -> Command:
    prose, _, console = body.partition("```console\n")
    blocks = [block for block in prose.strip().split("\n\n") if not block.startswith("|")]
    examples = [line.removeprefix("$ ") for line in console.partition("```")[0].splitlines()]
    usage, *paragraphs = blocks
    if not (usage.startswith("`ferry ") and paragraphs):
        raise ValueError(f"{REFERENCE}: `ferry {words}` has another form than tools/man_pages.py reads")
    return Command(words=words, usage=usage.strip("`"), paragraphs=paragraphs, options=_rows(prose), examples=examples)


def _rows(text: str) -> list[tuple[str, str]]:
    """Return the rows of tables of two columns, up to the first heading."""
    rows = _ROW.findall(text.partition("\n## ")[0])
    return [(name.strip("`"), about) for name, about in rows if name.strip() and not name.startswith("---")]


def _command_page(name: str, commands: list[Command], head: list[tuple[str, str]], version: str) -> str:
    one = commands[0] if commands[0].words == name else None
    others = [command for command in commands if command is not one]
    names = ", ".join(command.words.removeprefix(f"{name} ") for command in others)
    summary = (one or others[0]).summary if one or len(others) == 1 else f"the commands {names}"
    out = [_title(f"ferry-{name}", version), ".SH NAME", f"ferry\\-{_text(name)} \\- {_text(summary)}", ".SH SYNOPSIS"]
    out += _blocks([f"\\fB{_text(command.usage)}\\fR" for command in commands])
    if one is not None:
        out += [".SH DESCRIPTION", *_about(one)]
    if others:
        out.append(".SH COMMANDS")
        for command in others:
            out += [f".SS ferry {_text(command.words)}", *_about(command)]
    out += [".SH OPTIONS OF ALL COMMANDS", *_options(head)]
    out += [".SH SEE ALSO", ".BR ferry (1)"]
    return "\n".join(out) + "\n"


def _about(command: Command) -> list[str]:
    out = [*_blocks([_prose(paragraph) for paragraph in command.paragraphs]), *_options(command.options)]
    if command.examples:
        out += [".PP", "Examples:", ".PP", ".nf", ".RS 4", *map(_text, command.examples), ".RE", ".fi"]
    return out


def _blocks(paragraphs: list[str]) -> list[str]:
    return "\n.PP\n".join(paragraphs).splitlines()


def _main_page(
    groups: dict[str, list[Command]], head: list[tuple[str, str]], codes: list[tuple[str, str]], version: str
) -> str:
    out = [
        _title("ferry", version),
        ".SH NAME",
        "ferry \\- copy Kafka topics between clusters in micro\\-runs",
        ".SH SYNOPSIS",
        ".B ferry",
        "COMMAND [FLOW] [OPTIONS]",
        ".SH DESCRIPTION",
        "A flow is one direction of replication between two clusters of a MirrorMaker 2 file, as in",
        _prose("`'source->target'`, in quotes."),
        ".SH COMMANDS",
    ]
    for name, commands in groups.items():
        summary = commands[0].summary if commands[0].words == name else ", ".join(one.words for one in commands)
        out += [".TP", f".BR ferry\\-{_text(name)} (1)", _prose(summary)]
    out += [".SH OPTIONS OF ALL COMMANDS", *_options(head), ".SH EXIT STATUS", *_options(codes)]
    out += [
        ".SH ENVIRONMENT",
        ".TP",
        ".B FERRY_CONFIG",
        "The MirrorMaker 2 file, unless --config names one.".replace("-", "\\-"),
    ]
    pages = [f".BR ferry\\-{_text(name)} (1)," for name in groups]
    out += [".SH SEE ALSO", *pages[:-1], pages[-1].removesuffix(",")]
    return "\n".join(out) + "\n"


def _title(name: str, version: str) -> str:
    return f'.TH {_text(name.upper())} 1 "" "ferry {_text(version)}" "Ferry"'


def _options(rows: list[tuple[str, str]]) -> list[str]:
    out: list[str] = []
    for name, about in rows:
        out += [".TP", f"\\fB{_text(name)}\\fR", _prose(about)]
    return out


def _prose(markdown: str) -> str:
    """Return a line of roff: code in bold, links as their text, each sentence on a line of its own."""
    line, at = "", 0
    plain = markdown.replace("\\|", "|")
    for found in _INLINE.finditer(plain):
        line += _text(plain[at : found.start()])
        line += f"\\fB{_text(found[1])}\\fR" if found[1] else _text(found[2])
        at = found.end()
    line = (line + _text(plain[at:])).replace("\\&\\fB", "\\fB")
    sentences = re.sub(r"(?<=[.:;]) (?=[A-Z])", "\n", line).splitlines()
    return "\n".join(f"\\&{one}" if one.startswith((".", "'")) else one for one in sentences)


def _text(plain: str) -> str:
    """Escape what roff has a use for, and all that is not ASCII."""
    text = plain.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text


def written(folder: Path, root: Path, version: str) -> list[Path]:
    """Write the pages into a folder; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in pages(root, version).items():
        files.append(folder / name)
        files[-1].write_text(text)
    return files


def version_of(root: Path) -> str:
    """Return the version that the code states."""
    (found,) = re.findall(r'^__version__ = "(.+)"$', (root / "src" / "ferry" / "__init__.py").read_text(), re.MULTILINE)
    return str(found)


def main() -> int:
    """Write the pages into the folder that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python tools/man_pages.py FOLDER", file=sys.stderr)
        return 2
    print(f"{len(written(Path(sys.argv[1]), ROOT, version_of(ROOT)))} pages in {sys.argv[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
