"""Pages of lists: a request gets one page, however long the list is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

A_PAGE = 50
"""Rows of a page."""
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Generic[T]):
    """A page of a list; pages count from 1."""

    rows: Sequence[T]
    page: int
    pages: int
    total: int
    first: int = 1
    """The number of the first row."""

    @classmethod
    def of(cls, rows: Sequence[T], page: int, size: int = A_PAGE) -> Cut[T]:
        """Return the page, or the last one if there are fewer."""
        pages = max(1, -(-len(rows) // size))
        page = min(max(1, page), pages)
        start = (page - 1) * size
        return cls(rows=rows[start : start + size], page=page, pages=pages, total=len(rows), first=start + 1)


def lines(cut: Cut[A], line: Callable[[A], B]) -> Cut[B]:
    """Return the same page with each row made into a line."""
    return Cut(rows=[line(row) for row in cut.rows], page=cut.page, pages=cut.pages, total=cut.total, first=cut.first)
