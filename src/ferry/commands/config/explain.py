"""`ferry config explain`: what a key means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_keys
from ferry.cli.output import echo, print_table
from ferry.codec.form import F, Form
from ferry.codec.kinds import many, typed
from ferry.config.explain import Explanation, every_key, explain
from ferry.config.keys.key_support import Fate

KeyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="KEY",
        help="The key, with or without alias, flow and client. If omitted: all keys.",
        autocompletion=offered_keys,
    ),
]


@command(flow=False, connects=False, config=False, table=True)
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


KEY = Form(
    Explanation,
    F("name"),
    F("places", kind=many(), says="the prefixes that the name may have"),
    F("values"),
    F(
        "default",
        says="Ferry's, or Kafka's of a key that is not used; null: none, and the text shows what Ferry does",
    ),
    F("mirror_maker_default", "kafkas_default", says="where Ferry's default is another one"),
    F("fate", kind=typed(Fate)),
    F("text", says="what the key does, or why it is not needed or refused"),
    F(
        "note",
        says="why the key that was asked for has no effect as it is written; null: it has, or no place was named",
    ),
    name="key",
)

explanation_json = KEY.dump
"""Return one key in one kind of place as JSON; `places` are what may come before the name."""


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
    echo(f"  no default{departs}" if one.default is None else f"  default  {one.default or 'empty'}{departs}")
