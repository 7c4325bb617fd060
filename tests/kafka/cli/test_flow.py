"""The commands on real clusters."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.run.micro_run import local_origin
from tests.harness import Lab, Message, create_topic, new_alias, numbered, producer, read_topic, send, wait_until
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.quotas import held
from tests.tiers import ANSWER_S, PATIENCE


class Begin(Protocol):
    """`start`, with an end."""

    def __call__(self, *arguments: str | Path, config: Path) -> subprocess.Popen[str]: ...


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow over topics that begin with this test's name."""
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(f"{topic}.*",))


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> Path:
    """The flow's file."""
    return lab.write(tmp_path)


def fill(lab: Lab, topic: str, count: int, *, partitions: int = 1, start: int = 0) -> None:
    """So many records, spread over the partitions."""
    send(producer(lab.source), topic, numbered(count, partitions=partitions, start=start))


def topics_of(cluster: RunningCluster) -> set[str]:
    """All topics of a cluster."""
    return set(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics)


def end_of(cluster: RunningCluster, topic: str) -> int:
    """The high watermark of partition 0."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    try:
        high: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ANSWER_S)[1]
        return high
    finally:
        consumer.close()


def test_a_run_copies_and_tells_what_it_did(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic, 3)
    fill(lab, topic, 900, partitions=3)
    flow = f"{lab.alias}->t{lab.alias}"
    answer = ferry("run", flow, "--id", "r1", "--json", config=config)
    assert answer.code == 0, answer.err
    body = answer.json("run")
    assert (body["run"], body["flow"], body["state"]) == ("r1", flow, "success")
    assert (body["slices"], body["records"], body["refusals"]) == (3, 900, [])
    assert [(row["topic"], row["partition"], row["target_topic"]) for row in body["receipts"]] == [
        (topic, number, f"{lab.alias}.{topic}") for number in range(3)
    ]
    assert all(row["segments"] == [[0, 0, 300]] and (row["start"], row["end"]) == (0, 300) for row in body["receipts"])
    assert sum(row["bytes"] for row in body["receipts"]) == body["bytes"] > 0
    assert lab.assert_equal() == 900
    assert {f"{lab.alias}.checkpoints.internal", "heartbeats"} <= topics_of(lab.target)

    fill(lab, topic, 300, partitions=3, start=900)
    spoken = ferry("run", config=config)
    assert spoken.code == 0
    assert f"{flow}: success; 3 slices, 300 records" in spoken.out
    assert "3 of 3 slices" in spoken.err
    quiet = ferry("run", "--quiet", config=config)
    assert (quiet.code, quiet.err) == (0, "")
    assert "success; 0 slices, 0 records" in quiet.out
    assert lab.assert_equal() == 1_200


def test_a_run_id_is_used_once(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic)
    fill(lab, topic, 10)
    first = ferry("run", "--id", "r1", config=config)
    assert first.code == 0
    assert f"created topic {lab.alias}.{topic} with 1 partition" in first.out
    again = ferry("run", "--id", "r1", config=config)
    assert again.code == 2
    assert "run r1 exists already" in again.err
    resumed = ferry("run", "--resume", "r1", "--json", config=config)
    assert resumed.code == 0
    assert resumed.json("run")["records"] == 10
    unknown = ferry("run", "--resume", "r7", config=config)
    assert unknown.code == 2
    assert "run r7 (lane live)" in unknown.err
    assert ferry("run", "--id", "r2", config=config).code == 0
    assert ferry("run", "--resume", "r1", config=config).code == 0, "superseded, but all of it is in the ledger"
    assert lab.assert_equal() == 10


def test_a_superseded_run_says_by_which_one_and_what_to_do(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic)
    fill(lab, topic, 10)
    with lab.runs() as runs:
        for run in ("older", "newer"):
            runs.open_run(run, local_origin())
    refused = ferry("run", "--resume", "older", config=config)
    assert refused.code == 2
    for fact in ("run older of ", " superseded by newer, ", " 1 slice: ", " resume newer, "):
        assert fact in refused.err
    assert ferry("run", "--resume", "newer", config=config).code == 0
    done = ferry("run", "--resume", "older", config=config)
    assert done.code == 0
    assert " superseded by newer, " in done.err
    assert lab.assert_equal() == 10


def test_budgets_and_topics_narrow_a_run(lab: Lab, config: Path, topic: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        create_topic(lab.source, name)
        fill(lab, name, 100)
    plan = ferry("plan", "--topic", f"{topic}-a", "--max-records", "50", "--json", config=config).json("plan")
    assert [(piece["topic"], piece["start"], piece["end"]) for piece in plan["slices"]] == [(f"{topic}-a", 0, 50)]
    body = ferry("run", "--topic", f"{topic}-a", "--max-records", "50", "--json", config=config).json("run")
    assert (body["state"], body["records"]) == ("success", 50)
    body = ferry("run", "--max-bytes", "1", "--json", config=config).json("run")
    assert body["records"] == 1
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == 200


@pytest.mark.parametrize("command", [["plan"], ["run", "--dry-run"]], ids=["plan", "dry run"])
def test_a_dry_run_writes_nothing(lab: Lab, config: Path, topic: str, command: Sequence[str]) -> None:
    create_topic(lab.source, topic, 2)
    fill(lab, topic, 100, partitions=2)
    before = topics_of(lab.target)
    answer = ferry(*command, "--json", config=config)
    assert answer.code == 0, answer.err
    plan = answer.json("plan")
    assert [(piece["partition"], piece["start"], piece["end"]) for piece in plan["slices"]] == [(0, 0, 50), (1, 0, 50)]
    assert [(change["kind"], change["topic"]) for change in plan["changes"]] == [("create", f"{lab.alias}.{topic}")]
    spoken = ferry(*command, config=config)
    assert f"would create topic {lab.alias}.{topic} with 2 partitions" in spoken.out
    assert "2 slices, 100 offsets" in spoken.out
    assert topics_of(lab.target) == before
    assert f"ferry-ledger.{lab.alias}.internal" not in before


def test_lag_before_and_after(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic, 3)
    began = time.time()
    hour_ago = int(began * 1000) - 3_600_000
    send(producer(lab.source), topic, [Message(value=b"x" * 100, timestamp=hour_ago) for _ in range(10)])
    send(producer(lab.source), topic, [Message(value=b"x" * 100, partition=1) for _ in range(5)])
    answer = ferry("lag", "--json", config=config)
    took = time.time() - began
    assert answer.code == 0, answer.err
    old, new, empty = answer.json("lag")["partitions"]
    assert (old["topic"], old["partition"], old["target_topic"]) == (topic, 0, f"{lab.alias}.{topic}")
    assert [(row["position"], row["source_end"], row["lag_records"]) for row in (old, new, empty)] == [
        (0, 10, 10),
        (0, 5, 5),
        (0, 0, 0),
    ]
    assert 3_600 <= old["lag_seconds"] <= 3_600 + took + 1, "a timestamp is whole milliseconds, and the answer rounded"
    assert 0 <= new["lag_seconds"] <= took + 1
    assert (empty["lag_seconds"], empty["lag_bytes"]) == (0, 0)
    assert old["lag_bytes"] > 0
    assert {row["lag_bytes_from"] for row in (old, new, empty)} == {"log-size"}
    total = answer.json("lag")["total"]
    assert (total["partitions"], total["behind"], total["unknown"], total["seconds"]) == (3, 2, 0, old["lag_seconds"])
    assert (total["records"], total["bytes"]) == tuple(old[key] + new[key] for key in ("lag_records", "lag_bytes"))
    assert ferry("lag", "--rpo-seconds", "4000", "--rpo-records", "10", config=config).code == 0
    assert ferry("lag", "--rpo-seconds", "3000", config=config).code == 1
    assert ferry("lag", "--rpo-records", "9", "--json", config=config).code == 1

    assert ferry("run", config=config).code == 0
    rows = ferry("lag", "--rpo-seconds", "0", "--rpo-records", "0", "--json", config=config)
    assert rows.code == 0
    assert [(row["position"], row["lag_records"], row["lag_seconds"]) for row in rows.json("lag")["partitions"]] == [
        (10, 0, 0),
        (5, 0, 0),
        (0, 0, 0),
    ]
    send(producer(lab.source), topic, [Message(value=b"y", partition=2)])
    assert ferry("lag", "--rpo-records", "0", config=config).code == 1
    assert topic in ferry("lag", config=config).out


def test_the_ledger_answers_by_run_topic_and_offset(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic, 2)
    nothing = ferry("ledger", config=config)
    assert nothing.code == 2
    assert "run the flow once" in nothing.err
    # A transaction's marker takes offset 20 of partition 0: a gap.
    client = producer(lab.source, transactional_id=f"gap-{secrets.token_hex(4)}")
    client.init_transactions()
    client.begin_transaction()
    send(client, topic, numbered(20))
    client.commit_transaction()
    # A commit is acknowledged before its marker is written.
    wait_until(lambda: end_of(lab.source, topic) == 21, "the marker of the transaction")
    fill(lab, topic, 10)
    assert ferry("run", "--id", "r1", config=config).code == 0
    fill(lab, topic, 10, partitions=2)
    assert ferry("run", "--id", "r2", config=config).code == 0

    rows = ferry("ledger", "--json", config=config).json("ledger")["receipts"]
    assert {row["run"] for row in rows} == {"r1", "r2"}
    assert len(ferry("ledger", "--last", "1", "--json", config=config).json("ledger")["receipts"]) == 1
    only = ferry("ledger", "--run", "r2", "--topic", topic, "--partition", "1", "--json", config=config)
    (row,) = only.json("ledger")["receipts"]
    assert (row["run"], row["partition"], row["start"], row["end"]) == ("r2", 1, 0, 5)
    assert row["origin"]["host"]

    def held(offset: int) -> tuple[int, list[tuple[str, list[int] | None, int | None]]]:
        answer = ferry("ledger", "--topic", topic, "--partition", "0", "--offset", str(offset), "--json", config=config)
        found = answer.json("ledger-offset")["receipts"]
        return answer.code, [(row["run"], row["segment"], row["target_offset"]) for row in found]

    assert held(7) == (0, [("r1", [0, 0, 20], 7)])
    assert held(20) == (0, [("r1", None, None)])
    assert held(25) == (0, [("r1", [21, 20, 10], 24)])
    assert held(99) == (1, [])
    copied = read_topic(lab.target.bootstrap, lab.target_topic(topic))[0]
    assert copied[24][0] == 24
    spoken = ferry("ledger", "--topic", topic, "--partition", "0", "--offset", "25", config=config)
    assert f"it is offset 24 of {lab.alias}.{topic}-0" in spoken.out

    def translated(name: str, offset: int, *options: str) -> tuple[int, str, int, int]:
        flow = f"{lab.alias}->t{lab.alias}"
        answer = ferry("translate", flow, name, "0", str(offset), *options, "--json", config=config)
        found = answer.json("translate")
        return answer.code, found["outcome"], found["source_offset"], found["target_offset"]

    copy = lab.target_topic(topic)
    assert translated(topic, 25) == (0, "exact", 25, 24)
    assert translated(topic, 20) == (0, "gap", 20, 20)
    # All is copied, and behind it there is nothing but the commit marker: lag 0.
    assert translated(topic, 36) == (0, "exact", 36, end_of(lab.target, copy))
    assert translated(topic, 37) == (1, "ahead", 37, end_of(lab.target, copy))
    assert translated(copy, 24, "--reverse") == (0, "exact", 25, 24)
    assert translated(copy, end_of(lab.target, copy), "--reverse") == (0, "exact", 36, end_of(lab.target, copy))
    mistaken = ferry("translate", f"{lab.alias}->t{lab.alias}", copy, "0", "24", config=config)
    assert mistaken.code == 2
    assert f" {topic}-0, or add --reverse" in mistaken.err

    runs = ferry("ledger", "--runs", "--json", config=config).json("ledger-runs")["runs"]
    assert [(run["run"], run["state"], run["records"]) for run in runs] == [
        ("r1", "success", 30),
        ("r2", "success", 10),
    ]
    assert "r2" in ferry("ledger", "--runs", config=config).out
    assert ferry("ledger", config=config).code == 0


def test_paused_topics_and_flows_are_not_planned(lab: Lab, config: Path, topic: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        create_topic(lab.source, name)
        fill(lab, name, 10)
    # Before the first run: there is no ledger yet.
    assert ferry("resume", "--json", config=config).json("resume")["was_paused"] is False
    paused = ferry(
        "pause", "--topic", f"{topic}-a", "--reason", "bad data", "--until", "2999-01-01T00:00:00+01:00", "--json",
        config=config,
    )  # fmt: skip
    assert paused.code == 0, paused.err
    body = paused.json("pause")
    assert (body["topic"], body["why"], body["until_ms"]) == (f"{topic}-a", "bad data", 32_472_140_400_000)
    assert "@" in body["who"]
    assert ferry("plan", "--json", config=config).json("plan")["paused"] == [f"{topic}-a"]
    run = ferry("run", config=config)
    assert run.code == 0
    assert f"paused: {topic}-a" in run.out
    assert "1 slice, 10 records" in run.out
    listed = ferry("ledger", "--pauses", "--json", config=config).json("ledger-pauses")["pauses"]
    assert [(row["topic"], row["why"]) for row in listed] == [(f"{topic}-a", "bad data")]
    assert f"topic {topic}-a is paused since" in ferry("ledger", "--pauses", config=config).out
    lags = ferry("lag", "--json", config=config).json("lag")["partitions"]
    assert [row["lag_records"] for row in lags] == [10, 0]

    assert "would be paused" in ferry("pause", "--reason", "migration", "--dry-run", config=config).out
    assert ferry("resume", "--dry-run", "--json", config=config).json("resume")["was_paused"] is False
    assert ferry("pause", "--reason", "migration", config=config).code == 0
    assert "would be resumed" in ferry("resume", "--dry-run", config=config).out
    fill(lab, f"{topic}-b", 5, start=10)
    assert ferry("plan", "--json", config=config).json("plan")["slices"] == []
    assert "paused by" in ferry("resume", config=config).out
    assert "was not paused" in ferry("resume", config=config).out
    assert ferry("resume", "--topic", f"{topic}-a", "--json", config=config).json("resume")["was_paused"] is True
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == 25


def test_a_pause_ends_by_itself(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic)
    fill(lab, topic, 10)

    def paused() -> bool:
        """Ferry refuses a moment that has passed, as it may have when a busy machine starts the command."""
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5))
        return ferry("pause", "--reason", "soon over", "--until", until, config=config).code == 0

    wait_until(paused, "a pause whose end is to come")
    wait_until(lambda: ferry("plan", "--json", config=config).json("plan")["paused"] == [], "the end of the pause")
    assert ferry("run", "--json", config=config).json("run")["records"] == 10


def test_one_refused_topic_leaves_the_others_alone(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, f"{topic}-good")
    create_topic(lab.source, f"{topic}-odd", 2)
    create_topic(lab.target, f"{lab.alias}.{topic}-odd", 5)
    fill(lab, f"{topic}-good", 10)
    fill(lab, f"{topic}-odd", 10)
    plan = ferry("plan", config=config)
    assert plan.code == 1
    assert "[partition-count]" in plan.out
    answer = ferry("run", "--json", config=config)
    assert answer.code == 1
    body = answer.json("run")
    assert (body["state"], body["records"]) == ("partial", 10)
    assert [(row["topic"], row["partition"], row["kind"]) for row in body["refusals"]] == [
        (f"{topic}-odd", None, "partition-count")
    ]
    assert lab.assert_equal() == 10
    runs = ferry("ledger", "--runs", "--json", config=config).json("ledger-runs")["runs"]
    assert [run["state"] for run in runs] == ["partial"]


def test_both_ends_the_same_cluster_is_refused_before_the_start(lab: Lab, config: Path) -> None:
    config.write_text(config.read_text().replace(lab.target.bootstrap, lab.source.bootstrap))
    answer = ferry("run", "--json", config=config)
    assert answer.code == 2
    assert answer.json("error")["error"]["kind"] == "refused"
    assert "are the same cluster" in answer.err
    place = r"\S+:\d+: \S+\.bootstrap\.servers"
    assert re.search(rf" bootstrap servers \({place}, {place}\)$", answer.err.strip())


class Slow(NamedTuple):
    """A flow of two tasks whose copy is held; `go_on` lets it continue."""

    lab: Lab
    config: Path
    go_on: Callable[[], None]


SLOW = 3_000
"""Records of 10 kB: over a minute and a half for all of them at the rate of `slow`."""


@pytest.fixture
def slow(lab: Lab, topic: str, tmp_path: Path) -> Iterator[Slow]:
    """What happens to a run of it meets it while it copies, in small chunks."""
    create_topic(lab.source, topic, 2)
    payload = os.urandom(10_000)
    send(
        producer(lab.source, batch_size=100_000),
        topic,
        (Message(value=b"%d:" % number + payload, partition=number % 2) for number in range(SLOW)),
    )
    busy = Lab(
        source=lab.source,
        target=lab.target,
        alias=lab.alias,
        topics=lab.topics,
        # Two tasks share the rate: a big answer to one would let the other one wait.
        settings={"ferry.chunk.bytes": "100000", f"{lab.alias}.consumer.fetch.max.bytes": "100000"},
    )
    with held(busy, 300_000) as go_on:
        yield Slow(busy, busy.write(tmp_path), go_on)


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins commands; none of them outlives the test."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: str | Path, config: Path) -> subprocess.Popen[str]:
        begun.append(start(*arguments, config=config))
        return begun[-1]

    yield begin
    for process in begun:
        with process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The workers of a run: its children but multiprocessing's own helper."""
    found = psutil.Process(process.pid).children(recursive=True)
    return [child for child in found if "spawn_main" in " ".join(child.cmdline())]


