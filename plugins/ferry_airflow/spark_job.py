"""A task whose work is a job on Spark: by spark-submit, or over a running Spark Connect server."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.run.spark.credentials_pipe import emptied, offered
from ferry.run.spark.job_end import JobEnd, Terminated, end_of_job
from ferry.run.spark.package import zip_package
from ferry.run.spark.parent_watch import SUPERVISOR_VARIABLE, supervisor
from ferry.run.spark.submit import submit_conf
from ferry_airflow.base import airflow_errors, final_failure, keep_reason, pooled
from ferry_airflow.cluster_driver import CLUSTER_MODE, KUBERNETES_STATE, YARN_ADDRESS, asking, driver_key, end_driver
from ferry_airflow.cluster_settings import connection_of
from ferry_airflow.copy_trigger import DriverTrigger
from ferry_airflow.failing import Failure, FinalFailure
from ferry_airflow.log_groups import SPARK
from ferry_airflow.processes import end_job
from ferry_airflow.task_log import QuietLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

KILL_GRACE_SECONDS = 4.0
"""Airflow kills a task 5 s after it asked it to end; nothing of Spark may be left at that time."""

CONNECT = "spark_connect"
EXIT_REFUSED = 2
OUTPUT = "Last spark-submit output:"
"""After this the provider's error has the end of what spark-submit printed."""
LONGEST_LINE = 300
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
LEAST_POLL_SECONDS = 10
"""The shortest pause between two questions to a cluster manager from the triggerer."""
NOT_KNOWN = "not known"
"""A driver's state when the cluster manager gave none."""


