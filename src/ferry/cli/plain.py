"""Commands and groups whose help is plain: no type where it repeats the name, and no option of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command with plain help."""

    old: Mapping[str, str] = MappingProxyType({})
    """Options as earlier versions spelled them, and those of today."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        return _plain(super().get_params(ctx))

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which also takes the old spellings."""
        parser = super().make_parser(ctx)
        for old, new in self.old.items():
            parser._long_opt[old] = parser._long_opt[new]  # noqa: SLF001 - a second option would be in the help
        return parser


def command_class(old: Mapping[str, str]) -> type[PlainCommand]:
    """Return the class of a command that also takes the spellings `old` of its options."""
    return type("PlainCommand", (PlainCommand,), {"old": old})


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
