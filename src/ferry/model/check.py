"""Something that has to hold before a switch, or after a drill."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Whether it holds: a sentence for each side, with the remedy where it does not.

    `known` is false if what the check is about is not known. Such a check holds up no switch, so `ok` is true. `warns`
    is true if it holds up no switch and an operator has to read it before one, as records that the target will lack.
    """

    name: str
    ok: bool
    message: str
    known: bool = True
    warns: bool = False

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        if not self.ok:
            return "NOT OK"
        return ("warning" if self.warns else "ok") if self.known else "not known"