class FerrySparkOperator(QuietLog, SparkSubmitOperator):
    """Runs one of Ferry's jobs. The Spark connection decides how: type `spark` or `spark_connect`."""

    template_fields = (*SparkSubmitOperator.template_fields, "config", "flow")
    job: ClassVar[str]
    """The job's file."""
    killed: ClassVar[str]
    """The message when the task was ordered to end."""
    is_in_pool: ClassVar[bool] = False
    """Whether it is in the flow's pool, unless the DAG's author names another."""
    deferrable = False
    """Whether it waits for its job in the triggerer, where that can be. A class that sets it has `execute_complete`."""

    def __init__(self, *, config: str, flow: str, conn_id: str, **kwargs: Any) -> None:
        """`config` is the path of the configuration file, `flow` is `source->target`, `conn_id` a Spark connection.

        `kwargs` are SparkSubmitOperator's own, such as `executor_memory`, `py_files` or `conf`.
        """
        kwargs = pooled(config, flow, kwargs) if self.is_in_pool else kwargs
        super().__init__(application=str(job_path(self.job)), conn_id=conn_id, name=f"ferry {flow}", **kwargs)
        self.config = config
        self.flow = flow
        self.in_cluster = False
        """Whether the last job's driver ran in the Spark cluster, which cannot leave its error here."""
        self._connected = False
        self._given_py_files = self.py_files

    def on_kill(self) -> None:
        """End the driver in an orderly way, so that it ends open work; then make sure that nothing of Spark is left."""
        if self._connected:
            self._connected = False
            raise Terminated  # inside the job's function, which interrupts Spark and ends what is open

        submit = self._hook._submit_sp if self._hook is not None else None  # noqa: SLF001 - the hook has no other name
        if submit is not None and submit.poll() is None:
            end_job(submit.pid, self.application, grace_seconds=KILL_GRACE_SECONDS)
        if self._hook is not None:
            super().on_kill()

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """Return the state of the driver that an earlier try started.

        If there is no answer, another driver is started: it fences the first one, so that no record is copied twice.
        """
        try:
            return super().get_job_status(external_id, context)
        except Exception as error:  # the provider raises those of three clients
            self.log.warning("the state of driver %s is not known (%s): another one is started", external_id, error)
            return NOT_KNOWN

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for a driver in the Spark cluster: in the triggerer if the task is deferrable, else here."""
        driver, hook = str(external_id), self._hook
        if hook is not None and hook._is_yarn:  # noqa: SLF001 - the hook has no other name
            hook._yarn_application_id = driver  # noqa: SLF001 - a kill needs it; the provider sets it when it submits
        if self.deferrable and self._yarn_rm_auth is not None:
            self.log.warning("yarn_rm_auth cannot be passed to the triggerer: this task waits in its worker")
        elif self.deferrable:
            self.defer(
                trigger=DriverTrigger(
                    conn_id=self._conn_id,
                    driver=driver,
                    options=asking(self),
                    every_seconds=max(self._status_poll_interval, LEAST_POLL_SECONDS),
                ),
                method_name="execute_complete",
                timeout=self.time_left(context),
            )
        super().poll_until_complete(external_id, context)

    def time_left(self, context: Context) -> timedelta | None:
        """Return what is left of `execution_timeout` since this try began, at least 1 s; None without a timeout.

        Airflow keeps the start of the try while it waits. A try may wait several times, so the whole timeout each time
        would have no end.
        """
        limit, started = self.execution_timeout, context["ti"].start_date
        if limit is None or started is None:
            return limit
        return max(timedelta(seconds=1), limit - (datetime.now(UTC) - started))

    def end_kept_driver(self, context: Context) -> None:
        """End the driver that the task's state has, as far as that is possible."""
        store = context.get("task_state_store")
        driver = None if store is None else store.get(self.external_id_key)
        if driver is None:
            return
        try:
            end_driver(self, str(driver))
        except Exception as error:  # the provider raises those of three clients
            self.log.warning("driver %s could not be ended (%s): the next try fences it", driver, error)

    def forget_driver(self, context: Context) -> None:
        """Forget the driver of a job that has ended: a task that is cleared starts another one."""
        store = context.get("task_state_store")
        if store is not None:
            store.delete(self.external_id_key)
            store.delete(KUBERNETES_STATE)

    def name_driver(self, arguments: Sequence[str]) -> None:
        """Name the key of a job's driver in the task's state; `arguments` are those that make it another job."""
        self.external_id_key = driver_key(self.job, tuple(arguments))

    def _forget_job(self) -> None:
        """Forget the hook: the provider keeps that of a task's first job, and with it that job's arguments."""
        self._hook = None

    def spark_connection(self) -> Any:
        """Return the Spark connection; the provider would silently take a missing one for `yarn`.

        Raises AirflowFailException if it is missing, denied or of another type, else AirflowException: a retry may read
        it.
        """
        with airflow_errors():
            connection = connection_of(self._conn_id)
        if connection is None:
            raise final_failure(
                f"Spark connection {self._conn_id!r} does not exist: create it (ferry airflow setup names what is"
                " missing), or name another in ferry.spark.conn.id"
            )
        if connection.conn_type not in ("spark", CONNECT):
            raise final_failure(
                f"connection {self._conn_id!r} is of type {connection.conn_type!r}: make it 'spark' or 'spark_connect'"
            )
        return connection

    def submit(
        self,
        connection: Any,
        flow: FlowConfig,
        context: Context,
        arguments: Sequence[str],
        origin_arguments: Sequence[str] = (),
    ) -> None:
        """Run the job by spark-submit, with `arguments` after those of every job; fails with the job's own error.

        `origin_arguments` are more arguments, which do not make it another job. A driver in the Spark cluster that an
        earlier try started with the same `arguments` is waited for; TaskDeferred is raised where the wait is the
        triggerer's.
        """

        master = str(connection.host or "")
        self.in_cluster = (self._deploy_mode or connection.extra_dejson.get("deploy-mode")) == CLUSTER_MODE
        if self.in_cluster:
            self._prepare_cluster_mode(connection, flow)
        elif self.deferrable:
            self.log.info("the driver is a process of this worker (deploy mode client): this task waits here")
        self.name_driver(arguments)
        self.conf = {**submit_conf(), **(self.conf or {})}
        self.application_args = ["--config", self.config, "--flow", str(flow.flow), *arguments, *origin_arguments]
        self._forget_job()
        env = {str(key): str(value) for key, value in (self.env_vars or {}).items()}
        if not self.in_cluster:
            env |= emptied(flow, os.environ)
            env[SUPERVISOR_VARIABLE] = supervisor()
            env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ferry-")))
            end = folder / "end.json"
            if not self.in_cluster:
                with airflow_errors():
                    clients = stack.enter_context(offered(flow, folder / "clients"))
                self.application_args += ["--clients", str(clients), "--end", str(end)]
            if master.startswith("local"):
                env.setdefault("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON", sys.executable))
                env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            elif not self._given_py_files:
                self.py_files = str(zip_package(folder / "ferry.zip"))
            self.env_vars = env
            try:
                SparkSubmitOperator.execute(self, context)
            except (FileNotFoundError, PermissionError) as error:
                why = Failure(
                    f"spark-submit cannot be started on {socket.gethostname()} ({error}): install"
                    " ferry-replicator[airflow,spark] for Airflow's workers, and have their PATH lead to it"
                )
                keep_reason(str(why))
                raise why from None
            except (AirflowException, RuntimeError) as error:  # the latter for a driver in the cluster
                submit = self._hook._submit_sp if self._hook is not None else None  # noqa: SLF001 - as above
                why = failed(error, end_of_job(end), submit.returncode if submit is not None else None)
                keep_reason(str(why))
                raise why from None
        if self.in_cluster:
            self.forget_driver(context)

    def _prepare_cluster_mode(self, connection: Any, flow: FlowConfig) -> None:
        """Refuse what a driver in the Spark cluster cannot do, and have its state asked where the provider can."""
        host = str(connection.host or "")
        master = host if "://" in host or not connection.port else f"{connection.conn_type}://{host}"
        if flow.clients.connections:
            named = ", ".join(sorted(flow.clients.connections.values()))
            raise final_failure(
                f"flow {flow.flow} uses Airflow connection {named}, which a driver in the Spark cluster cannot be"
                f" handed: make the deploy mode of {self._conn_id!r} client"
            )
        if master.startswith("spark://"):
            raise final_failure(
                f"Spark connection {self._conn_id!r} has deploy mode cluster and the standalone master {master}, which"
                " runs no Python driver: make its deploy mode client"
            )
        if "yarn" in master:
            # The provider refuses a durable task that may not ask.
            self._yarn_track_via_rm_api = bool(connection.extra_dejson.get(YARN_ADDRESS))
            self.durable = self.durable and self._yarn_track_via_rm_api
        if self.deferrable and not (self._yarn_track_via_rm_api or self._track_driver_via_k8s_api):
            lacks = f"{YARN_ADDRESS} in the connection" if "yarn" in master else "track_driver_via_k8s_api of the task"
            self.log.info("this task waits in its worker, because %s is not set", lacks)

    def _get_hook(self) -> SparkSubmitHook:
        """Return the provider's hook, changed so that client mode treats all masters alike.

        Unchanged, for Kubernetes it would leave spark-submit the environment of the task, with all secrets in it. It
        would also need a driver's pod to report how it ended (AIRFLOW-6244). For Kubernetes and for YARN it would write
        `env_vars` into arguments.

        In cluster mode a pod that is gone would count as a driver that ended well.
        """
        hook = super()._get_hook()
        connection = hook._connection  # noqa: SLF001 - the hook has no other name, here and below
        if connection["deploy_mode"] != CLUSTER_MODE:
            hook._env, hook._env_vars = self.env_vars, None  # noqa: SLF001
            if hook._is_kubernetes and connection["namespace"]:  # noqa: SLF001
                hook._conf.setdefault("spark.kubernetes.namespace", connection["namespace"])  # noqa: SLF001
            hook._is_kubernetes = False  # noqa: SLF001
        poll = hook._poll_k8s_driver_via_api  # noqa: SLF001

        def known() -> str:
            return _known(poll(), hook._kubernetes_driver_pod)  # noqa: SLF001

        hook._poll_k8s_driver_via_api = known  # type: ignore[method-assign]  # noqa: SLF001
        return hook

    def over_connect(self, work: Callable[[Callable[[], SparkSession]], T]) -> T:
        """Return what `work` returns in this process, given a session of the Spark Connect server."""
        from ferry.run.spark.session import connect  # noqa: PLC0415 - Spark only where it is used

        url = SparkConnectHook(self._conn_id).get_connection_url()
        try:
            with airflow_errors():
                self._connected = True
                return work(lambda: connect(url))
        except Terminated:
            raise Failure(self.killed) from None
        finally:
            self._connected = False


