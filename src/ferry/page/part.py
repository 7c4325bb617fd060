"""What features answer to questions of the operator's page.

`ferry.registry` has the place of each feature's answers, `page`: a sequence of FromFiles and FromClusters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ferry.config.flow.flow import FlowConfig
from ferry.page.question import Question
from ferry.registry import parts_of

Q = TypeVar("Q", bound=Question[Any])
F = TypeVar("F")


def _whole(question: Hashable) -> Hashable:
    return question


def shared(_: Question[Any]) -> Hashable:
    """Return one value for all questions, as the `same` of an answer: what was found for one question serves all."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering(Generic[Q, F]):
    """How one question is answered: `find` reads what `show` makes the answer of."""

    of: type[Q]
    """The class of the question that this part answers."""
    show: Callable[[FlowConfig, Q, F], Any]
    """Makes the answer of what was found. It has as much as one page shows, so that it does not grow with a list."""
    same: Callable[[Q], Hashable] = _whole
    """What of the question `find` depends on: questions with the same value share what was found for some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromFiles(_Answering[Q, F]):
    """Answers a question from files or an object store, on a thread of its own: no cluster delays it."""

    find: Callable[[FlowConfig, Q], F | None]
    """Reads what the answer is made of; None: there is no answer. The page shows the text of a FerryError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromClusters(_Answering[Q, F]):
    """Answers a question from the clusters, on the flow's thread."""

    find: Callable[[FlowConfig, Q, float], F | None]
    """Reads what the answer is made of; None: there is no answer. The page shows the text of a FerryError.

    It gets the flow with its logins. The last argument is how long, in seconds, a cluster that does not answer is tried
    (`patience_s`).
    """


PageAnswer: TypeAlias = FromFiles[Any, Any] | FromClusters[Any, Any]


def page_answers() -> Mapping[type[Question[Any]], PageAnswer]:
    """Return what features answer, by question."""
    parts: Mapping[str, Sequence[PageAnswer]] = parts_of("page")
    return {one.of: one for answers in parts.values() for one in answers}