def wait_until_copying(process: subprocess.Popen[str], lab: Lab, topic: str) -> None:
    """Until both partitions have something committed on the target."""
    name = lab.target_topic(topic)

    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        return name in topics_of(lab.target) and len({row.source.partition for row in lab.receipts()}) == 2

    wait_until(begun, "receipts of both partitions")


@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGTERM, False), (signal.SIGINT, True)], ids=["SIGTERM", "Ctrl-C"]
)
def test_a_signal_ends_a_run_long_before_all_is_copied(
    slow: Slow, begin: Begin, topic: str, number: signal.Signals, whole_group: bool
) -> None:
    lab, config, go_on = slow
    process = begin("run", "--id", "r1", "--json", config=config)
    wait_until_copying(process, lab, topic)
    workers = children(process)
    assert len(workers) == 2
    if whole_group:  # as a terminal does on Ctrl-C
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    answer = finished(process)
    assert answer.code == 1, answer.err
    assert number.name in answer.err
    assert not [worker for worker in workers if worker.is_running()]
    body = answer.json("run")
    assert body["state"] == "partial"
    assert {row["kind"] for row in body["refusals"]} == {"unfinished"}
    assert 0 < body["records"] < SLOW
    assert lab.assert_equal() == body["records"]

    go_on()
    resumed = ferry("run", "--resume", "r1", "--json", "--quiet", config=config)
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.json("run")["records"] == SLOW
    assert lab.assert_equal() == SLOW


