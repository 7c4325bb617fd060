"""The sentences of `ferry ledger export` and `ferry ledger rebuild`."""

from __future__ import annotations

from ferry.words import count_of


def in_file(records: int, upto: int, file: object, *, dry_run: bool) -> str:
    """Return what an export wrote: the number of records before a ledger offset, and the file."""
    return f"{_before(records, upto, dry_run=dry_run)} in {file}"


def from_file(records: int, upto: int, file: object, *, dry_run: bool) -> str:
    """Return what a rebuild wrote: the number of records before a ledger offset, and the file."""
    return f"{_before(records, upto, dry_run=dry_run)} written from {file}"


def replaced(records: int, carried: int, *, dry_run: bool) -> str:
    """Return what became of a ledger that runs had begun after the loss: records that are gone, and that are kept."""
    deleted = "would be" if dry_run else "was"
    return (
        f"the ledger that was begun since {deleted} deleted: runs had left {count_of(records, 'record')} that they "
        f"write again; {count_of(carried, 'record')} of pauses, ACLs and lanes {_verb(carried, dry_run=dry_run)} kept"
    )


def _before(records: int, upto: int, *, dry_run: bool) -> str:
    return f"{count_of(records, 'record')} before ledger offset {upto} {_verb(records, dry_run=dry_run)}"


def _verb(number: int, *, dry_run: bool) -> str:
    return "would be" if dry_run else "is" if number == 1 else "are"
