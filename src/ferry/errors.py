"""Errors, named for the caller's next move.

```
FerryError
 +- BadInput         the user's file, flag or value: correct it and start again       (exit 2)
 +- Refused          Ferry will not do this: the sentence names what to change        (exit 2)
 |   +- EmptyFilter  the flow takes no topic: it cannot be called healthy             (exit 1)
 +- Superseded       a newer run, or a newer attempt at this one, took over: stop     (exit 2)
 +- Unreachable      a cluster does not answer: check the network, then retry         (exit 3)
 +- Fenced           a broker refuses this writer: stop writing, and read from the ledger which one took its place
 +- Retryable        the same attempt may succeed a moment later
 +- OutcomeUnknown   it may or may not have happened: read again, never guess
 +- Corrupt          bytes that must not be copied: topic, partition and offset named
```

Every message is one sentence that names the thing, the value and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping


class FerryError(Exception):
    """Base of all errors that Ferry raises on purpose."""

    exit_code = 1


class BadInput(FerryError):
    """A file, flag or value given by the user is wrong; nothing was started."""

    exit_code = 2
    of_run = False
    """Whether the input of one run is wrong, and not the flow itself."""


class Refused(FerryError):
    """Ferry declines to act because a guard or a permission forbids it."""

    exit_code = 2


class EmptyFilter(Refused):
    """A flow takes no topic and has no reason to wait for one: a plan of it would refuse that (ADR 25)."""

    exit_code = 1


class Superseded(FerryError):
    """A newer run of the same lane, or a newer attempt at the same run, owns it now; this one must not write again."""

    exit_code = 2


class Unreachable(FerryError):
    """A cluster did not answer within its deadline."""

    exit_code = 3


class Fenced(FerryError):
    """The broker refuses a writer's epoch: another writer took its transactional id, or its transaction timed out.

    Only the ledger shows which of the two it was; `ferry.protocol.slot` reads it and raises Superseded or Retryable
    instead.
    """


class Retryable(FerryError):
    """A passing condition; the same attempt may succeed after a back-off."""


class OutcomeUnknown(FerryError):
    """An action may or may not have taken effect; read the ledger again before deciding."""


class Corrupt(FerryError):
    """Bytes whose checksum or structure is wrong; they are never copied."""


KINDS: Mapping[type[FerryError], str] = {
    BadInput: "bad-input",
    Refused: "refused",
    Superseded: "superseded",
    Unreachable: "unreachable",
    Fenced: "fenced",
    Retryable: "retryable",
    OutcomeUnknown: "outcome-unknown",
    Corrupt: "corrupt",
}
"""The words that programs compare."""


def kind_of(error: FerryError) -> str:
    """Return the word of the error's class, or of the class of this module that it extends; `failed` without one."""
    return next((word for kind, word in KINDS.items() if isinstance(error, kind)), "failed")


MALFORMED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)
"""The errors of reading a value that others have written in another form.

A field is missing, of another kind, infinite, or too deep.
"""
