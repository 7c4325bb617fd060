"""What is copied, by whom, and what is compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from clusters import ROUND_TRIP_MS, Field
from contenders import bare_pump, delete_topic, empty_command, empty_run, ferry, spark_job
from data import Shape, write
from equality import fingerprint
from mirror_maker import mirror
from usage import Usage

Pair = dict[str, Usage]
"""One paired run: by measure, what it took."""

MM2_COPY, MM2_WHOLE = "MirrorMaker 2, copying", "MirrorMaker 2, from its start"
ONE_COPY, ONE_WHOLE = "Ferry, 1 task, copying", "Ferry, 1 task, plan included"
TWO_COPY, TWO_WHOLE = "Ferry, 2 tasks, copying", "Ferry, 2 tasks, plan included"
BARE = "bare pump"
LOCAL_ONE, LOCAL_TWO = "Ferry, 1 task, source near", "Ferry, 2 tasks, source near"
EMPTY, EMPTY_COMMAND = "Ferry, a process that plans and reports", "`ferry run`"
SPARK, SPARK_WHOLE = "Ferry, spark-submit job, 2 tasks", "Ferry, spark-submit job, plan included"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A figure to be reached: `what` of one measure over that of another."""

    name: str
    above: str
    below: str
    what: str  # wall or cpu
    aim: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A figure to be reached, in seconds or MB."""

    name: str
    measure: str
    what: str  # wall, cpu or peak_mb
    aim: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One table of the report."""

    name: str
    title: str
    shape: Shape
    run: Callable[[Field, Shape, str], Pair]
    aims: tuple[Ratio | Limit, ...]


def say(text: str) -> None:
    """Tell whoever waits."""
    sys.stderr.write(text + "\n")


class Bout:
    """One pair of one scenario: every contender copies the same topic, one after the other, into a topic of its own."""

    def __init__(self, field: Field, shape: Shape, label: str) -> None:
        self._field, self._shape, self._label = field, shape, label
        self._folder = field.folder / "contenders"
        self._target = field.target.bootstrap
        self._expected = fingerprint(field.source, shape.topic)

    def mirror_maker(self, source: str) -> Pair:
        """MirrorMaker 2; its batches are its own, so that only the records are counted."""
        alias = f"mm-{self._label}"
        shape = self._shape
        mirrored = mirror(
            self._folder / alias,
            alias,
            source,
            self._target,
            topic=shape.topic,
            partitions=shape.partitions,
            records=shape.records,
            tasks=min(4, shape.partitions),
        )
        copied = sum(records for _, _, records in fingerprint(self._field.target, f"{alias}.{shape.topic}").values())
        assert copied == shape.records, f"MirrorMaker 2 copied {copied} of {shape.records} records"
        delete_topic(self._target, f"{alias}.{shape.topic}")
        copying = mirrored.arrival.copying
        pair = {
            MM2_COPY: Usage(wall=copying.wall, cpu=copying.cpu, peak_mb=mirrored.peak_mb),
            MM2_WHOLE: mirrored.whole,
        }
        self._tell(MM2_COPY, pair[MM2_COPY])
        return pair

    def ferry(self, source: str, tasks: int, copy_name: str, whole_name: str | None = None) -> Pair:
        """Ferry's engine; the copy must equal the source batch by batch."""
        alias = f"f{tasks}{'far' if source == self._field.far_source else ''}-{self._label}"
        copied = ferry(self._folder, alias, source, self._target, topic=self._shape.topic, tasks=tasks)
        found = fingerprint(self._field.target, f"{alias}.{self._shape.topic}")
        assert found == self._expected, f"Ferry's copy of {self._shape.topic} differs from its source"
        delete_topic(self._target, f"{alias}.{self._shape.topic}")
        self._tell(copy_name, copied.copying)
        return {copy_name: copied.copying} | ({whole_name: copied.whole} if whole_name else {})

    def spark(self, source: str) -> Pair:
        """The whole job by spark-submit, two tasks in one local Spark."""
        alias = f"s-{self._label}"
        planning, job = spark_job(self._folder, alias, source, self._target, topic=self._shape.topic, tasks=2)
        found = fingerprint(self._field.target, f"{alias}.{self._shape.topic}")
        assert found == self._expected, f"the Spark job's copy of {self._shape.topic} differs from its source"
        delete_topic(self._target, f"{alias}.{self._shape.topic}")
        self._tell(SPARK, job)
        whole = Usage(wall=planning.wall + job.wall, cpu=planning.cpu + job.cpu, peak_mb=job.peak_mb)
        return {SPARK: job, SPARK_WHOLE: whole}

    def bare_pump(self, source: str) -> Pair:
        """The bare pump; no producer id and no transaction, so only bytes and records are counted."""
        name = f"bare-{self._label}.{self._shape.topic}"
        usage = bare_pump(
            source, self._target, topic=self._shape.topic, target_topic=name, partitions=self._shape.partitions
        )
        found = fingerprint(self._field.target, name)
        assert [entry[1:] for entry in found.values()] == [entry[1:] for entry in self._expected.values()]
        delete_topic(self._target, name)
        self._tell(BARE, usage)
        return {BARE: usage}

    def _tell(self, name: str, usage: Usage) -> None:
        say(f"  {name}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s, {usage.peak_mb:.0f} MB")


