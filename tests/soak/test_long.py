"""Long randomised runs (`make soak`): seeds are in the header; FERRY_SOAK_ROUNDS sets how long."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from tests.harness import Feeder, Lab, create_topic, new_alias
from tests.kafka.chaos.test_kills import finished, pause, start_driver, wait_for_line
from tests.tiers import ANSWER_S

ROUNDS = int(os.environ.get("FERRY_SOAK_ROUNDS", "60"))


@pytest.mark.timeout(6 * 3600)
def test_drivers_and_brokers_of_both_ends_killed_over_a_living_source(
    three_brokers: RunningCluster, target_cluster: RunningCluster, topic: str, rng: random.Random, tmp_path: Path
) -> None:
    create_topic(three_brokers, topic, 8, replicas=3)
    lab = Lab(
        source=three_brokers,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "200000", "tasks.max": "3"},
    )
    with Feeder(three_brokers, topic, partitions=8, rate=2_000):
        for _ in range(ROUNDS):
            driver = start_driver(lab, tmp_path)
            wait_for_line(driver, rng.choice(["opening", "planned"]))
            pause(rng.uniform(0.0, 0.8))
            victim = rng.choice(["driver", "source", "target"])
            if victim == "driver":
                os.kill(driver.pid, signal.SIGKILL)
            else:
                cluster = three_brokers if victim == "source" else target_cluster
                broker = rng.choice(cluster.brokers)
                broker.kill(signal.SIGKILL)
                broker.start()
            driver.wait(10 * ANSWER_S)
    assert finished(lab).state is RunState.SUCCESS
    assert lab.assert_equal() > 0
