"""`ferry config explain`: what a key means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_keys
from ferry.cli.output import echo, print_table
from ferry.config.explain import Explanation, every_key, explain

KeyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="KEY",
        help="The key, with or without alias, flow and client. If omitted: all keys.",
        autocompletion=offered_keys,
    ),
]


@command(flow=None, connects=False, config=False, table=True)
def explain_command(
    context: Context,
    key: KeyArgument = None,
) -> int:
    """Explain a key: what Ferry does with it, where it may be written, and its default. Without KEY: one line for each
    key.
    """
    found = explain(key) if key is not None else tuple(every_key())
    if key is not None:
        context.refuse_csv("what a key means")
    context.answer(
        lambda: {"keys": [explanation_json(one) for one in found]}, lambda: _show(found, in_full=key is not None)
    )
    return 0


def explanation_json(one: Explanation) -> dict[str, object]:
    """Return one key in one kind of place as JSON; `places` are what may come before the name."""
    return {
        "name": one.name,
        "places": list(one.places),
        "values": one.values,
        "default": one.default,
        "mirror_maker_default": one.kafkas_default,
        "fate": one.fate,
        "text": one.text,
        "note": one.note,
    }


def _show(found: Sequence[Explanation], *, in_full: bool) -> None:
    if not in_full:
        print_table(["key", "here", "meaning, or why not"], ([one.name, one.fate, one.text] for one in found))
        return
    for one in found:
        _show_one(one)


def _show_one(one: Explanation) -> None:
    if one.note is not None:
        echo(one.note)
    echo(f"{one.name}: {one.fate}: {one.text}")
    echo(f"  written  {', '.join(f'{place}{one.name}' for place in one.places)}")
    if one.values:
        echo(f"  values   {one.values}")
    departs = f" (MirrorMaker 2: {one.kafkas_default})" if one.kafkas_default is not None else ""
    if one.default and one.fate in ("not needed", "refused"):
        departs = " (Kafka's)"
    echo("  no default" if one.default is None else f"  default  {one.default or 'empty'}{departs}")
