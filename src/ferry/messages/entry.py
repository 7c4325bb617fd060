"""A sentence with places for facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from ferry.model import RefusalKind
from ferry.model.sentence import Fact
from ferry.words import agreeing, count_of, to_the_second, whole_size


@dataclass(frozen=True, slots=True)
class Entry:
    """A sentence with places for facts, `{name}`.

    `kind` is None for a code without a refusal, or with several kinds.
    """

    kind: RefusalKind | None
    what: str
    remedy: str = ""

    @property
    def facts(self) -> frozenset[str]:
        """The names of the facts that the sentence has places for."""
        parsed = (*Formatter().parse(self.what), *Formatter().parse(self.remedy))
        return frozenset(name for _, name, _, _ in parsed if name)

    def what_is(self, facts: Mapping[str, Fact]) -> str:
        """Return the sentence without its remedy. Raises KeyError for a missing fact."""
        return _WORDS.vformat(self.what, (), facts)

    def sentence(self, facts: Mapping[str, Fact]) -> str:
        """Return the whole sentence. Raises KeyError for a missing fact."""
        what = self.what_is(facts)
        return f"{what}: {_WORDS.vformat(self.remedy, (), facts)}" if self.remedy else what


class _Words(Formatter):
    """Python's format with more specs.

    They are `size` for bytes, `time` for epoch milliseconds, `count NOUN` for how many, and `agree ONE/MANY` for how
    many with words that agree.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        spec, _, noun = format_spec.partition(" ")
        match spec:
            case "size":
                return whole_size(value)
            case "time":
                return to_the_second(value)
            case "count":
                return count_of(value, noun)
            case "agree":
                return agreeing(value, *noun.split("/"))
        return str(format(value, format_spec))


_WORDS = _Words()
