"""Compares transformed topics in portions: so what a job shuffles stays bounded.

What cannot be read on, or is not transformed in time, is reported, and stops nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from ferry.errors import FerryError, Unreachable
from ferry.features.records.spark.failures import cause_of, ferry_error_of, unread_of
from ferry.features.records.spark.task_monitor import TooSlow
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.rules.portions import Unread
from ferry.model import NotCompared

T = TypeVar("T")

log = logging.getLogger(__name__)


class Holding(Protocol[T]):
    """Ranges, or repartitioned copies, of one transform."""

    name: str
    """The transform's name."""

    def portion(self, left: Sequence[T]) -> tuple[list[T], list[T]]:
        """Return the next portion, and what is left after it."""

    def compare(self, portion: Sequence[T]) -> Compared:
        """Compare all of the portion in one Spark job; raises what Spark raises, and TooSlow."""

    def readable(self, groups: Sequence[Sequence[T]], unread: Unread) -> tuple[list[list[T]], list[NotCompared]]:
        """Return what is left of some groups without what cannot be read, and sentences about that."""

    def lost(self, some: Sequence[T], why: str) -> list[NotCompared]:
        """Return sentences that all of it is not compared."""


def compared_in_portions(holding: Holding[T], pieces: Sequence[T]) -> Compared:
    """Compare all pieces as far as possible; report what Spark cannot do, and source partitions that cannot be read."""
    found, left = Compared(), list(pieces)
    while left:
        portion, left = holding.portion(left)
        while portion:
            try:
                found.add(holding.compare(portion))
                break
            except TooSlow as slow:
                found.not_compared += holding.lost([*portion, *left], str(slow))
                return found
            except FerryError as error:
                found.not_compared += holding.lost([*portion, *left], str(error))
                return found
            except (PySparkException, Py4JError) as error:
                unread = {place: (one.offset, one.message) for place, one in unread_of(error).items()}
                (portion, left), lost = holding.readable((portion, left), unread)
                if not lost:
                    own = ferry_error_of(error)
                    why = f"Spark failed on ferry.transform.{holding.name} ({own or cause_of(error)}): see its log"
                    if isinstance(own, Unreachable):  # each further portion would wait for it as long
                        found.not_compared += holding.lost([*portion, *left], why)
                        return found
                    found.not_compared += holding.lost(portion, why)
                    break
                for one in lost:
                    log.warning("%s", one.message)
                found.not_compared += lost
    return found
