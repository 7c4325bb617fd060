"""What is copied, by which contender, and what is compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusters import ROUND_TRIP_MS, Field
from contenders import (
    bare_pump,
    delete_topic,
    empty_command,
    empty_run,
    ferry,
    plans,
    readiness,
    run_command,
    spark_job,
    verify,
    wait_until_deleted,
)
from data import Shape, write, write_more
from equality import fingerprint
from failover import Outcome, fail_over
from failover import table as table_of_groups
from groups import GROUPS, RECORDS, synced
from groups import PARTITIONS as GROUP_PARTITIONS
from holes import records, wait_until_cleaned, whole, write_both
from masked import connect_words, counted_apart, ferry_masked, kept, mirror_masked, sql_words, write_orders
from mirror_maker import mirror
from page import asked
from page import table as table_of_routes
from through_airflow import CONNECT, airflow, configuration, connect_server, triggered
from transcoding import BATCH_RECORDS, all_codecs, measure
from usage import Usage
from wide import PARTITIONS, PATTERN, TOPICS, created_alone, write_wide

from ferry.model import Codec

Pair = dict[str, Usage]
"""One paired run: what it took, by measure."""

MM2_COPY, MM2_WHOLE = "MirrorMaker 2, copying", "MirrorMaker 2, from its start"
ONE_COPY, ONE_WHOLE = "Ferry, 1 task, copying", "Ferry, 1 task, plan included"
TWO_COPY, TWO_WHOLE = "Ferry, 2 tasks, copying", "Ferry, 2 tasks, plan included"
BARE = "bare pump"
LOCAL_ONE, LOCAL_TWO = "Ferry, 1 task, source near", "Ferry, 2 tasks, source near"
PLAN_NEW, PLAN_AGAIN = "plan, target topics created", "plan, target topics there"
CREATED = "a plain client creates as many topics, no plan"
AIR_COLD, AIR_WARM = "empty run, the first of an Airflow", "empty run, a later one"
AIR_SUBMIT, AIR_CONNECT = "1,000 records, spark-submit", "1,000 records, Spark Connect"
EMPTY, EMPTY_COMMAND = "Ferry, a process that plans and reports", "`ferry run`"
VERIFY = "Ferry, verify"
READY = "`ferry readiness`, from its start"
GROUPS_NEW, GROUPS_MOVED, GROUPS_STILL = "groups that are new", "groups that have moved", "groups that have not moved"
WITH_HOLES, WITHOUT_HOLES = "Ferry, 1 task, with holes", "Ferry, 1 task, without"
SPARK, SPARK_WHOLE = "Ferry, spark-submit job, 2 tasks", "Ferry, spark-submit job, plan included"

SAME_COPY, SAME_WHOLE = "Ferry, identical offsets, copying", "Ferry, identical offsets, plan included"
EMPTY_SAME = "Ferry with identical offsets, a process that plans and reports"

MASK_ONE, MASK_ONE_WHOLE = "Ferry, 1 task, copying", "Ferry, 1 task, plan and Spark included"
MASK_TWO, MASK_TWO_WHOLE = "Ferry, 2 tasks, copying", "Ferry, 2 tasks, plan and Spark included"
MASK_SQL_WHOLE = "Ferry, in SQL, 2 tasks, plan and Spark included"


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
    run: Callable[[Field, Shape, str], Any]
    aims: tuple[Ratio | Limit, ...]
    write: Callable[[str, Shape], None] = write
    warm: bool = True
    """Whether the brokers copy the topic before the first pair."""
    table: Callable[[Scenario, Sequence[Any]], str] | None = None
    """What makes the table of its pairs; None: times and aims."""


def say(text: str) -> None:
    """Print progress on standard error."""
    sys.stderr.write(text + "\n")


class Bout:
    """One pair of one scenario: every contender copies the same topic, one after the other, into a topic of its own."""

    def __init__(self, field: Field, shape: Shape, label: str) -> None:
        self._field, self._shape, self._label = field, shape, label
        self._folder = field.folder / "contenders"
        self._target = field.target.bootstrap
        self._expected = fingerprint(field.source, shape.topic)

    def mirror_maker(self, source: str) -> Pair:
        """Run MirrorMaker 2. It makes its own batches, so that only the records are counted."""
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

    def ferry(
        self, source: str, tasks: int, copy_name: str, whole_name: str | None = None, *, identical: bool = False
    ) -> Pair:
        """Run Ferry's engine; the copy must equal the source batch by batch."""
        kind = "same" if identical else "far" if source == self._field.far_source else ""
        alias = f"f{tasks}{kind}-{self._label}"
        topic = self._shape.topic
        copied = ferry(self._folder, alias, source, self._target, topic=topic, tasks=tasks, identical=identical)
        found = fingerprint(self._field.target, f"{alias}.{self._shape.topic}")
        assert found == self._expected, f"Ferry's copy of {self._shape.topic} differs from its source"
        delete_topic(self._target, f"{alias}.{self._shape.topic}")
        self._tell(copy_name, copied.copying)
        return {copy_name: copied.copying} | ({whole_name: copied.whole} if whole_name else {})

    def spark(self, source: str) -> Pair:
        """Run the whole job by spark-submit, two tasks in one local Spark."""
        alias = f"s-{self._label}"
        planning, job = spark_job(self._folder, alias, source, self._target, topic=self._shape.topic, tasks=2)
        found = fingerprint(self._field.target, f"{alias}.{self._shape.topic}")
        assert found == self._expected, f"the Spark job's copy of {self._shape.topic} differs from its source"
        delete_topic(self._target, f"{alias}.{self._shape.topic}")
        self._tell(SPARK, job)
        whole = Usage(wall=planning.wall + job.wall, cpu=planning.cpu + job.cpu, peak_mb=job.peak_mb)
        return {SPARK: job, SPARK_WHOLE: whole}

    def bare_pump(self, source: str) -> Pair:
        """Run the bare pump. It has no producer id and no transaction, so only bytes and records are counted.

        The pair is empty if a request of it had no answer twice.
        """
        name = f"bare-{self._label}.{self._shape.topic}"
        measured = bare_pump(
            source, self._target, topic=self._shape.topic, target_topic=name, partitions=self._shape.partitions
        )
        if measured is None:
            say(f"  {BARE}: not measured, because a request had no answer, twice: the machine is too busy")
            return {}
        usage, name = measured
        found = fingerprint(self._field.target, name)
        assert [entry[1:] for entry in found.values()] == [entry[1:] for entry in self._expected.values()]
        delete_topic(self._target, name)
        self._tell(BARE, usage)
        return {BARE: usage}

    def _tell(self, name: str, usage: Usage) -> None:
        say(f"  {name}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s, {usage.peak_mb:.0f} MB")