def _known(phase: str | None, pod: str | None) -> str:
    """Return the last phase of a driver's pod; raises Failure when the provider found no pod any more."""
    if phase is None:
        raise Failure(
            f"how driver {pod} ended is not known, because Kubernetes has no such pod any more: the next try of this"
            " task starts another one"
        )
    return phase


def failed(error: Exception, ended: JobEnd | None, code: int | None) -> Failure:
    """Return the task's error from the provider's: the job's own, if it left one, else by its exit code.

    An error that a retry meets again fails at once.
    """
    sentence, final = (ended.sentence, ended.final) if ended else (unsaid(str(error), code), code == EXIT_REFUSED)
    return FinalFailure(sentence) if final else Failure(sentence)


def unsaid(provided: str, code: int | None) -> str:
    """Return in one sentence how a job ended that left no error, or the provider's text if the job did not end.

    `provided` holds the whole command and up to 500 lines of the job's output, which the log has already.
    """
    if not code:
        return provided
    lines = [line.strip() for line in provided.partition(OUTPUT)[2].splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    last = f" ({(errors or lines)[-1][:LONGEST_LINE]})" if lines else ""
    return (
        f"spark-submit ended with exit code {code} and without an error of Ferry{last}: open the group {SPARK} of this"
        " log, which has all that it printed"
    )


def job_path(name: str) -> Path:
    """Return a job's file: next to this package in a wheel, in `jobs/` of a checkout."""
    package = Path(__file__).parent
    for path in (package / "jobs" / name, package.parents[1] / "jobs" / name):
        if path.exists():
            return path
    raise BadInput(f"the job file {name} is not next to {package}: install Ferry's wheel again")
