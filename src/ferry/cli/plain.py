"""Commands and groups whose help is plain: no type where it repeats the name, and no other spelling of an option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ferry.errors import BadInput

_OTHERS = {"--timeout": "--patience"}
"""Options as other programs call them, and Ferry's own."""

_NO_FLOW = ""
"""What takes the place of a flow that the line omits."""

_OPTION = re.compile(r"-|--?[A-Za-z][\w.-]*(=.*)?", re.DOTALL)
"""A word that is meant as an option, of this command or of another program. A negative number is none."""


class PlainCommand(TyperCommand):
    """A command with plain help."""

    old: Mapping[str, str] = MappingProxyType({})
    """Other spellings of options, and their names; of options of other commands the line to write."""
    bare: Mapping[str, str] = MappingProxyType({})
    """Options that may be without a value, and the value that they have then."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        return _plain(super().get_params(ctx))

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which also takes the old spellings."""
        parser = super().make_parser(ctx)
        by_name = parser._long_opt  # noqa: SLF001 - a second option would be in the help
        for old, new in {**_OTHERS, **self.old}.items():
            if new in by_name:
                by_name[old] = by_name[new]
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, of which FLOW may be omitted before others.

        Raises BadInput if an option would take another option for its value, or is one of another command.
        """
        if ctx.resilient_parsing:
            return list(super().parse_args(ctx, args))
        self._refuse_options_of_others(ctx, args)
        args = list(self._with_values(self.make_parser(ctx), args))
        if not self._lacks_flow(ctx, args):
            return list(super().parse_args(ctx, args))
        found = list(super().parse_args(ctx, [_NO_FLOW, *args]))
        ctx.params["flow"] = None
        return found

    def _refuse_options_of_others(self, ctx: Any, args: list[str]) -> None:
        for name in (word.partition("=")[0] for word in args):
            if (line := self.old.get(name, "")).startswith("ferry "):
                raise BadInput(f"{ctx.command_path} has no option {name}: write {line}")

    def _lacks_flow(self, ctx: Any, args: list[str]) -> bool:
        """Return whether the first word is not the flow, but what follows it: there is a place left for the flow."""
        places = [one for one in self.params if one.param_type_name == "argument"]
        if len(places) < 2 or places[0].name != "flow":
            return False
        parser = self.make_parser(ctx)
        parser._args = []  # noqa: SLF001 - it then returns the words of all arguments
        words: list[str] = parser.parse_args(list(args))[1]
        # A word with "-" at its end is a flow whose > the shell took.
        return 0 < len(words) < len(places) and "->" not in words[0] and not words[0].endswith("-")

    def _with_values(self, parser: Any, args: Sequence[str]) -> Iterator[str]:
        options = {**parser._long_opt, **parser._short_opt}  # noqa: SLF001 - as above
        words = iter(args)
        for word in words:
            yield word
            if word == "--":
                break
            if word not in options or not options[word].takes_value:
                continue
            value = next(words, None)
            is_option = value is not None and _OPTION.fullmatch(value) is not None
            if (value is None or is_option) and word in self.bare:
                yield self.bare[word]
                yield from self._with_values(parser, [*([] if value is None else [value]), *words])
                return
            elif is_option:
                raise BadInput(f"{word} took {value!r} for its value: put the value after {word}")
            elif value is not None:
                yield value
        yield from words


def command_class(old: Mapping[str, str], bare: Mapping[str, str]) -> type[PlainCommand]:
    """Return the class of a command that also takes the spellings `old` of its options, and the `bare` ones alone."""
    return type("PlainCommand", (PlainCommand,), {"old": old, "bare": bare})


class PlainGroup(TyperGroup):
    """A group with plain help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        return _plain(super().get_params(ctx))


def _plain(params: list[Any]) -> list[Any]:
    for one in params:
        if one.param_type_name == "argument":
            one.display_type_rich = _nothing
        elif one.is_flag and one.metavar is None:
            one.metavar = ""
    return params


def _nothing(ctx: Any) -> None:
    """Return the type that help shows of an argument, whose name says it."""


def shown_examples(*lines: str) -> str | None:
    """Return the text below the help of a command, of lines that use it without `ferry`; None without any."""
    return "\n".join(("Examples:", *(f"$ ferry {line}" for line in lines))) if lines else None


def usage_of(path: str, command: Any) -> str:
    """Return the line of a command, which `path` names, with its arguments and the options that it requires."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    needed = [one for one in command.params if one.param_type_name == "option" and one.required]
    words = [spelled(one) if one.required else f"[{spelled(one)}]" for one in arguments]
    return " ".join((path, *words, *map(spelled, needed)))


def spelled(one: Any) -> str:
    """Return a parameter as a line has it: `LANE`, `--group GROUP`."""
    name = str(one.metavar or one.name.upper())
    return name if one.param_type_name == "argument" else f"{one.opts[0]} {name}"