def with_spark(field: Field, shape: Shape, label: str) -> Pair:
    """Run all contenders, the source near, and the whole Spark job."""
    return side_by_side(field, shape, label) | Bout(field, shape, label).spark(field.source.bootstrap)


def side_by_side(field: Field, shape: Shape, label: str) -> Pair:
    """Run all contenders, the source near."""
    bout, near = Bout(field, shape, label), field.source.bootstrap
    pair = bout.mirror_maker(near) | bout.ferry(near, 1, ONE_COPY, ONE_WHOLE)
    if shape.partitions > 1:
        pair |= bout.ferry(near, 2, TWO_COPY, TWO_WHOLE)
    return pair | bout.bare_pump(near)


def same_offsets(field: Field, shape: Shape, label: str) -> Pair:
    """Run Ferry with translated and with identical offsets, by turns first."""
    bout, near = Bout(field, shape, label), field.source.bootstrap
    names = {False: (TWO_COPY, TWO_WHOLE), True: (SAME_COPY, SAME_WHOLE)}
    first = label.endswith(("2", "4", "6", "8"))
    return bout.ferry(near, 2, *names[first], identical=first) | bout.ferry(
        near, 2, *names[not first], identical=not first
    )


def nothing_new_at_same_offsets(field: Field, shape: Shape, label: str) -> Pair:
    """Run micro-runs that find nothing, with translated and with identical offsets."""
    folder, near, target = field.folder / "contenders", field.source.bootstrap, field.target.bootstrap
    pair = {
        name: empty_run(folder, f"{alias}-{label}", near, target, topic=shape.topic, identical=identical)
        for name, alias, identical in ((EMPTY, "e", False), (EMPTY_SAME, "i", True))
    }
    say("  " + ", ".join(f"{name}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s" for name, usage in pair.items()))
    return pair


