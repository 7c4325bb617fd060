"""Topics with other partitions, by plan and copy job: filtered, masked, in order per key, whatever is killed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.ledger.unit_codec import eras, unit_receipts
from ferry.model import Offsets, Plan
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send, settled, wait_until, whole_ledger
from tests.pure.decide.dealt_model import partition_of_record
from tests.pure.run.unit_flows import lab_of, messages
from tests.spark.jobs import Job, plan, submit
from tests.tiers import ANSWER_S, IN_PART

SQL = (
    "SELECT * EXCEPT (value), CAST(sha2(value, 256) AS BINARY) AS value FROM records "
    "WHERE key IS NULL OR CAST(key AS STRING) NOT LIKE '%3'"
)
SOURCES, FIRST, LATER, RECORDS, KEYS = 200, 12, 16, 4_000, 601


def test_200_partitions_to_12_and_then_to_16_whatever_is_killed(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    give(source_cluster, topic, RECORDS)
    settings = {"ferry.chunk.bytes": "10000"}
    plain = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    lab = lab_of(plain, topic, FIRST, **{"ferry.transform.small.sql": SQL})

    # Workers killed: Spark has the task done again. Then all of the job is.
    first = plan(lab, "r-1")
    assert len(first.dealt) == FIRST
    assert not first.kept
    job = submit(lab, "r-1", tmp_path)
    written(lab, first, 1, job)
    for worker in job.workers():
        worker.kill()
    written(lab, first, 3, job)
    kill(job)
    with lab.runs() as runs:
        assert runs.unfinished_slices(first)

    # Another rule in the file: what was begun is finished by the old one.
    changed = lab_of(plain, topic, LATER, **{"ferry.transform.small.where": "value IS NOT NULL"})
    second = plan(changed, "r-2")
    assert {unit.since for unit in second.dealt} == {first.generation}
    job = submit(changed, "r-2", tmp_path)
    assert job.wait(240) == 0, job.text()
    assert_units_done(changed, second)

    # Then the new one counts, also for a run that is killed and repeated (where tables run in part, just for a run).
    give(source_cluster, topic, RECORDS // 2, start=RECORDS)
    third = plan(changed, "r-3")
    assert {unit.since for unit in third.dealt} == {third.generation}
    assert len(third.dealt) == LATER
    if not IN_PART:
        job = submit(changed, "r-3", tmp_path)
        written(changed, third, 2, job)
        kill(job)
    again = submit(changed, "r-3", tmp_path)
    assert again.wait(240) == 0, again.text()
    assert f"{LATER} units in 2 tasks" in again.text()
    assert_units_done(changed, third)

    with changed.runs() as runs:
        era = eras(settled(runs), runs.lane)[lab.target_topic(topic)]
        assert not plan(changed, "r-4").dealt
    assert 0 < assert_written(lab, topic, era.begins) < RECORDS + RECORDS // 2


def give(cluster: RunningCluster, topic: str, number: int, start: int = 0) -> None:
    """Keys in all source partitions, several in each; those of a key are in one."""
    given = []
    for at, one in enumerate(messages(number, start=start), start):
        of = at % KEYS
        key = None if one.key is None else f"k{of}".encode()
        given.append(replace(one, key=key, partition=of * 7 % SOURCES))
    send(producer(cluster), topic, given)


def written(lab: Lab, of: Plan, least: int, job: Job) -> None:
    """Wait until so many receipts of a run are in the ledger, while its job is at work."""
    with lab.runs() as runs:

        def enough() -> bool:
            assert job.process.poll() is None, job.text()
            return len(unit_receipts(whole_ledger(runs), runs.lane, of.run, of.generation)) >= least

        wait_until(enough, "the receipts that the job is to write", 240)


def kill(job: Job) -> None:
    """As when the machine goes: nothing of the job ends what it has open."""
    for process in reversed(job.tree()):
        process.kill()
    job.process.wait(ANSWER_S)


def assert_units_done(lab: Lab, of: Plan) -> None:
    with lab.runs() as runs:
        receipts = unit_receipts(settled(runs), runs.lane, of.run, of.generation)
        assert not runs.unfinished_slices(of)
        assert runs.report(of.run).records == sum(one.records for one in receipts)
    for unit in of.dealt:
        assert [one for one in receipts if one.target == unit.target][-1].ends == unit.ends


def masked(key: bytes | None, value: bytes | None) -> tuple[bool, bytes | None]:
    kept = key is None or not key.endswith(b"3")
    return kept, None if value is None else hashlib.sha256(value).hexdigest().encode()


def unchanged(key: bytes | None, value: bytes | None) -> tuple[bool, bytes | None]:
    return value is not None, value


def assert_written(lab: Lab, topic: str, begins: Offsets) -> int:
    """Each record once, by the rule of its era, in order per key; how many there are."""
    wanted: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    given = read_topic(lab.source.bootstrap, topic)
    assert [len(given), min(map(len, given.values())) > 0] == [SOURCES, True]
    for partition, rows in sorted(given.items()):
        for offset, key, value, headers, time in rows:
            is_old = offset < begins[partition]
            rule: Callable[..., tuple[bool, bytes | None]] = masked if is_old else unchanged
            kept, changed = rule(key, value)
            if kept:
                number = partition_of_record(key, partition, offset, FIRST if is_old else LATER)
                wanted[number].append((key, changed, headers, time))
    found = read_topic(lab.target.bootstrap, lab.target_topic(topic))
    assert set(found) == set(range(LATER))
    for number, rows in found.items():
        got = [row[1:] for row in rows]
        assert sorted(map(repr, got)) == sorted(map(repr, wanted[number])), number
        for key in {row[0] for row in got if row[0] is not None}:
            assert [row for row in got if row[0] == key] == [row for row in wanted[number] if row[0] == key]
    return sum(map(len, found.values()))
