"""A comparison of a flow's clusters as a Spark job: the driver surveys both, tasks compare, the driver sums up."""

from __future__ import annotations

import json
import pickle
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody who writes Spark calls it

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError
from ferry.features.observe.acts.after_run import publish_verification
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.acts.own_run import OwnRun
from ferry.features.verify.acts.verifier import CompareSpec, Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.compare_ranges import distributed
from ferry.features.verify.spark.stage import ROW, compare_packed_tasks, compare_tasks
from ferry.features.verify.spark.verifying import compare_transformed
from ferry.files import write_whole
from ferry.ledger.verified_codec import verified_json
from ferry.model import RunVerified, Verified, VerifyMode
from ferry.run.spark.columns import Stage
from ferry.run.spark.job import Say, on_spark, run_job
from ferry.run.spark.session import is_remote, sent_apart, session

DIFFERENT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What to compare, and where to report it."""

    flow: FlowConfig
    wanted: Wanted
    say: Say
    values: bool = False


def verify_flow(request: VerifyRequest, connect: Callable[[], SparkSession]) -> Verified:
    """Compare what the request names in at most `tasks.max` tasks; `connect` is called when there is something to do.

    Raises BadInput and Unreachable as `Verifier` does, and Retryable when Spark ended the job.
    """
    with Verifier(request.flow, request.wanted, values=request.values) as verifier:
        found = verifier.survey()
        shares = distributed(found.spans, request.flow.copy.tasks_max)
        specs = {number: verifier.spec(share) for number, share in enumerate(shares)}
        request.say(f"verify {request.flow.flow}: about {found.records} records in {len(specs)} tasks")
        transformed = len(found.transformed) + len(found.dealt)
        if transformed:
            request.say(f"verify {request.flow.flow}: {transformed} ranges are transformed again")

        def again(spark: SparkSession) -> Compared:
            return compare_transformed(spark, request.flow, verifier.spec, found, asked=verifier.asked)

        compared = Compared()
        for part in _on_spark(request, connect, specs, again if transformed else None):
            compared.add(part)
        return verifier.sum_up(found, compared)


def _on_spark(
    request: VerifyRequest,
    connect: Callable[[], SparkSession],
    specs: Mapping[int, CompareSpec],
    again: Callable[[SparkSession], Compared] | None,
) -> list[Compared]:
    """Return the results of the tasks, and of what has to be transformed again (None: nothing has)."""
    if not specs and again is None:
        return []

    def work(spark: SparkSession) -> list[Compared | FerryError]:
        found: list[Compared | FerryError] = []
        if specs:
            frame = spark.range(0, len(specs), 1, len(specs)).select(F.col("id").cast("int").alias("task"))
            found = [pickle.loads(row.body) for row in frame.mapInArrow(_stage(spark, specs), ROW).collect()]
        return found if again is None else [*found, again(spark)]

    tag = f"ferry-verify-{secrets.token_hex(8)}"
    answers = on_spark(connect, tag, work, what=f"comparing {request.flow.flow}")
    for answer in answers:
        if isinstance(answer, FerryError):
            raise answer
    return [answer for answer in answers if isinstance(answer, Compared)]


def _stage(spark: SparkSession, specs: Mapping[int, CompareSpec]) -> Stage:
    """Return the function of the tasks.

    On Spark Connect its specs are sent apart from it: the server logs functions.
    """
    if is_remote(spark):
        return partial(compare_packed_tasks, sent_apart(spark, specs))
    return partial(compare_tasks, dict(specs))


def keep_outcome(flow: FlowConfig, wanted: Wanted, result: Verified) -> RunVerified:
    """Keep the outcome of comparing a run's own ranges in the ledger, for its report."""
    with OwnRun(flow, wanted.run or "") as own:
        return own.keep(VerifyMode.CONTENT, result)


def main(
    *,
    config: Path,
    clients: Path | None,
    flow: str,
    wanted: Callable[[], Wanted],
    values: bool = False,
    keep: bool = False,
    out: Path | None = None,
    end: Path | None = None,
) -> int:
    """Run the whole job (`run_job` has the rest). `wanted` may raise BadInput.

    The result goes as JSON into the file `out`, and in a sentence to standard output. With `keep` it also goes into the
    ledger as the outcome of a run. The exit code: 0 equal, or kept, 1 different, not all compared, or to be
    tried again, 2 refused, 3 unreachable.
    """

    def work(found: FlowConfig, say: Say) -> int:
        request = VerifyRequest(flow=found, wanted=wanted(), say=say, values=values)
        result = verify_flow(request, lambda: session(f"ferry verify {flow}"))
        if out is not None:
            write_whole(out, json.dumps(verified_json(result)))
        publish_verification(found, result, narrow=request.wanted.is_narrow)
        _tell(result, say)
        if keep:
            keep_outcome(found, request.wanted, result)
        return 0 if keep or result.is_equal else DIFFERENT

    return run_job(work, config=config, clients=clients, flow=flow, end=end)


def _tell(result: Verified, say: Say) -> None:
    for left in result.not_compared:
        say(f"not compared: {left.message}")
    for one in result.differences:
        say(f"{one.kind} in {one.source} {list(one.source_range)}, {one.target} {list(one.target_range)}")
    count = len(result.differences) + result.more
    verdict = "nothing to compare" if result.is_nothing else "equal" if result.is_equal else "not equal"
    say(f"verify {result.flow}: {verdict}, {result.records} records, {count} differences")