def far_away(field: Field, shape: Shape, label: str) -> Pair:
    """Run MirrorMaker 2 and Ferry with the source far away, and Ferry with the same source near."""
    bout, near, far = Bout(field, shape, label), field.source.bootstrap, field.far_source
    return (
        bout.mirror_maker(far)
        | bout.ferry(far, 1, ONE_COPY)
        | bout.ferry(near, 1, LOCAL_ONE)
        | bout.ferry(far, 2, TWO_COPY)
        | bout.ferry(near, 2, LOCAL_TWO)
    )


def nothing_new(field: Field, shape: Shape, label: str) -> Pair:
    """Run a micro-run that finds nothing."""
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


def plan_wide(field: Field, shape: Shape, label: str) -> Pair:
    """Plan 10,000 partitions, first with all topics to create, then with all there; and measure what brokers need."""
    plain = f"plain-{label}."
    alone = created_alone(field.target.bootstrap, plain)
    for number in range(TOPICS):
        delete_topic(field.target.bootstrap, f"{plain}wide-{number:03}")
    wait_until_deleted(field.target, plain)
    folder, alias = field.folder / "contenders", f"w-{label}"
    near, target = field.source.bootstrap, field.target.bootstrap
    new, again = plans(folder, alias, near, target, topic=PATTERN, slices=TOPICS * PARTITIONS)
    say(f"  {CREATED}: {alone.wall:.2f} s; {PLAN_NEW}: {new.wall:.2f} s; {PLAN_AGAIN}: {again.wall:.2f} s")
    for number in range(TOPICS):
        delete_topic(target, f"{alias}.wide-{number:03}")
    wait_until_deleted(field.target, f"{alias}.")
    return {CREATED: alone, PLAN_NEW: new, PLAN_AGAIN: again}


def ready_wide(field: Field, shape: Shape, label: str) -> Pair:
    """Check whether the target of 10,000 partitions could take over, when all of them are copied."""
    folder, alias = field.folder / "contenders", f"r-{label}"
    near, target = field.source.bootstrap, field.target.bootstrap
    ferry(folder, alias, near, target, topic=PATTERN, tasks=1)
    pair = {READY: readiness(folder, alias, TOPICS * PARTITIONS)}
    say(f"  {READY}: {pair[READY].wall:.2f} s, {pair[READY].cpu:.2f} CPU-s")
    for number in range(TOPICS):
        delete_topic(target, f"{alias}.wide-{number:03}")
    wait_until_deleted(field.target, f"{alias}.")
    return pair


def many_groups(field: Field, shape: Shape, label: str) -> Pair:
    """Run Ferry alone: all groups of a topic are translated and written when new, after they moved, and unmoved."""
    folder, near, target = field.folder / "contenders", field.source.bootstrap, field.target.bootstrap
    found = synced(folder, f"g-{label}", near, target, topic=shape.topic)
    pair = dict(zip((GROUPS_NEW, GROUPS_MOVED, GROUPS_STILL), found, strict=True))
    say("  " + ", ".join(f"{name}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s" for name, usage in pair.items()))
    delete_topic(target, f"g-{label}.{shape.topic}")
    return pair


