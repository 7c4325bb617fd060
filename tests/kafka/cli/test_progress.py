"""What a person at a terminal sees of a run while it works."""

from __future__ import annotations

import re
from pathlib import Path

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.program import PROGRAM, ferry
from tests.terminal import ESCAPE, at_a_terminal


def test_a_run_shows_that_it_plans_and_then_how_far_it_has_come(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    config = lab.write(tmp_path)
    create_topic(lab.source, topic, 2)
    send(producer(lab.source), topic, numbered(500, partitions=2))
    for command, is_copy in (("plan", False), ("run", True), ("run", False)):
        shown = ESCAPE.sub("", at_a_terminal([PROGRAM, "--config", config, command]))
        assert "Planning" in shown
        assert bool(re.search(r"of 2 slices, .*/s", shown)) == is_copy, shown
    send(producer(lab.source), topic, numbered(500, partitions=2, start=500))
    shown = ESCAPE.sub("", at_a_terminal([PROGRAM, "--config", config, "run", "--quiet"]))
    assert "Planning" not in shown
    assert "/s" not in shown.partition("records")[0]


def test_a_log_and_a_bar_show_what_is_sent_before_any_of_it_is_committed(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {
        "ferry.throttle.bytes.per.second": "500000",
        "ferry.chunk.seconds": "60",
        "ferry.transaction.timeout.ms": "180000",
        "tasks.max": "1",
    }
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    config = lab.write(tmp_path)
    create_topic(lab.source, topic, 2)
    client = producer(lab.source, batch_num_messages=5)
    for start in (0, 6_000):
        send(client, topic, numbered(6_000, partitions=2, size=1_000, start=start))
        if not start:
            shown = ferry("run", config=config).err
        else:
            shown = ESCAPE.sub("", at_a_terminal([PROGRAM, "--config", config, "run"]))
        assert re.search(r"about \d+ records, [\d.]+ MB sent ", shown), shown
        assert re.search(r"0 of 2 slices, (0 records, )?0 B.*B/s, about \d+ s ", shown), shown
        last = shown.rpartition("of 2 slices")
        assert last[0].endswith("2 "), shown
        assert "sent" not in last[2].partition("success")[0]
