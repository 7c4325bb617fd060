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
from ferry.messages.source import SOURCE
from ferry.messages.target import TARGET
from ferry.model.sentence import Fact, Sentence
from ferry.registry import parts_of

ENTRIES: Mapping[str, Entry] = {
    # Text from elsewhere: of a broker, of Spark, of an error that was raised in another place.
    "said": Entry(None, "{why}"),
    **SOURCE,
    **FLOW,
    **TARGET,
    **RECORDS,
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
    """Return text from elsewhere as a Sentence; a Sentence of the catalogue is returned unchanged."""
    return words if isinstance(words, Sentence) else sentence("said", why=str(words))


def sentence(code: str, **facts: Fact) -> Sentence:
    """Return the sentence of a code with its facts. Raises KeyError if a fact is missing that the sentence needs."""
    return Sentence(ENTRIES[code].sentence(facts), code, tuple(sorted(facts.items())))