def through_airflow(field: Field, shape: Shape, label: str) -> Pair:
    """Run micro-runs of a flow by spark-submit and of one over Spark Connect, in an Airflow started for them."""
    folder = field.folder / f"airflow-{label}"
    submitted, connected = f"as-{label}", f"ac-{label}"
    flows = {submitted: "spark_default", connected: CONNECT}
    near = field.source.bootstrap
    config = configuration(folder / "flows.properties", near, field.target.bootstrap, shape.topic, flows)
    for alias in flows:
        run_command(config, f"{alias}->target")
    with connect_server(folder) as port, airflow(folder / "home", config, list(flows), port) as rest:
        pair = {AIR_COLD: triggered(rest, submitted), AIR_WARM: triggered(rest, submitted)}
        write_more(near, shape)
        pair |= {AIR_SUBMIT: triggered(rest, submitted), AIR_CONNECT: triggered(rest, connected)}
    say("  " + ", ".join(f"{name}: {usage.wall:.2f} s" for name, usage in pair.items()))
    return pair


def groups_fail_over(field: Field, shape: Shape, label: str) -> Outcome:
    """Bring the same groups over by MirrorMaker 2 and by Ferry, and count what they read again."""
    folder, near, target = field.folder / "contenders", field.source.bootstrap, field.target.bootstrap
    found = fail_over(folder, label, near, target, shape)
    for contender, outcomes in found.items():
        say(
            f"  {contender}: "
            + ", ".join(f"{name} {one.again:,}, missed {one.missed:,}" for name, one in outcomes.items())
        )
    return found


def compacted(field: Field, shape: Shape, label: str) -> Pair:
    """Run Ferry alone: a topic of which compaction removed one record in a hundred, and the same records as bytes."""
    wait_until_cleaned(field.source, shape)
    near, target, folder = field.source.bootstrap, field.target.bootstrap, field.folder / "contenders"
    pair = Bout(field, whole(shape), f"{label}-whole").ferry(near, 1, WITHOUT_HOLES)
    alias = f"holes-{label}"
    copied = ferry(folder, alias, near, target, topic=shape.topic, tasks=1)
    assert copied.records == records(field.target, f"{alias}.{shape.topic}") == records(field.source, shape.topic)
    delete_topic(target, f"{alias}.{shape.topic}")
    say(f"  {WITH_HOLES}: {copied.copying.wall:.2f} s; {copied.records / copied.copying.cpu:,.0f} records per CPU-s")
    return pair | {WITH_HOLES: copied.copying}


def compared(field: Field, shape: Shape, label: str) -> Pair:
    """Copy a topic by Ferry, and compare the copy with its source: that reads twice the bytes that were copied."""
    folder, alias = field.folder / "contenders", f"v-{label}"
    near, target = field.source.bootstrap, field.target.bootstrap
    copied = ferry(folder, alias, near, target, topic=shape.topic, tasks=1)
    usage = verify(folder, alias, copied.records, copied.bytes)
    delete_topic(target, f"{alias}.{shape.topic}")
    say(f"  {ONE_COPY}: {copied.copying.cpu:.2f} CPU-s, {VERIFY}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s")
    return {ONE_COPY: copied.copying, VERIFY: usage}


def masked(field: Field, shape: Shape, label: str) -> Pair:
    """Run MirrorMaker 2 and Ferry with the same chain of transforms; their copies are the same record by record."""
    folder, near, target = field.folder / "contenders", field.source.bootstrap, field.target.bootstrap
    mirrored = mirror_masked(folder, f"mm-{label}", near, target, shape)
    copying = mirrored.arrival.copying
    pair = {
        MM2_COPY: Usage(wall=copying.wall, cpu=copying.cpu, peak_mb=mirrored.peak_mb),
        MM2_WHOLE: mirrored.whole,
    }
    expected = _taken(target, f"mm-{label}.{shape.topic}", shape)
    contenders = (
        (MASK_ONE, MASK_ONE_WHOLE, connect_words, 1),
        (MASK_TWO, MASK_TWO_WHOLE, connect_words, 2),
        (None, MASK_SQL_WHOLE, sql_words, 2),
    )
    for copy_name, whole_name, words, tasks in contenders:
        alias = f"f{tasks}-{words.__name__[:3]}-{label}"
        of_copy, of_whole = ferry_masked(folder, alias, near, target, shape, words(alias, shape.topic), tasks)
        assert _taken(target, f"{alias}.{shape.topic}", shape) == expected, f"{whole_name}: another copy than MM2's"
        pair |= ({copy_name: of_copy} if copy_name else {}) | {whole_name: of_whole}
    for name, usage in pair.items():
        say(f"  {name}: {usage.wall:.2f} s, {usage.cpu:.2f} CPU-s, {usage.peak_mb:.0f} MB")
    return pair