def test_a_run_that_is_superseded_while_it_copies_names_the_newer_one(slow: Slow, begin: Begin, topic: str) -> None:
    lab, config, go_on = slow
    process = begin("run", "--id", "older", "--json", config=config)
    wait_until_copying(process, lab, topic)
    with lab.runs() as runs:
        runs.open_run("newer", local_origin())
    go_on()
    answer = finished(process)
    assert answer.code == 1, answer.err
    body = answer.json("run")
    assert (body["state"], body["superseded_by"]) == ("partial", "newer")
    assert {row["kind"] for row in body["refusals"]} == {"unfinished"}
    told = [*body["notes"], *(row["message"] for row in body["refusals"])]
    assert all("newer" in sentence and "--resume older" not in sentence for sentence in told), told
    assert body["notes"]
    looked_up = ferry("ledger", "--run", "older", "--json", config=config).json("ledger")["run"]
    assert looked_up["report"]["superseded_by"] == "newer"
    assert ", superseded by run newer;" in ferry("ledger", "--run", "older", config=config).out

    assert ferry("run", "--resume", "newer", config=config).code == 0
    assert lab.assert_equal() == SLOW
    after = ferry("ledger", "--run", "older", "--json", config=config).json("ledger")["run"]
    assert after["report"]["superseded_by"] is None, "all that it planned is copied"