def with_spark(field: Field, shape: Shape, label: str) -> Pair:
    """All contenders, the source near, and the whole Spark job."""
    return side_by_side(field, shape, label) | Bout(field, shape, label).spark(field.source.bootstrap)


def side_by_side(field: Field, shape: Shape, label: str) -> Pair:
    """All contenders, the source near."""
    bout, near = Bout(field, shape, label), field.source.bootstrap
    pair = bout.mirror_maker(near) | bout.ferry(near, 1, ONE_COPY, ONE_WHOLE)
    if shape.partitions > 1:
        pair |= bout.ferry(near, 2, TWO_COPY, TWO_WHOLE)
    return pair | bout.bare_pump(near)


def far_away(field: Field, shape: Shape, label: str) -> Pair:
    """MirrorMaker 2 and Ferry with the source far away, and Ferry with the same source near."""
    bout, near, far = Bout(field, shape, label), field.source.bootstrap, field.far_source
    return (
        bout.mirror_maker(far)
        | bout.ferry(far, 1, ONE_COPY)
        | bout.ferry(near, 1, LOCAL_ONE)
        | bout.ferry(far, 2, TWO_COPY)
        | bout.ferry(near, 2, LOCAL_TWO)
    )


def nothing_new(field: Field, shape: Shape, label: str) -> Pair:
    """A micro-run that finds nothing."""
    usage = empty_run(
        field.folder / "contenders",
        f"e-{label}",
        field.source.bootstrap,
        field.target.bootstrap,
        topic=shape.topic,
    )
    command = empty_command(
        field.folder / "contenders",
        f"c-{label}",
        field.source.bootstrap,
        field.target.bootstrap,
        topic=shape.topic,
    )
    say(f"  {EMPTY}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s; {EMPTY_COMMAND}: {command.wall:.2f} s")
    return {EMPTY: usage, EMPTY_COMMAND: command}


