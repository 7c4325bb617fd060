"""Write docs/cli-reference.md: every command of `ferry` with its arguments, options and examples, as --help shows them.

Usage: python tools/cli_reference.py [--check].
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from ferry.cli.plain import usage_of
from ferry.dev.app import app as dev_app
from ferry.program import program
from ferry_airflow.command import app as airflow_app

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "cli-reference.md"
HEAD = """\
# Commands

What `ferry COMMAND --help` says, on one page; [the command line](cli.md) explains. Written by `tools/cli_reference.py`
from the program. A flow is `'source->target'`, in quotes.
"""
EVERYWHERE = ("--config", "-o", "--json", "--quiet", "--verbose", "--patience")


def every_command() -> Iterator[tuple[str, Any]]:
    """Return each command and the words that name it after `ferry`, also of `dev` and `airflow`, without groups."""
    whole = program()
    others = {"dev": get_command(dev_app), "airflow": get_command(airflow_app)}
    for name in whole.list_commands(None):
        yield from _below(others.get(name) or whole.get_command(None, name), (name,))


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    for name in command.list_commands(None):
        yield from _below(command.get_command(None, name), (*words, name))


def examples_of(command: Any) -> list[str]:
    """Return the lines below the help of a command that show its use."""
    return [line for line in (command.epilog or "").splitlines() if line.startswith("$ ferry ")]


def rendered() -> str:
    """Return the whole page."""
    parts = [HEAD]
    every: dict[str, str] = {}
    for words, command in every_command():
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        usage = usage_of(f"ferry {words}", command)
        rows = [_row(one.metavar or one.name.upper(), one) for one in arguments]
        for one in options:
            if one.opts[0] in EVERYWHERE:
                every.setdefault(_spelled(one), _text(one))
            else:
                rows.append(_row(_spelled(one), one))
        parts.append(f"## `ferry {words}`\n\n`{usage} [OPTIONS]`\n\n{_paragraphs(command.help)}\n")
        if rows:
            parts.append("| | |\n|---|---|\n" + "".join(rows))
        parts.append("\n".join(("```console", *examples_of(command), "```\n")))
    rows = [f"| `{spelled}` | {text} |\n" for spelled, text in every.items()]
    parts.insert(1, "Where they make sense, all commands take:\n\n| | |\n|---|---|\n" + "".join(rows))
    return "\n".join(parts)


def _spelled(one: Any) -> str:
    names = ", ".join((*one.opts, *one.secondary_opts))
    value = "" if one.is_flag else f" {one.metavar}"
    return f"{names}{value}"


def _row(name: str, one: Any) -> str:
    return f"| `{name}` | {_text(one)} |\n"


def _text(one: Any) -> str:
    text = (one.help or "").replace("|", "\\|")
    default = one.default
    is_shown = one.param_type_name == "option" and one.show_default is not False
    if is_shown and default not in (None, False, "", ()) and not callable(default):
        text = f"{text} Default: `{default}`."
    return text.strip()


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def main() -> int:
    """Write the page, or with --check report whether it is up to date."""
    if "--check" in sys.argv[1:]:
        same = FILE.exists() and FILE.read_text() == rendered()
        print(f"{FILE.relative_to(ROOT)} is {'up to date' if same else 'out of date'}")
        return 0 if same else 1
    FILE.write_text(rendered())
    return 0


if __name__ == "__main__":
    sys.exit(main())
