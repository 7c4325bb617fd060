"""What tests of whole commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pure.answers.world import World, world


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Two clusters without topics, and no file of flows yet. Files that need more have a fixture of that name."""
    with world(tmp_path) as found:
        yield found
