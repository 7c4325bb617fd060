"""`ferry explain`: what a word of Ferry means, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.cli.words import Of, Word, all_words, document_place, with_places
from ferry.codec.form import F, Form
from ferry.codec.kinds import many, typed
from ferry.errors import BadInput

KINDS: Mapping[Of, str] = {
    "state": "state",
    "kind": "refusal or gap",
    "alert": "alert",
    "error": "error",
    "term": "term",
}
"""What a word is of, as the table shows it."""


def offered_words() -> list[str]:
    """Return all words and their other names, for completion."""
    return sorted({name for one in all_words() for name in (one.word, *one.also)})


@command(flow=False, connects=False, table=True)
def explain_command(
    context: Context,
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="The word, such as retention-passed, partial or FerryLagOverRpo; all words when omitted.",
            autocompletion=offered_words,
        ),
    ] = None,
) -> int:
    """Explain a state, refusal, gap, alert, error or term: what it means, what to check, what fixes it."""
    found = [one for one in all_words() if word is None or word in {one.word, *one.also}]
    if not found:
        close = get_close_matches(word or "", offered_words(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "ferry explain lists all words"
        raise BadInput(f"{word!r} is not a word of Ferry: {hint}")
    if word is not None:
        context.refuse_csv("what a word means")
    context.answer(lambda: {"words": [word_json(one) for one in found]}, lambda: _show(found, whole=word is not None))
    return 0


def _show(found: list[Word], *, whole: bool) -> None:
    if not whole:
        print_table(["word", "is"], [[one.word, KINDS[one.of]] for one in found])
        return
    for one in found:
        echo(f"{one.word} ({one.section})")
        for label, text in (("means", one.means), ("check", one.look), ("fix", one.fixes)):
            if text:
                echo(f"  {label}: {plain(text)}")


def plain(text: str) -> str:
    """Return Markdown as text of a terminal: a link names its document, and a code span keeps all of its characters."""
    return re.sub(r"`([^`]*)`|\*+", lambda found: found[1] or "", with_places(text, document_place))


WORD = Form(
    Word,
    F("word"),
    F("of", says="state of a flow or run; kind of a refusal or gap; alert; error of a command; term"),
    F("also", kind=many(), says="other names: the Prometheus rules of an alert"),
    F("means", lambda one: plain(one.means), typed(str)),
    F("look", lambda one: plain(one.look), typed(str), says="what to check first"),
    F("fixes", lambda one: plain(one.fixes), typed(str)),
)

word_json = WORD.dump
"""A word as `ferry explain --json` prints it."""
