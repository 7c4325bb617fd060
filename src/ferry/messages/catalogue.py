"""The catalogue: all that Ferry says as data, by code. Pure.

A code never changes its meaning; its sentence may become better.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.config_lines import LINES
from ferry.messages.config_login import LOGINS
from ferry.messages.config_values import VALUES
from ferry.messages.entry import Entry
from ferry.messages.flow import FLOW
from ferry.messages.groups import GROUPS
from ferry.messages.notes import NOTES
from ferry.messages.records import RECORDS
from ferry.messages.source import SOURCE
from ferry.messages.target import TARGET
from ferry.model.sentence import Fact, Sentence

ENTRIES: Mapping[str, Entry] = {
    # Words of something else: of a broker, of Spark, of an error that another place has made.
    "said": Entry(None, "{why}"),
    **SOURCE,
    **FLOW,
    **TARGET,
    **RECORDS,
    **NOTES,
    **GROUPS,
    **VALUES,
    **LOGINS,
    **LINES,
}


def what_is(said: Sentence) -> str:
    """What is the matter, without the remedy."""
    return ENTRIES[said.code].what_is(dict(said.facts))


def said(words: object) -> Sentence:
    """Words of something else as a sentence; one of the catalogue as it is."""
    return words if isinstance(words, Sentence) else sentence("said", why=str(words))


def sentence(code: str, **facts: Fact) -> Sentence:
    """The sentence of a code, with the facts that it has places for. Raises KeyError where one is missing."""
    return Sentence(ENTRIES[code].sentence(facts), code, tuple(sorted(facts.items())))
