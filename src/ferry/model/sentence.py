"""A sentence that is data: what a person reads, and what it was made of."""

from __future__ import annotations

Fact = int | str
"""A fact of a sentence: a count, an offset, a name."""


class Sentence(str):
    """A sentence of the catalogue (`ferry.messages`) with its code and, by name, the facts that it was made of.

    It is a text wherever one is asked for. What is cut out of it or joined to it is a plain text.
    """

    __slots__ = ("code", "facts")
    code: str
    facts: tuple[tuple[str, Fact], ...]

    def __new__(cls, text: str, code: str, facts: tuple[tuple[str, Fact], ...] = ()) -> Sentence:
        """A text with its code and facts."""
        made = super().__new__(cls, text)
        made.code, made.facts = code, facts
        return made

    def __getnewargs__(self) -> tuple[str, str, tuple[tuple[str, Fact], ...]]:  # type: ignore[override]
        """For copies and pickles."""
        return str(self), self.code, self.facts


def with_text(said: str, text: str, facts: tuple[tuple[str, Fact], ...] | None = None) -> str:
    """Another text for a sentence, such as a longer one, that keeps its code, and its facts unless others are given."""
    return Sentence(text, said.code, said.facts if facts is None else facts) if isinstance(said, Sentence) else text


def code_of(text: str) -> str:
    """The code of a sentence; empty for any other text, as of an earlier Ferry."""
    return text.code if isinstance(text, Sentence) else ""


def facts_of(text: str) -> tuple[tuple[str, Fact], ...]:
    """The facts of a sentence; none for any other text."""
    return text.facts if isinstance(text, Sentence) else ()
