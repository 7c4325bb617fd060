"""The same chain of transforms by MirrorMaker 2 and by Ferry: leave some records out, add a header, mask two fields.

A tenth of the records have a header `test`, by which they are left out. The others have none, because the converter of
headers that InsertHeader needs in MirrorMaker would change them. Masking bytes of JSON is `MaskFields.java`, because
Kafka's own class fails on MirrorMaker's bytes. Ferry reads the words of Kafka's class, or SQL and a `redact`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from contenders import HERE, Part, configuration
from data import POOL, Shape, send_all
from mirror_maker import VERSION, Mirrored, mirror
from usage import TreeMeter, Usage
from watch import watch

from ferry.dev.jars import jars
from ferry.run.spark.submit import submit_conf

DROPPED_EVERY = 10
FIELDS = ("card", "mail")
_TEST = [("test", b"1")]

CHAIN = """\
{flow}.transforms = kept, origin, mask
{flow}.transforms.kept.type = org.apache.kafka.connect.transforms.Filter
{flow}.transforms.kept.predicate = test
{flow}.predicates = test
{flow}.predicates.test.type = org.apache.kafka.connect.transforms.predicates.HasHeaderKey
{flow}.predicates.test.name = test
{flow}.transforms.origin.type = org.apache.kafka.connect.transforms.InsertHeader
{flow}.transforms.origin.header = origin
{flow}.transforms.origin.value.literal = primary
{flow}.transforms.mask.type = {mask}
{flow}.transforms.mask.fields = card, mail
"""

FOR_FERRY = """\
target.producer.compression.type = lz4
"""

FOR_MIRROR_MAKER = """\
# InsertHeader's text is no bytes, which are all that MirrorMaker's own converter takes.
{flow}.header.converter = org.apache.kafka.connect.storage.SimpleHeaderConverter
"""

IN_SQL = """\
{flow}.ferry.transforms = masked
ferry.transform.masked.topics = {topic}
ferry.transform.masked.sql = SELECT * EXCEPT (headers), \
concat(headers, array(named_struct('key', 'origin', 'value', CAST('primary' AS BINARY)))) AS headers \
FROM records WHERE NOT exists(headers, h -> h.key = 'test')
ferry.transform.masked.redact = $.card, $.mail
"""


def connect_words(alias: str, topic: str) -> str:
    """Return Ferry's chain in the words of Connect's file."""
    return CHAIN.format(flow=f"{alias}->target", mask="org.apache.kafka.connect.transforms.MaskField$Value") + FOR_FERRY


def sql_words(alias: str, topic: str) -> str:
    """Return Ferry's chain in SQL, and a step of its own."""
    return IN_SQL.format(flow=f"{alias}->target", topic=topic) + FOR_FERRY


def kept(shape: Shape) -> int:
    """Count the records that the chain leaves."""
    return shape.records - len(range(0, shape.records, DROPPED_EVERY))


