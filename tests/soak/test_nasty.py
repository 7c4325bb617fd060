"""Two hundred random nasty topics, forty at a time."""

from __future__ import annotations

import random

import pytest

from ferry.dev import RunningCluster
from tests.kafka.run.test_nasty import copy_nasty_topics


@pytest.mark.parametrize("part", range(5))
def test_two_hundred_nasty_topics(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random, part: int
) -> None:
    copy_nasty_topics(source_cluster, target_cluster, f"{topic[-8:]}-{part}", rng, 40)