def test_workers_end_with_a_killed_run_and_the_next_one_completes(slow: Slow, begin: Begin, topic: str) -> None:
    lab, config, go_on = slow
    process = begin("run", "--id", "r1", config=config)
    wait_until_copying(process, lab, topic)
    workers = children(process)
    process.kill()
    finished(process)
    _, alive = psutil.wait_procs(workers, timeout=ANSWER_S)
    assert not alive
    go_on()
    runs = ferry("ledger", "--runs", "--json", config=config).json("ledger-runs")["runs"]
    assert [(run["run"], run["state"]) for run in runs] == [("r1", "open")]
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == SLOW
    superseded = ferry("run", "--resume", "r1", "--json", config=config)
    assert superseded.code == 0, superseded.err
    assert superseded.json("run")["state"] == "partial", "the next run copied the rest"


def test_a_killed_worker_fails_its_own_slot_only(slow: Slow, begin: Begin, topic: str) -> None:
    lab, config, go_on = slow
    process = begin("run", "--json", config=config)
    wait_until_copying(process, lab, topic)
    children(process)[0].kill()
    go_on()
    answer = finished(process, seconds=120)
    assert answer.code == 1, answer.err
    body = answer.json("run")
    assert body["state"] == "partial"
    (refusal,) = body["refusals"]
    assert refusal["kind"] == "slot-failed"
    assert "was killed by SIGKILL" in refusal["message"]
    ends = {row["partition"]: row["end"] for row in body["receipts"]}
    assert ends[1 - refusal["partition"]] == SLOW // 2
    assert ends[refusal["partition"]] < SLOW // 2
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == SLOW