def write_orders(bootstrap: str, shape: Shape) -> None:
    """Create the topic and fill it, evenly over the partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(shape.topic, shape.partitions, 1)])[shape.topic].result()
    pool = _orders(shape.size)
    send_all(
        bootstrap,
        shape,
        lambda number: {
            "value": pool[number % POOL],
            "key": b"%012d" % number,
            "partition": number // 1000 % shape.partitions,
            "headers": [] if number % DROPPED_EVERY else _TEST,
        },
    )


def _orders(size: int) -> list[bytes]:
    """Make JSON with fields to be masked; a third of it cannot be compressed."""
    rng = random.Random(21)
    words = ["north", "harbour", "pending", "paid", "cancelled", "express", "standard", "fragile", "container", "bulk"]
    found = []
    for number in range(POOL):
        order: dict[str, object] = {
            "id": rng.getrandbits(60),
            "card": f"{rng.randrange(10**16):016}",
            "state": rng.choice(words),
            "mail": f"{rng.choice(words)}.{number}@example.org",
            "weight_kg": number / 8,
        }
        while len(json.dumps(order)) < size * 0.6:
            order[f"{rng.choice(words)}_{len(order)}"] = rng.choice(words)
        order["signature"] = ""
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        order["signature"] = "".join(rng.choices(alphabet, k=max(0, size - len(json.dumps(order)))))
        found.append(json.dumps(order).encode())
    return found


def mirror_masked(folder: Path, alias: str, source: str, target: str, shape: Shape) -> Mirrored:
    """Run MirrorMaker 2 with the chain, from its start until all that is left has arrived."""
    flow = f"{alias}->target"
    return mirror(
        folder / alias,
        alias,
        source,
        target,
        topic=shape.topic,
        partitions=shape.partitions,
        records=kept(shape),
        tasks=min(4, shape.partitions),
        more=CHAIN.format(flow=flow, mask="MaskFields") + FOR_MIRROR_MAKER.format(flow=flow),
        classes=_compiled(folder / "classes"),
    )


def _compiled(folder: Path) -> Path:
    if not folder.exists():
        compiler = shutil.which("javac", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None)
        assert compiler is not None, "no javac found: MaskFields.java needs a JDK, 17 or newer"
        folder.mkdir(parents=True)
        sources = str(HERE / "MaskFields.java")
        subprocess.run([compiler, "-cp", f"{jars(VERSION)}/*", "-d", str(folder), sources], check=True)
    return folder


def ferry_masked(
    folder: Path, alias: str, source: str, target: str, shape: Shape, words: str, tasks: int
) -> tuple[Usage, Usage]:
    """Run Ferry's job with the chain.

    Measure from its first record at the target to its last, and plan and job together.
    """
    path = configuration(folder, alias, source, target, shape.topic, tasks)
    with path.open("a") as file:
        file.write(words)
    began = time.monotonic()
    planned = Part("engine.py", "plan", str(path), "run-1", str(folder / f"{alias}.specs")).outcome()
    planning = Usage(**{**planned["usage"], "wall": time.monotonic() - began})
    settings = [f"--conf={name}={value}" for name, value in submit_conf(HERE.parent / ".spark").items()]
    command = [str(Path(sys.executable).with_name("spark-submit")), f"--master=local[{tasks}]", *settings]
    command += [str(HERE.parent / "jobs" / "copy_job.py"), f"--config={path}", f"--flow={alias}->target", "--run=run-1"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = folder / f"{alias}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        meter = TreeMeter(process.pid)
        ended: list[Usage] = []
        began = time.monotonic()

        def spent() -> float:
            found = meter.cpu()
            if process.poll() is not None and not ended:
                ended.append(Usage(wall=time.monotonic() - began, cpu=found))
            return found

        try:
            arrival = watch(
                target,
                f"{alias}.{shape.topic}",
                shape.partitions,
                kept(shape),
                spent,
                lambda: process.poll() in (None, 0),
            )
            while not ended:
                spent()
                time.sleep(0.1)
        except BaseException:
            sys.stderr.write(log.read_text()[-3000:])
            process.terminate()
            raise
    assert process.wait() == 0, f"the Spark job failed; its log ends with {log.read_text()[-2000:]}"
    whole = Usage(wall=planning.wall + ended[0].wall, cpu=planning.cpu + ended[0].cpu, peak_mb=meter.worker_peak_mb)
    return Usage(wall=arrival.copying.wall, cpu=arrival.copying.cpu, peak_mb=meter.worker_peak_mb), whole


def counted_apart(bootstrap: str, topic: str, partitions: int) -> dict[int, tuple[int, str]]:
    """Return for each partition how many records a plain consumer gets, and a digest of them.

    The digest is over keys, values, headers and times.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    counts, digests = [0] * partitions, [hashlib.blake2b(digest_size=16) for _ in range(partitions)]
    try:
        for partition, record in _records(consumer, partitions):
            counts[partition] += 1
            digests[partition].update(record)
    finally:
        consumer.close()
    return {number: (counts[number], digests[number].hexdigest()) for number in range(partitions)}


def _records(consumer: Consumer, partitions: int) -> Iterator[tuple[int, bytes]]:
    left = partitions
    while left:
        for message in consumer.consume(10_000, timeout=10):
            error = message.error()
            if error is None:
                told = (message.key(), message.value(), message.headers(), message.timestamp())
                yield message.partition() or 0, repr(told).encode()
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its only name
                left -= 1
            else:
                raise KafkaException(error)