def scenarios(scale: float) -> tuple[Scenario, ...]:
    """All scenarios; `scale` makes them smaller or larger by their records."""
    million = max(1000, int(1_000_000 * scale))
    large = Shape(topic="large", partitions=4, records=million, size=1024)
    return (
        Scenario(
            name="large",
            title=f"{million:,} records of 1 KiB JSON, lz4, 4 partitions",
            shape=large,
            run=with_spark,
            aims=(
                Ratio(name="CPU against MirrorMaker 2, 1 task", above=ONE_COPY, below=MM2_COPY, what="cpu", aim=1 / 10),
                Ratio(
                    name="CPU against MirrorMaker 2, 2 tasks", above=TWO_COPY, below=MM2_COPY, what="cpu", aim=1 / 10
                ),
                Ratio(
                    name="time against MirrorMaker 2, 2 tasks", above=TWO_COPY, below=MM2_COPY, what="wall", aim=1 / 5
                ),
                Ratio(name="time against the bare pump, 1 task", above=ONE_COPY, below=BARE, what="wall", aim=1.25),
                Ratio(name="CPU against the bare pump, 1 task", above=ONE_COPY, below=BARE, what="cpu", aim=1.25),
                Limit(name="memory of a task, MB", measure=ONE_COPY, what="peak_mb", aim=300),
                Ratio(
                    name="time of the whole Spark job against MirrorMaker 2 from its start",
                    above=SPARK,
                    below=MM2_WHOLE,
                    what="wall",
                    aim=1 / 1.5,
                ),
                Ratio(
                    name="CPU of the whole Spark job against MirrorMaker 2 from its start",
                    above=SPARK,
                    below=MM2_WHOLE,
                    what="cpu",
                    aim=1 / 4,
                ),
                Limit(name="memory of a Spark worker, MB", measure=SPARK, what="peak_mb", aim=300),
            ),
        ),
        Scenario(
            name="small",
            title=f"{million:,} records of 200 bytes, lz4, in batches of 72 records, 4 partitions",
            shape=Shape(topic="small", partitions=4, records=million, size=200, batch_records=72),
            run=side_by_side,
            aims=(
                Ratio(name="CPU against MirrorMaker 2, 1 task", above=ONE_COPY, below=MM2_COPY, what="cpu", aim=1 / 10),
                Ratio(
                    name="time against MirrorMaker 2, 1 task", above=ONE_COPY, below=MM2_COPY, what="wall", aim=1 / 5
                ),
                Ratio(
                    name="time against MirrorMaker 2, 2 tasks", above=TWO_COPY, below=MM2_COPY, what="wall", aim=1 / 5
                ),
                Ratio(name="time against the bare pump, 1 task", above=ONE_COPY, below=BARE, what="wall", aim=1.25),
                Ratio(name="CPU against the bare pump, 1 task", above=ONE_COPY, below=BARE, what="cpu", aim=1.25),
            ),
        ),
        Scenario(
            name="many",
            title="1,000 partitions of one record",
            shape=Shape(topic="many", partitions=1000, records=1000, size=200, batch_records=1),
            run=side_by_side,
            aims=(
                Limit(name="time of the engine, s", measure=ONE_COPY, what="wall", aim=1.0),
                Ratio(
                    name="time against MirrorMaker 2, both from the start",
                    above=ONE_WHOLE,
                    below=MM2_WHOLE,
                    what="wall",
                    aim=1 / 5,
                ),
            ),
        ),
        Scenario(
            name="far",
            title=f"{million:,} records of 1 KiB JSON, the source {ROUND_TRIP_MS} ms (round trip) away",
            shape=large,
            run=far_away,
            aims=(
                Ratio(name="time against a near source, 1 task", above=ONE_COPY, below=LOCAL_ONE, what="wall", aim=1.2),
                Ratio(
                    name="time against a near source, 2 tasks", above=TWO_COPY, below=LOCAL_TWO, what="wall", aim=1.2
                ),
                Ratio(
                    name="time against MirrorMaker 2, 2 tasks", above=TWO_COPY, below=MM2_COPY, what="wall", aim=1 / 5
                ),
            ),
        ),
        Scenario(
            name="empty",
            title="an empty micro-run, without Airflow and Spark",
            shape=Shape(topic="tiny", partitions=4, records=1000, size=200),
            run=nothing_new,
            aims=(Limit(name="time, s", measure=EMPTY, what="wall", aim=8.0),),
        ),
    )


def prepare(field: Field, shape: Shape, ready: set[str]) -> None:
    """Write a scenario's topic, once."""
    if shape.topic not in ready:
        say(f"writing {shape.records:,} records of {shape.size} bytes to {shape.topic}")
        write(field.source.bootstrap, shape)
        ready.add(shape.topic)