def test_a_target_that_dies_after_something_was_copied_leaves_a_report(slow: Slow, begin: Begin, topic: str) -> None:
    lab, config, go_on = slow
    process = begin("run", "--id", "r1", "--patience", f"{2 * PATIENCE:g}", "--json", config=config)
    wait_until_copying(process, lab, topic)
    lab.target.brokers[0].kill()
    go_on()
    answer = finished(process)
    assert answer.code == 1, answer.err
    assert "without the ledger" in answer.err.splitlines()[-1]
    body = answer.json("run")
    assert body["state"] == "partial"
    assert {row["kind"] for row in body["refusals"]} == {"slot-failed"}
    lab.target.start()
    receipts = ferry("ledger", "--run", "r1", "--json", config=config).json("ledger")["receipts"]
    known = {(row["partition"], row["start"], row["end"]) for row in body["receipts"]}
    assert known <= {(row["partition"], row["start"], row["end"]) for row in receipts}, "what was told is true"


def test_lag_finds_the_age_of_many_partitions_whatever_their_batches(lab: Lab, config: Path, topic: str) -> None:
    create_topic(lab.source, topic, 6, {"max.message.bytes": "4000000"})
    sizes = (10, 10, 10_000, 100_000, 900_000, 2_500_000)
    began = time.time()
    moment = int(began * 1000) - 60_000
    client = producer(lab.source, message_max_bytes=4_000_000)
    messages = [Message(value=b"x" * size, partition=at, timestamp=moment) for at, size in enumerate(sizes)]
    send(client, topic, messages)
    rows = ferry("lag", "--json", config=config).json("lag")["partitions"]
    assert all(60 <= row["lag_seconds"] <= 61 + time.time() - began for row in rows), rows
