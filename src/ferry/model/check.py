"""Something that has to hold before a switch, or after a drill."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Whether it holds: a sentence for each side, with the remedy where it does not.

    `known` is false if what the check is about is not known. Such a check holds up no switch, so `ok` is true.
    """

    name: str
    ok: bool
    message: str
    known: bool = True

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        return ("ok" if self.known else "not known") if self.ok else "NOT OK"
