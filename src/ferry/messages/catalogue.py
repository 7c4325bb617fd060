"""The catalogue of all messages that are data, by code. Pure, as are the `sentences` of features that it imports.

The registry names these, so no import of the source text shows them.

A code never changes its meaning; its sentence may be improved.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.config_lines import LINES
from ferry.messages.config_login import LOGINS
from ferry.messages.config_values import VALUES
from ferry.messages.entry import Entry
from ferry.messages.flow import FLOW
from ferry.messages.notes import NOTES
from ferry.messages.records import RECORDS
from ferry.messages.runs import RUNS
from ferry.messages.source import SOURCE
from ferry.messages.target import TARGET
from ferry.model.sentence import Fact, Sentence, sentence_of
from ferry.registry import parts_of

ENTRIES: Mapping[str, Entry] = {
    # Text from elsewhere: of a broker, of Spark, of an error that was raised in another place.
    "said": Entry(None, "{why}"),
    **SOURCE,
    **FLOW,
    **TARGET,
    **RECORDS,
    **RUNS,
    **NOTES,
    **VALUES,
    **LOGINS,
    **LINES,
    **{code: entry for entries in parts_of("sentences").values() for code, entry in entries.items()},
}


def what_is(said: Sentence) -> str:
    """Return what is wrong, without the remedy."""
    return ENTRIES[said.code].what_is(dict(said.facts))


def said(words: object) -> Sentence:
    """Return text from elsewhere as a Sentence; one of the catalogue, or that an error has, is returned unchanged."""
    found = sentence_of(words)
    return found if isinstance(found, Sentence) else sentence("said", why=found)


def caused(code: str, why: object, **facts: Fact) -> Sentence:
    """Return the sentence of a code in whose place `{why}` is what another sentence or error says.

    It also has that one's facts, except those of the same name, and its code as the fact `of`.
    """
    found = sentence_of(why)
    more: dict[str, Fact] = {**dict(found.facts), "of": found.code} if isinstance(found, Sentence) else {}
    return sentence(code, **{**more, **facts, "why": str(found)})


def sentence(code: str, **facts: Fact) -> Sentence:
    """Return the sentence of a code with its facts. Raises KeyError if a fact is missing that the sentence needs."""
    return Sentence(ENTRIES[code].sentence(facts), code, tuple(sorted(facts.items())))
