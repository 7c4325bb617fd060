"""A flow back with translated offsets copies nothing home that a flow with identical offsets wrote."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ferry.dev import RunningCluster
from tests.harness import (
    Lab,
    Message,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
    watermark,
)
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

RECORDS = 8_000


def test_a_flow_back_waits_for_the_receipts_of_an_identical_flow(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """Each flow has a file of its own. The run to the target was killed with its processes, before its first receipt.
    Then it has receipts, and clients write at the target: their records go back alone."""
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(RECORDS, size=1_000))
    alias = new_alias()
    there, back = f"{alias}->t{alias}", f"t{alias}->{alias}"
    settings = {
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        f"{there}.ferry.offsets": "identical",
        f"{there}.ferry.offsets.may.lose": "true",
    }
    only_back = {f"{there}.enabled": "false", f"{back}.enabled": "true"}

    def written(folder: str, **more: str) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        both = Lab(
            source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings={**settings, **more}
        )
        return both.write(tmp_path / folder)

    slow = start("run", there, config=written("there", **{"ferry.throttle.bytes.per.second": str(1 << 19)}))
    wait_until(lambda: end_of(target_cluster, topic) > 0, "records of the copy", 2 * ANSWER_S)
    os.killpg(slow.pid, signal.SIGKILL)
    finished(slow)
    end = watermark(target_cluster, topic, 0)
    assert 0 < end < RECORDS
    config = written("back", **only_back)
    for verb in ("plan", "run"):
        answer = ferry(verb, back, "--json", config=config)
        assert answer.out, answer.err
        (refusal,) = answer.json(verb)["refusals"]
        assert (refusal["kind"], refusal["facts"]["start"], refusal["facts"]["last"]) == ("loop", 0, end - 1)
        assert refusal["facts"]["writer"] == there
    assert watermark(source_cluster, topic, 0) == RECORDS

    again = ferry("run", there, config=written("there"))
    assert again.code == 0, again.out + again.err
    after = written(
        "back", **only_back, **{f"{back}.ferry.start": f"{topic}:0:{RECORDS}", f"{back}.ferry.lane": "home"}
    )
    send(producer(target_cluster), topic, [Message(value=b"of a client", partition=0)])
    assert ferry("run", back, config=after).code == 0
    rows = read_topic(source_cluster.bootstrap, topic)[0]
    assert (len(rows), watermark(target_cluster, topic, 0)) == (RECORDS + 1, RECORDS + 1)


def end_of(cluster: RunningCluster, topic: str) -> int:
    """Where a topic of one partition ends; 0 if it is not there yet."""
    try:
        return watermark(cluster, topic, 0)
    except Exception:
        return 0
