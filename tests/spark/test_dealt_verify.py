"""The comparison of topics with other partitions: the transform is applied and dealt again, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ferry.dev import RunningCluster
from ferry.features.verify.acts.own_run import verify_run
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.spark.verifying import compare_transformed
from ferry.model import DifferenceKind, NotComparedKind, Plan, VerifyMode
from tests.harness import Lab, Message, create_topic, new_alias, producer, send, watermark
from tests.program import ferry
from tests.pure.run.unit_flows import LATELY, SOURCES, TARGETS, Units, lab_of, messages, record_batches
from tests.tiers import IN_PART

MISSING, ALTERED, MOVED, EXTRA = 30, 45, 60, 76
"""Offsets of partition 0; by `offset % 3 != 1` the first three are kept, and the last is not."""
Kind = DifferenceKind


@dataclass
class Lying(Units):
    """What stands for Spark leaves a record out, alters one, deals one elsewhere, and lets one through."""

    def rows(self, plan: Plan, slot: int, batch_rows: int = 150) -> Iterator[pa.RecordBatch]:
        truth = {
            (row["partition"], row["offset"]): row
            for batch in super().rows(plan, slot, batch_rows)
            for row in batch.to_pylist()
        }
        assert truth[0, MISSING]
        del truth[0, MISSING]
        truth[0, ALTERED]["value"] = b"altered"
        truth[0, EXTRA] = {**truth[0, EXTRA - 1], "offset": EXTRA, "key": b"x", "value": b"y", "timestamp": LATELY}
        truth[0, MOVED]["target_partition"] = (truth[0, MOVED]["target_partition"] + 1) % TARGETS
        yield from record_batches(sorted((tuple(row.values()) for row in truth.values()), key=lambda row: row[:4]))


def test_a_dealt_copy_is_held_against_what_its_transform_makes_of_the_source_now(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(600))
    settings = {"ferry.chunk.bytes": "10000", "tasks.max": "1"}
    plain = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    lab = lab_of(plain, topic, TARGETS, **{"ferry.transform.small.where": "offset % 3 != 1"})

    def kept(_: int, offset: int, __: bytes | None) -> bool:
        return offset % 3 != 1

    Lying(lab, topic, kept).run()
    units = Units(lab, topic, kept)
    honest = []
    for start in (600, 700):
        send(producer(source_cluster), topic, messages(100, start=start))
        honest.append(units.run())
    send(producer(target_cluster), units.target, [Message(key=b"s", value=b"s", partition=1, timestamp=LATELY)])

    told = ferry("verify", "--spark", "--json", config=lab.write(tmp_path))
    assert told.code == 1, told.err
    body = told.json("verify")
    assert (body["equal"], body["complete"], body["partitions"]) == (False, True, TARGETS)
    stranger = watermark(target_cluster, units.target, 1) - 1
    found = {(one["kind"], *one["source_range"]) for one in body["differences"] if one["target_range"][0] != stranger}
    ((extra, at, _),) = found - {
        (Kind.MISSING, MISSING, MISSING + 1),
        (Kind.MOVED, MOVED, MOVED + 1),
        (Kind.VALUE, ALTERED, ALTERED + 1),
    }
    assert (extra, at > EXTRA, len(body["differences"])) == (Kind.EXTRA, True, 5), body["differences"]
    assert body["records"] == units_kept(800)

    # What its receipts say needs no Spark.
    by_receipt = verify_run(replace(lab, settings={**lab.settings, "ferry.verify": "receipt"}).flow, honest[-1].run)
    assert by_receipt is not None
    assert (by_receipt.mode, by_receipt.equal) == (VerifyMode.RECEIPT, True)
    assert 0 < by_receipt.records < 100

    if not IN_PART:
        told = ferry("verify", "--spark", "--run", honest[-1].run, "--json", config=lab.write(tmp_path))
        assert told.code == 0, told.err
        body = told.json("verify")
        assert (body["equal"], body["not_compared"], body["records"]) == (True, [], by_receipt.records)

    # Another rule in the file, and no Spark: both are said before any is started.
    other = replace(lab, settings={**lab.settings, "ferry.transform.small.where": "offset % 3 != 2"})
    with Verifier(other.flow, Wanted()) as verifier:
        survey = verifier.survey()
        compared = compare_transformed(None, other.flow, verifier.spec, survey, asked=True)  # type: ignore[arg-type]
        (left,) = verifier.sum_up(survey, compared).not_compared
        assert (left.why, left.asked) == (NotComparedKind.TRANSFORM_CHANGED, True)
        assert "ferry.transform.small" in left.message
        (left,) = verifier.sum_up(survey, verifier.compare(survey)).not_compared
        assert left.why is NotComparedKind.NEEDS_SPARK
    with Verifier(lab.flow, Wanted(topics=[topic], partition=0)) as verifier:
        (left,) = verifier.survey().not_compared
        assert left.why is NotComparedKind.DEALT


def units_kept(count: int) -> int:
    """How many of the messages a transform keeps."""
    offsets: dict[int, int] = {}
    kept = 0
    for one in messages(count):
        at = offsets.get(one.partition, 0)
        offsets[one.partition] = at + 1
        kept += at % 3 != 1
    return kept
