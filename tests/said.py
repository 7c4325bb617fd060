"""What sentences are made of, for tests: they compare codes and facts, and leave the words to `golden`."""

from collections.abc import Iterable

from ferry.model import Fact, code_of, facts_of, sentence_of


def codes(sentences: Iterable[str]) -> list[str]:
    """The code of each; empty for a text that has none."""
    return [code_of(one) for one in sentences]


def facts_in(sentence: str) -> dict[str, Fact]:
    """The facts of a sentence by name."""
    return dict(facts_of(sentence))


def of_code(code: str, sentences: Iterable[str]) -> list[str]:
    """Those that have a code."""
    return [one for one in sentences if code_of(one) == code]


def data_of(error: BaseException) -> tuple[str, dict[str, Fact]]:
    """The code and the facts of what an error says; an empty code if it is a text."""
    said = sentence_of(error)
    return code_of(said), facts_in(said)
