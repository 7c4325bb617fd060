"""Commands and groups whose help shows no type where it repeats nothing: `--dry-run <bool>`, `FLOW <str>`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command with plain help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        return _plain(super().get_params(ctx))


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
