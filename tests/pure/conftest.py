"""What pure tests share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from ferry.kafka.connect import cluster
from tests.pure.scripted.clock import Clock, Skipping


@pytest.fixture
def skipped_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The event loops that Ferry makes in the test skip what they would wait for, so that patience takes no time."""
    clock = Clock()
    monkeypatch.setattr(cluster, "Selector", partial(Skipping, clock))
    with clock.in_force():
        yield