def _taken(bootstrap: str, topic: str, shape: Shape) -> dict[int, tuple[int, str]]:
    """Return what a copy holds, and delete the copy."""
    found = counted_apart(bootstrap, topic, shape.partitions)
    assert sum(count for count, _ in found.values()) == kept(shape), f"{topic} has {found}, not {kept(shape)} records"
    delete_topic(bootstrap, topic)
    return found


def warm_up(field: Field, shape: Shape) -> None:
    """Make two uncounted copies: brokers compile for a minute before they reach their usual speed."""
    for number in (1, 2):
        bout = Bout(field, shape, f"warm-{shape.topic}-{number}")
        bout.bare_pump(field.source.bootstrap)
        bout.ferry(field.source.bootstrap, 1, "warm-up")


def scenarios(scale: float) -> tuple[Scenario, ...]:
    """Return all scenarios; `scale` multiplies their records."""
    million = max(1000, int(1_000_000 * scale))
    large = Shape(topic="large", partitions=4, records=million, size=1024)
    small = Shape(topic="small", partitions=4, records=million, size=200, batch_records=72)
    commits = max(100, int(6_000 * scale))
    tiny = Shape(topic="tiny", partitions=4, records=1000, size=200)
    beside_mirror_maker = (
        _cpu("CPU against MirrorMaker 2, 1 task", ONE_COPY, MM2_COPY, 1 / 10),
        _time("time against MirrorMaker 2, 1 task", ONE_COPY, MM2_COPY, 1 / 5),
        _time("time against MirrorMaker 2, 2 tasks", TWO_COPY, MM2_COPY, 1 / 5),
        _time("time against the bare pump, 1 task", ONE_COPY, BARE, 1.25),
    )
    against_translated = (
        _time("time against translated offsets", SAME_COPY, TWO_COPY, 1.1),
        _cpu("CPU against translated offsets", SAME_COPY, TWO_COPY, 1.1),
    )
    spark_aims = (
        _time("time of the whole Spark job against MirrorMaker 2 from its start", SPARK, MM2_WHOLE, 1 / 1.5),
        _cpu("CPU of the whole Spark job against MirrorMaker 2 from its start", SPARK, MM2_WHOLE, 1 / 4),
        Limit(name="memory of a task, MB", measure=ONE_COPY, what="peak_mb", aim=300),
        Limit(name="memory of a Spark worker, MB", measure=SPARK, what="peak_mb", aim=300),
    )
    return (
        Scenario(
            name="large",
            title=f"{million:,} records of 1 KiB JSON, lz4, 4 partitions",
            shape=large,
            run=with_spark,
            aims=(*beside_mirror_maker, *spark_aims),
        ),
        Scenario(
            name="small",
            title=f"{million:,} records of 200 bytes, lz4, in batches of 72 records, 4 partitions",
            shape=small,
            run=side_by_side,
            aims=beside_mirror_maker,
        ),
        *(
            Scenario(
                name=name,
                title=f"{million:,} records of {size} JSON, lz4, 4 partitions: a tenth left out, a header added, two "
                "fields masked",
                shape=Shape(topic=name, partitions=4, records=million, size=length),
                run=masked,
                aims=(
                    _cpu("CPU against MirrorMaker 2, 1 task", MASK_ONE, MM2_COPY, 1 / 2),
                    _time("time against MirrorMaker 2, 2 tasks", MASK_TWO, MM2_COPY, 1.0),
                    _cpu("CPU against MirrorMaker 2, both from the start, 1 task", MASK_ONE_WHOLE, MM2_WHOLE, 1 / 2),
                    _time("time against MirrorMaker 2, both from the start, 2 tasks", MASK_TWO_WHOLE, MM2_WHOLE, 1.0),
                    _cpu("CPU in SQL, both from the start", MASK_SQL_WHOLE, MM2_WHOLE, 1 / 2),
                ),
                write=write_orders,
            )
            for name, size, length in (("masked1k", "1 KiB", 1024), ("masked200", "200 bytes", 200))
        ),
        Scenario(
            name="many",
            title="1,000 partitions of one record",
            shape=Shape(topic="many", partitions=1000, records=1000, size=200, batch_records=1),
            run=side_by_side,
            aims=(
                _seconds("time of the engine, s", ONE_COPY, 1.0),
                _time("time against MirrorMaker 2, both from the start", ONE_WHOLE, MM2_WHOLE, 1 / 5),
            ),
        ),
        Scenario(
            name="far",
            title=f"{million:,} records of 1 KiB JSON, the source {ROUND_TRIP_MS} ms (round trip) away",
            shape=large,
            run=far_away,
            aims=(
                _time("time against a near source, 1 task", ONE_COPY, LOCAL_ONE, 1.2),
                _time("time against a near source, 2 tasks", TWO_COPY, LOCAL_TWO, 1.2),
                _time("time against MirrorMaker 2, 2 tasks", TWO_COPY, MM2_COPY, 1 / 5),
            ),
        ),
        *(
            Scenario(
                name=name,
                title=f"{million:,} records of 1 KiB JSON, lz4, {batches}; compaction took 1 %; "
                "against the same as bytes",
                shape=Shape(
                    topic=name, partitions=4, records=million, size=1024, hole_every=100, batch_records=batch_records
                ),
                run=compacted,
                aims=(
                    _time("time against a topic without holes", WITH_HOLES, WITHOUT_HOLES, 1.3),
                    Limit(name="CPU-seconds of a million records", measure=WITH_HOLES, what="cpu", aim=12.5 * scale),
                ),
                write=write_both,
                warm=False,
            )
            for name, batches, batch_records in (
                ("holes", "in large batches", 0),
                ("holes16k", "in batches of 16 KiB, as of Java's producer", 16),
            )
        ),
        Scenario(
            name="verify",
            title=f"{million:,} records of 1 KiB JSON, lz4, copied and then compared on both clusters",
            shape=large,
            run=compared,
            aims=(
                _cpu("CPU of comparing, which reads twice the bytes, against copying", VERIFY, ONE_COPY, 1.0),
                Limit(name="memory of the comparison, MB", measure=VERIFY, what="peak_mb", aim=300),
            ),
        ),
        Scenario(
            name="transcoding",
            title=f"{million // 10:,} records of 1 KiB JSON rewritten, by codec, without brokers",
            shape=Shape(topic="transcoding", partitions=1, records=million // 10, size=1024),
            run=lambda field, shape, label: all_codecs(shape),
            aims=tuple(
                Limit(
                    name=f"CPU-seconds, {measure(codec, batch_records)}",
                    measure=measure(codec, batch_records),
                    what="cpu",
                    aim=million / 10 / 80_000,
                )
                for codec in Codec
                for batch_records in BATCH_RECORDS
            ),
            write=lambda bootstrap, shape: None,
            warm=False,
        ),
        Scenario(
            name="failover",
            title="records that groups read again after a failover, in 4 partitions of "
            f"{million // 4:,} records each, added up",
            shape=Shape(topic="failover", partitions=4, records=million, size=200),
            run=groups_fail_over,
            aims=(),
            warm=False,
            table=table_of_groups,
        ),
        Scenario(
            name="wide",
            title=f"{TOPICS * PARTITIONS:,} topic-partitions planned",
            shape=Shape(topic="wide", partitions=PARTITIONS, records=TOPICS * PARTITIONS, size=3),
            run=plan_wide,
            aims=(_seconds("time to plan, s", PLAN_AGAIN, 10.0),),
            write=lambda bootstrap, shape: write_wide(bootstrap),
            warm=False,
        ),
        Scenario(
            name="readiness",
            title=f"{TOPICS * PARTITIONS:,} topic-partitions: could the target take over?",
            shape=Shape(topic="wide", partitions=PARTITIONS, records=TOPICS * PARTITIONS, size=3),
            run=ready_wide,
            aims=(_seconds("time of the check, s", READY, 20.0),),
            write=lambda bootstrap, shape: write_wide(bootstrap),
            warm=False,
        ),
        Scenario(
            name="groups",
            title=f"{GROUPS:,} consumer groups with {GROUP_PARTITIONS} partitions each, translated and written",
            shape=Shape(
                topic="groups",
                partitions=GROUP_PARTITIONS,
                records=GROUP_PARTITIONS * RECORDS,
                size=100,
                batch_records=RECORDS,
            ),
            run=many_groups,
            aims=(
                _seconds("time of groups that are new, s", GROUPS_NEW, 10.0),
                _seconds("time of groups that have moved, s", GROUPS_MOVED, 10.0),
            ),
            warm=False,
        ),
        Scenario(
            name="empty",
            title="an empty micro-run, without Airflow and Spark",
            shape=tiny,
            run=nothing_new,
            aims=(_seconds("time, s", EMPTY, 8.0),),
            warm=False,
        ),
        *(
            Scenario(name=name, title=title, shape=shape, run=same_offsets, aims=against_translated)
            for name, title, shape in (
                ("identical", f"{million:,} records of 1 KiB JSON, lz4, with identical offsets", large),
                ("identicalsmall", f"{million:,} records in batches of 72, with identical offsets", small),
            )
        ),
        Scenario(
            name="identicalcommits",
            title=f"{commits:,} transactions of a record in each of 8 partitions, with identical offsets",
            shape=Shape(topic="commits", partitions=8, records=8 * commits, size=200, batch_records=1, commit_every=8),
            run=same_offsets,
            aims=(_seconds("time of what 100 transactions a second take, s", SAME_WHOLE, commits / 100),),
            warm=False,  # the bare pump knows no transactions
        ),
        Scenario(
            name="identicalempty",
            title="an empty micro-run with identical offsets",
            shape=tiny,
            run=nothing_new_at_same_offsets,
            aims=(
                _time("time against translated offsets", EMPTY_SAME, EMPTY, 1.1),
                _cpu("CPU against translated offsets", EMPTY_SAME, EMPTY, 1.1),
            ),
            warm=False,
        ),
        Scenario(
            name="airflow",
            title="micro-runs through Airflow, from trigger to end",
            shape=tiny,
            run=through_airflow,
            aims=(
                _seconds("empty run, the first of an Airflow, s", AIR_COLD, 15.0),
                _seconds("1,000 records by spark-submit, s", AIR_SUBMIT, 15.0),
                _seconds("1,000 records by Spark Connect, s", AIR_CONNECT, 8.0),
            ),
            warm=False,
        ),
        # The last one: it leaves more records in the partitions of `wide`.
        Scenario(
            name="page",
            title=f"the page over {TOPICS * PARTITIONS:,} partitions and a ledger of {million:,} receipts",
            shape=Shape(topic="wide", partitions=PARTITIONS, records=TOPICS * PARTITIONS, size=3),
            run=lambda field, shape, label: asked(field, million),
            aims=(),
            write=lambda bootstrap, shape: write_wide(bootstrap),
            warm=False,
            table=table_of_routes,
        ),
    )


def _time(name: str, above: str, below: str, aim: float) -> Ratio:
    return Ratio(name=name, above=above, below=below, what="wall", aim=aim)


def _cpu(name: str, above: str, below: str, aim: float) -> Ratio:
    return Ratio(name=name, above=above, below=below, what="cpu", aim=aim)


def _seconds(name: str, measure: str, aim: float) -> Limit:
    return Limit(name=name, measure=measure, what="wall", aim=aim)


def prepare(field: Field, scenario: Scenario, ready: set[str]) -> None:
    """Write a scenario's topic and let the brokers copy it, once."""
    shape = scenario.shape
    if shape.topic in ready:
        return
    say(f"writing {shape.records:,} records of {shape.size} bytes to {shape.topic}")
    scenario.write(field.source.bootstrap, shape)
    if scenario.warm:
        warm_up(field, shape)
    ready.add(shape.topic)
