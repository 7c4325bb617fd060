"""What the tasks of Ferry's DAGs share: names at parse time, their flow when they run, errors as Airflow's."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Protocol

from airflow.sdk import BaseOperator, Context, TaskGroup, get_current_context

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.errors import BadInput, FerryError
from ferry.model import Flow, Origin
from ferry.run.spark.job_end import FINAL
from ferry_airflow.cluster_settings import flow_of
from ferry_airflow.failing import Failure, FinalFailure
from ferry_airflow.measures import flag_of
from ferry_airflow.naming import ASKED_WRONG, REASON, dag_id, micro_run_id
from ferry_airflow.report_link import run_on_page
from ferry_airflow.task_log import QuietLog

log = logging.getLogger(__name__)

# `@continuous` never runs without a start date; any past one will do, because nothing is caught up.
START = datetime(2020, 1, 1, tzinfo=UTC)
RETRY_DELAY = timedelta(seconds=30)
LONGEST_REASON = 4_000


class Named(Protocol):
    """A task that holds the names of the configuration file and of the flow."""

    config: str
    flow: str


class Copies(Named, Protocol):
    """A task of a micro-run, with a button that opens the run on the page."""

    task_group: TaskGroup | None
    run_link: str


class FerryOperator(QuietLog, BaseOperator):
    """A task of a flow's DAG: it holds the names of the file and of the flow, and reads both when executed."""

    template_fields = ("config", "flow")
    is_in_pool: ClassVar[bool] = False
    """Whether it is in the flow's pool, unless the DAG's author names another."""

    def __init__(self, *, config: str, flow: str, **kwargs: Any) -> None:
        """`config` is the path of the configuration file, `flow` is `source->target`."""
        super().__init__(**(pooled(config, flow, kwargs) if self.is_in_pool else kwargs))
        self.config = config
        self.flow = flow


def pooled(config: str, flow: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a task with the pool that the file names for the flow.

    A pool that they or `default_args` name stays. If the file cannot be read where the DAG is parsed, or its path is a
    template, Airflow's own default stays. The task itself fails for a file that is not there.
    """
    found = dict(arguments)
    if "pool" not in found and "pool" not in (found.get("default_args") or {}):
        with suppress(FerryError):
            found["pool"] = load(Path(config)).flow(flow).airflow.pool
    return found


def flow_named(task: Named) -> FlowConfig:
    """Return the flow with the settings of Airflow's connections; BadInput when the file has none of that name."""
    return flow_of(Path(task.config), task.flow)


def run_of(context: Context) -> str:
    """Return Airflow's id of the run."""
    return str(context["run_id"])


def begun_run(task: Copies, context: Context, own: str, lane: str | None = None) -> str:
    """Return Ferry's id of what the task's run copies, and let the task's button lead to its page.

    `own` is the DAG whose runs keep Airflow's id in the lane; `lane` is None for the flow's own.
    """
    group = task.task_group
    run = micro_run_id(own, str(context["dag"].dag_id), (group and group.group_id) or "", run_of(context))
    if not is_dry_run(context):
        task.run_link = run_on_page(Flow.parse(task.flow), run, lane)
    return run


def live_run(task: Copies, context: Context) -> str:
    """Return Ferry's id of the micro-run in the flow's own lane, and let the task's button lead to its page."""
    return begun_run(task, context, dag_id(Flow.parse(task.flow)))


def sibling(task: BaseOperator, name: str) -> str:
    """Return the id of the task of this name in the task's own task group."""
    group = task.task_group
    return name if group is None else group.child_id(name)


def origin_of(context: Context) -> Origin:
    """Return the task's process and try, as the origin of what it writes."""
    return Origin(
        host=f"{socket.gethostname()}:{os.getpid()}",
        dag_id=str(context["dag"].dag_id),
        dag_run_id=run_of(context),
        try_number=int(context["ti"].try_number),
    )


def is_dry_run(context: Context) -> bool:
    """Return whether the run's form asks only to be shown something; fails the task if it says neither yes nor no."""
    with airflow_errors():
        return flag_of(context["params"], "dry_run")


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Raise Ferry's errors as Airflow's: those that a retry meets again fail at once. The page shows their sentence."""
    try:
        yield
    except FINAL as error:
        if isinstance(error, BadInput) and error.of_run:
            keep(ASKED_WRONG, True)
        raise final_failure(str(error)) from None
    except FerryError as error:
        keep_reason(str(error))
        raise Failure(str(error)) from None


def final_failure(sentence: str) -> FinalFailure:
    """Return the error that ends a task that a retry would not help, to be raised; the page shows its sentence."""
    keep_reason(sentence)
    return FinalFailure(sentence)


def keep_reason(sentence: str) -> None:
    """Keep why the running task fails, as its XCom REASON: otherwise Airflow has the exception only in its log.

    Airflow deletes it before a new try, like all that a task returns. If it cannot be kept, the task fails just the
    same.
    """
    keep(REASON, sentence[:LONGEST_REASON])


def keep(key: str, value: object) -> None:
    """Keep a value of the running task, as far as that is possible."""
    try:
        get_current_context()["ti"].xcom_push(key, value)
    except Exception as error:  # also when there is no task at all, for example in a test that calls an operator
        log.debug("the reason is in the log alone: %s", error)
