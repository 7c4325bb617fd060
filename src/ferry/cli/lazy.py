"""Commands that are imported when they run or show their own help; a list of commands needs none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from ferry.cli.plain import PlainGroup, command_class, shown_examples
from ferry.errors import BadInput
from ferry.registry import imported


class Panel(StrEnum):
    """The groups of commands in `ferry --help`, in their order."""

    COPY = "Copy"
    WATCH = "Watch"
    GROUPS = "Groups"
    MOVE = "Move clients"
    EVIDENCE = "Evidence"
    SET_UP = "Set up"
    DEVELOP = "Develop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A command.

    - `place`: `module:function`.
    - `help`: its line in a list, the first paragraph of the function's docstring.
    - `examples`: lines that use it, without `ferry`. Its help and docs/cli-reference.md show them.
    - `panel`: where `ferry --help` lists it; None for a command after another word.
    - `options`: what `typer.Typer.command` takes in addition to the name.
    - `old`: other spellings of options, and their names. The command takes both, and help shows one. For an option that
      only another command has, it is that command's line, which the error names.
    - `bare`: options that may be without a value, and the value that they have then.
    """

    place: str
    help: str
    examples: tuple[str, ...] = ()
    panel: Panel | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    old: Mapping[str, str] = field(default_factory=dict)
    bare: Mapping[str, str] = field(default_factory=dict)

    def function(self) -> Callable[..., Any]:
        """Import the command's function. Raises ImportError or AttributeError when it is not there."""
        found: Callable[..., Any] = imported(self.place)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Commands after one word. `panel`: as for a row; `first`: the command that runs when none is named."""

    help: str
    panel: Panel | None = None
    rows: Mapping[str, Row | Group] = field(default_factory=dict)
    first: str | None = None


Rows = Mapping[str, Row | Group]

Spellings = Mapping[tuple[str, ...], tuple[str, ...]]
"""Old words of a command line, and those that they mean today."""

HELP: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}
"""What Typer takes as `context_settings`, so that help has a short spelling."""


class LazyGroup(PlainGroup):
    """A group whose commands are stubs until one of them is used."""

    words: tuple[str, ...] = ()
    rows: Rows = MappingProxyType({})
    first: str | None = None
    old: Spellings = MappingProxyType({})
    _is_listing = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._loaded: dict[str, Any] = {}
        places = {panel: at for at, panel in enumerate((*Panel, None))}
        self.commands = {
            name: TyperCommand(name, help=row.help, rich_help_panel=row.panel)
            for name, row in sorted(self.rows.items(), key=lambda one: places[one[1].panel])
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, or in a list of commands its stub; None when there is none of that name."""
        row = self.rows.get(cmd_name)
        if row is None or self._is_listing:
            return self.commands.get(cmd_name)
        if cmd_name not in self._loaded:
            self._loaded[cmd_name] = _loaded((*self.words, cmd_name), row)
        return self._loaded[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its words; old spellings lead to today's command."""
        args = _today(args, self.old)
        if self.words and args[0] not in self.rows and not ctx.resilient_parsing:
            where = " before the flow" if "->" in args[0] else ""
            raise BadInput(f"{ctx.command_path} {args[0]!r} names no command: write {self._names()}{where}")
        return super().resolve_command(ctx, args)

    def _names(self) -> str:
        *others, last = self.rows
        return f"{', '.join(others)} or {last}" if others else last

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group, with the line of each command."""
        with self._listing():
            super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as every group does; without a command's name it is `first`. `ferry help X` is `ferry X --help`."""
        if not self.words and "help" in args:
            args = self._helped(ctx, args)
        # For the first word a shell also offers the commands.
        is_asked = not args and ctx.resilient_parsing
        if (
            self.first
            and not is_asked
            and (not args or (args[0] not in self.rows and args[0] not in ctx.help_option_names))
        ):
            args = [self.first, *args]
        self._refuse_options(ctx, args)
        found: list[str] = super().parse_args(ctx, args)
        return found

    def _helped(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the words with `--help` last, if the first that is not an option of the program is `help`."""
        words: list[str] = self.make_parser(ctx).parse_args(list(args))[1]
        return [*args[: -len(words)], *words[1:], "--help"] if words[:1] == ["help"] else args

    def _refuse_options(self, ctx: Any, args: list[str]) -> None:
        """Raise BadInput for an option in place of a command; the program itself has options of its own."""
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        if is_option and self.words and not self.first and not ctx.resilient_parsing:
            raise BadInput(f"{ctx.command_path} {args[0]} names no command: write {self._names()} before its options")

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands, and the words that may follow `first`."""
        with self._listing():
            names = super().shell_complete(ctx, incomplete)
        if self.first is None:
            return names
        command = self.get_command(ctx, self.first)
        with command.make_context(self.first, [], parent=ctx, resilient_parsing=True) as inner:
            if incomplete.startswith("-"):
                return command.shell_complete(inner, incomplete)
            arguments = [one for one in command.params if one.param_type_name == "argument"]
            words = arguments[0].shell_complete(inner, incomplete) if arguments else []
        return [*names, *words]

    @contextmanager
    def _listing(self) -> Iterator[None]:
        self._is_listing = True
        try:
            yield
        finally:
            self._is_listing = False


def group_class(rows: Rows, *words: str, first: str | None = None, old: Spellings | None = None) -> type[LazyGroup]:
    """Return the class of a group of these commands, which `words` lead to; `old` are spellings that it takes, too."""
    return type("LazyGroup", (LazyGroup,), {"rows": rows, "words": words, "first": first, "old": old or {}})


def _today(args: list[str], old: Spellings) -> list[str]:
    """Return the words with the longest old spelling at their beginning replaced."""
    for count in (2, 1):
        if (found := old.get(tuple(args[:count]))) is not None:
            return [*found, *args[count:]]
    return args


def _loaded(words: tuple[str, ...], row: Row | Group) -> Any:
    name = words[-1]
    if isinstance(row, Group):
        return group_class(row.rows, *words, first=row.first)(
            name=name, help=row.help, no_args_is_help=row.first is None, rich_markup_mode="rich", context_settings=HELP
        )
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = {**HELP, **row.options.get("context_settings", {})}
    taken = {**row.options, "context_settings": settings}
    epilog = shown_examples(*row.examples)
    app.command(name, cls=command_class(row.old, row.bare), epilog=epilog, **taken)(row.function())
    return get_command(app)
