"""A sentence that is data: its text, and what the text was made of."""

from __future__ import annotations

Fact = int | str
"""A fact of a sentence: a count, an offset, a name."""


class Sentence(str):
    """A sentence of the catalogue (`ferry.messages`) with its code and, by name, the facts that it was made of.

    It can be used as any text. A part of it, or a longer text made with it, is a plain text.
    """

    __slots__ = ("code", "facts")
    code: str
    facts: tuple[tuple[str, Fact], ...]

    def __new__(cls, text: str, code: str, facts: tuple[tuple[str, Fact], ...] = ()) -> Sentence:
        """Return a text with its code and facts."""
        made = super().__new__(cls, text)
        made.code, made.facts = code, facts
        return made

    def __getnewargs__(self) -> tuple[str, str, tuple[tuple[str, Fact], ...]]:  # type: ignore[override]
        """Return the arguments for copies and pickles."""
        return str(self), self.code, self.facts


def with_text(said: str, text: str, facts: tuple[tuple[str, Fact], ...] | None = None) -> str:
    """Return another text for a sentence, such as a longer one.

    It keeps the code, and the facts unless others are given.
    """
    return Sentence(text, said.code, said.facts if facts is None else facts) if isinstance(said, Sentence) else text


def located(place: str, said: str) -> str:
    """Return `place: sentence`, with the code and the facts of the sentence."""
    return with_text(said, f"{place}: {said}")


def code_of(text: str) -> str:
    """Return the code of a sentence; empty for any other text, as of an earlier Ferry."""
    return text.code if isinstance(text, Sentence) else ""


def facts_of(text: str) -> tuple[tuple[str, Fact], ...]:
    """Return the facts of a sentence; none for any other text."""
    return text.facts if isinstance(text, Sentence) else ()


def sentence_of(words: object) -> str:
    """Return the sentence that an error was raised with, with its code and facts; for a text, the text."""
    said = words.args[0] if isinstance(words, BaseException) and len(words.args) == 1 else words
    return said if isinstance(said, Sentence) else str(words)
