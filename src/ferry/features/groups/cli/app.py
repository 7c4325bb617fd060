"""`ferry groups`: the consumer groups of a flow."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from ferry.features.groups.cli.snapshots import diff_command, rollback_command, snapshot_command
from ferry.features.groups.cli.sync import sync_command
from ferry.features.groups.cli.table import show_command

SHOW = "show"


class ShowFirst(TyperGroup):
    """Without a command's name it is `show`: `ferry groups 'primary->backup'`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As of every group of commands."""
        # A shell that asks for the first word is offered the commands, too.
        first = not args and ctx.resilient_parsing
        if not first and (not args or (args[0] not in self.commands and args[0] != "--help")):
            args = [SHOW, *args]
        found: list[str] = super().parse_args(ctx, args)
        return found

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """The commands, and what may stand behind `show`."""
        show = self.commands[SHOW]
        with show.make_context(SHOW, [], parent=ctx, resilient_parsing=True) as inner:
            if incomplete.startswith("-"):
                return show.shell_complete(inner, incomplete)
            arguments = [one for one in show.params if one.param_type_name == "argument"]
            words = arguments[0].shell_complete(inner, incomplete) if arguments else []
        return [*super().shell_complete(ctx, incomplete), *words]


groups_app = typer.Typer(cls=ShowFirst, help="Consumer groups on both sides of a flow; without a command: show them.")


@groups_app.callback()
def groups() -> None:
    """Consumer groups on both sides of a flow; without a command: show them."""


groups_app.command(SHOW)(show_command)
groups_app.command("sync")(sync_command)
groups_app.command("snapshot")(snapshot_command)
groups_app.command("diff")(diff_command)
groups_app.command("rollback")(rollback_command)
