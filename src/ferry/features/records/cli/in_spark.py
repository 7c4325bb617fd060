"""Copies in a local Spark, which transformed topics need."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ferry.cli.output import echo
from ferry.cli.stopping import Stop, Stopped, ended_by_signals
from ferry.errors import FerryError, Refused, Retryable

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig
    from ferry.model import Plan
    from ferry.run.micro_run import MicroRuns


def planned_and_copied_in_spark(
    runs: MicroRuns,
    planned: Callable[[], Plan],
    *,
    preview: Callable[[], Plan] | None = None,
    only: Collection[str] | None = None,
    quiet: bool,
    stop: Stop | None = None,
) -> tuple[Plan, FerryError | None]:
    """Start Spark, plan a run (`planned`) and copy it; return the plan, and why the run is not done, None if it is.

    A transform that cannot be carried out refuses its own topics, as in the flow's DAG. `preview` makes the plan that
    there would be for the topics `only` (None: all). With it, lost transforms are reported first. Refused, before
    anything is begun, if such topics are all that there is to copy.

    With `stop`, a signal breaks the copy off and becomes the error; without it, SIGTERM is a KeyboardInterrupt.
    """
    from ferry.features.records.spark.copy_job import CopyRequest, copy_run  # noqa: PLC0415 - only this needs Spark
    from ferry.features.records.spark.local_session import local_session  # noqa: PLC0415 - as above
    from ferry.features.records.spark.lost_transforms import lost_transforms, refuse_in_vain  # noqa: PLC0415 - as above
    from ferry.run.micro_run import local_origin  # noqa: PLC0415 - as above

    def say(text: str) -> None:
        if not quiet:
            echo(f"ferry: {text}", file=sys.stderr)

    signals = ended_by_signals() if stop is None else nullcontext()
    with signals, local_session("ferry run", cores=os.cpu_count() or 1) as session:
        if stop is not None:
            stop.take()  # Spark has taken SIGINT
        if preview is not None:
            lost = lost_transforms(session, runs.flow, only)
            refuse_in_vain(runs.flow, preview, lost)
            for why in lost.values():
                say(f"{why}; the run refuses its topics, and copies all others")
        plan = planned()
        request = CopyRequest(flow=runs.flow, run=plan.run, origin=local_origin(), say=say)
        try:
            with nullcontext() if stop is None else stop.breaking():
                # It opens connections of its own, as it does in a job of Spark. Those of `runs` stay open for the
                # groups and the report.
                copy_run(request, lambda: session)
        except Stopped as signal:
            return plan, Retryable(f"{signal} stopped the copy of run {plan.run}")
        except FerryError as error:
            return plan, error
        return plan, None


def copied_in_spark(runs: MicroRuns, plan: Plan, *, quiet: bool = False, stop: Stop | None = None) -> FerryError | None:
    """Copy what a plan has left. The error is the reason why it is not done, if so.

    With `stop`, a signal breaks the copy off and becomes the error.
    """
    return planned_and_copied_in_spark(runs, lambda: plan, quiet=quiet, stop=stop)[1]


def copy_of(flow: FlowConfig) -> Callable[[MicroRuns, Plan], FerryError | None]:
    """Return what copies a plan of the flow: the processes of this machine, or its Spark if the plan needs it.

    The log shows meanwhile how far the processes have come.

    Raises Refused, before anything is begun, if the flow has transforms and there is no Spark.
    """
    from ferry.run.local import copy_logged, copy_plan  # noqa: PLC0415 - brings the Kafka clients

    if flow.records.transforms:
        need_spark(f"flow {flow.flow} has transforms, which need Spark")
    return lambda runs, plan: copied_in_spark(runs, plan) if plan.row_slots else copy_plan(runs, plan, copy_logged)


def need_spark(what: str) -> None:
    """Raise Refused if PySpark is not installed; `what` begins the sentence."""
    if importlib.util.find_spec("pyspark") is None:
        raise Refused(f"{what}, and no PySpark is installed here: install ferry-replicator[spark], and Java 17")
