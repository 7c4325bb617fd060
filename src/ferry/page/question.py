"""The base of the page's questions to its reader: each is a dataclass that names the type of its answer. Pure."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args, get_origin

A = TypeVar("A")


class Question(Generic[A]):
    """A question whose answer is of the type `A`: `class OfReports(Question[ReportsStory])`, a frozen dataclass.

    Both pass as JSON by the types of their fields (`ferry.reader.typed`). The question passes with the name of its
    class, so no two questions have the same name.
    """

    __slots__ = ()


def answer_type(question: type[Question[Any]]) -> Any:
    """Return the type of the answer to the questions of a class."""
    (base,) = (base for base in getattr(question, "__orig_bases__", ()) if get_origin(base) is Question)
    return get_args(base)[0]
