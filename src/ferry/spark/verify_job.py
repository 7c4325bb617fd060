"""A comparison of a flow's clusters as a Spark job: the driver looks at both, tasks compare, the driver sums up."""

from __future__ import annotations

import json
import os
import pickle
import secrets
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from ferry.config.connection import from_environment
from ferry.config.flow import FlowConfig
from ferry.config.settings import load
from ferry.decide.ledger.verified_codec import verified_json
from ferry.decide.verify.stretches import dealt
from ferry.errors import FerryError, Retryable
from ferry.model import Verified
from ferry.run.verify.compare import Compared
from ferry.run.verify.survey import Wanted
from ferry.run.verify.verifier import CompareSpec, Verifier
from ferry.spark import lifeline
from ferry.spark.call import Call
from ferry.spark.copy_job import TERMINATED, Terminated
from ferry.spark.handover import taken
from ferry.spark.session import gist, interrupt, is_remote, sent_apart, session, stop
from ferry.spark.verify_stage import ROW, compare_packed_tasks, compare_tasks

DIFFERENT = 1
_SECRET_BYTES = 32

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What to compare, and where to tell about it."""

    flow: FlowConfig
    wanted: Wanted
    say: Callable[[str], None]
    values: bool = False


def verify_flow(request: VerifyRequest, connect: Callable[[], SparkSession]) -> Verified:
    """Compare what the request names in at most `tasks.max` tasks; `connect` is called when there is something to do.

    Raises BadInput and Unreachable as `Verifier`, and Retryable when Spark gave the job up.
    """
    secret = secrets.token_bytes(_SECRET_BYTES)
    with Verifier(request.flow, request.wanted, secret, values=request.values) as verifier:
        found = verifier.survey()
        shares = dealt(found.stretches, request.flow.tasks_max)
        specs = {number: verifier.spec(share) for number, share in enumerate(shares)}
        request.say(f"verify {request.flow.flow}: about {found.records} records in {len(specs)} tasks")
        compared = Compared()
        for part in _on_spark(request, connect, specs) if specs else ():
            compared.add(part)
        return verifier.sum_up(found, compared)


def _on_spark(
    request: VerifyRequest, connect: Callable[[], SparkSession], specs: Mapping[int, CompareSpec]
) -> list[Compared]:
    spark = connect()
    tag = f"ferry-verify-{secrets.token_hex(8)}"

    def work() -> list[Compared | FerryError]:
        spark.addTag(tag)  # tags belong to the thread that sets them
        frame = spark.range(0, len(specs), 1, len(specs)).select(F.col("id").cast("int").alias("task"))
        return [pickle.loads(row.body) for row in frame.mapInArrow(_stage(spark, specs), ROW).collect()]

    try:
        answers = Call(work).result()
    except BaseException as error:
        interrupt(spark, tag)
        if isinstance(error, (PySparkException, Py4JError)):
            why = gist(error)
            raise Retryable(f"Spark gave up comparing {request.flow.flow} ({why}): see its log") from error
        raise
    finally:
        stop(spark)
    for answer in answers:
        if isinstance(answer, FerryError):
            raise answer
    return [answer for answer in answers if isinstance(answer, Compared)]


def _stage(spark: SparkSession, specs: Mapping[int, CompareSpec]) -> Stage:
    """The function of the tasks; on Spark Connect its specs travel apart from it, for the server logs functions."""
    if is_remote(spark):
        return partial(compare_packed_tasks, sent_apart(spark, specs))
    return partial(compare_tasks, dict(specs))


def main(
    *, config: Path, clients: Path | None, flow: str, wanted: Wanted, values: bool = False, out: Path | None = None
) -> int:
    """The whole job: under spark-submit, or under plain Python with SPARK_REMOTE naming a Spark Connect server.

    `clients` is the pipe in which a task hands the connection data over. The result goes as JSON into the file `out`,
    and in a sentence to standard output. The exit code: 0 equal, 1 different, not all compared, or to be tried again,
    2 refused, 3 unreachable, 143 ended by SIGTERM.
    """

    def terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    def say(text: str) -> None:
        with suppress(OSError):  # after the JVM's end nobody reads
            print(f"ferry: {text}", flush=True)

    signal.signal(signal.SIGTERM, terminate)
    lifeline.watch(os.environ)
    try:
        found = load(config, from_environment).flow(flow)
        if clients is not None:
            found = taken(found, clients)
        request = VerifyRequest(flow=found, wanted=wanted, say=say, values=values)
        result = verify_flow(request, lambda: session(f"ferry verify {flow}"))
    except Terminated:
        say("terminated")
        return TERMINATED
    except FerryError as error:
        say(str(error))
        return error.exit_code
    if out is not None:
        draft = out.with_name(f"{out.name}.new")
        draft.write_text(json.dumps(verified_json(result)))
        draft.replace(out)
    for left in result.not_compared:
        say(f"not compared: {left.message}")
    for one in result.differences:
        say(f"{one.kind} in {one.source} {list(one.source_range)}, {one.target} {list(one.target_range)}")
    count = len(result.differences) + result.more
    verdict = "equal" if result.is_equal else "not equal"
    say(f"verify {result.flow}: {verdict}, {result.records} records, {count} differences")
    return 0 if result.is_equal else DIFFERENT
