"""The directory of the clients that Airflow's switches move; its hook can be held, so that a step is caught in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ferry.dev import RunningCluster
from tests.kafka.run.movers import Directory, Home

HELD_SECONDS = 400
"""How long the hook may take."""


@dataclass(kw_only=True)
class HeldDirectory(Directory):
    """A directory whose hook answers, and sends clients, when it is let go."""

    _free: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """It is free."""
        self._free.set()

    def move(self, alias: str) -> None:
        """The hook's, and the test's."""
        self._free.wait(HELD_SECONDS)
        super().move(alias)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Whoever calls the hook waits until the block ends."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()


def orders(alias: str) -> str:
    """The topic of a flow's clients."""
    return f"{alias}-orders"


def directory_of(alias: str, source: RunningCluster, target: RunningCluster) -> HeldDirectory:
    """Of the clients of a flow: on each side they read what is produced there, and the copy of the other side's."""
    topic, there = orders(alias), f"t{alias}"
    return HeldDirectory(
        homes={
            alias: Home(cluster=source, topics=(topic, f"{there}.{topic}")),
            there: Home(cluster=target, topics=(topic, f"{alias}.{topic}")),
        }
    )
