"""Sentences on the wire: the text of each with its code and its facts. Texts without a code have only the text."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, many, typed
from ferry.ledger.codec import Json
from ferry.ledger.reading import text, whole
from ferry.model import Fact, Sentence, code_of, facts_of


def _facts(body: Any) -> tuple[tuple[str, Fact], ...]:
    return tuple(sorted((name, value if isinstance(value, str) else whole(value)) for name, value in body.items()))


FACTS = Kind(dict, _facts, lambda: {"type": "object", "additionalProperties": {"type": ["integer", "string"]}})
"""The facts of a sentence, by name."""

CODE_SAYS = "a stable word for the sentence; more may come"
FACTS_SAY = "what the sentence was made of, by name"

OF_MESSAGE = (
    F("code", lambda one: code_of(one.message), typed(str), omit=lambda one: not code_of(one.message), says=CODE_SAYS),
    F("facts", lambda one: facts_of(one.message), FACTS, omit=lambda one: not facts_of(one.message), says=FACTS_SAY),
)
"""The fields of a form whose value has a sentence as `message`. They are only written; `read_sentence` reads them."""

NOTED = Form(
    Sentence,
    F("message", str, typed(str)),
    F("code", kind=typed(str), says=CODE_SAYS),
    F("facts", kind=FACTS, says=FACTS_SAY),
    name="noted",
)
"""A note as data."""


def _noted(notes: Iterable[str]) -> list[Json]:
    return [NOTED.dump(one) for one in notes if isinstance(one, Sentence)]


def noted_in(name: str) -> F:
    """Return the field of a form that has, as data, the entries of the attribute `name` that have a code."""

    def of(value: Any) -> list[Json]:
        return _noted(getattr(value, name))

    kind = Kind(schema=many(NOTED.kind).schema)
    return F("noted", of, kind, omit=lambda value: not of(value), says=f"those of `{name}` that have a code, as data")


def sentence_fields(said: str) -> Json:
    """Return what is written in addition to the text of a sentence."""
    return {"code": said.code, "facts": dict(said.facts)} if isinstance(said, Sentence) else {}


def read_sentence(said: object, body: Json) -> str:
    """Return the text with its code and facts from `body`; only the text when it has no code."""
    known = text(said)
    return Sentence(known, text(body["code"]), _facts(body.get("facts", {}))) if "code" in body else known


def with_codes(notes: Iterable[str], noted: Collection[Json]) -> tuple[str, ...]:
    """Return the texts, with the code and facts of those that `noted` has as data."""
    known = {one["message"]: read_sentence(one["message"], one) for one in noted}
    return tuple(known.get(one, one) for one in notes)
