"""The tasks that compare the clusters of a flow: a run's own ranges, or what the trigger form asks for."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from ferry.features.verify.acts.wanted import Wanted
from ferry.model import VerifyMode
from ferry_airflow.base import airflow_errors, final_failure, flow_named, is_dry_run, live_run, run_of
from ferry_airflow.naming import verify_dag_id
from ferry_airflow.report_link import ResultLink, RunLink, result_on_page
from ferry_airflow.spark_job import CONNECT, FerrySparkOperator

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig

RETURNED = 20
"""Differences that the task returns; its log has more."""


class FerryVerifyRunOperator(FerrySparkOperator):
    """Lets the run verify what it has copied, if that is due. What it finds fails the report, not this task."""

    job = "verify_job.py"
    killed = "killed; the run is not verified"
    operator_extra_links = (RunLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Read receipts and the target in this process; whole records of both clusters in Spark's tasks."""
        if is_dry_run(context):
            raise AirflowSkipException("dry run: nothing was copied")
        from ferry_airflow import steps, tables  # noqa: PLC0415 - Kafka's libraries only where they are used

        run = live_run(self, context)
        with airflow_errors():
            flow = flow_named(self)
            mode, found = steps.verify_by_receipt(flow, run)
        if mode is VerifyMode.OFF:
            self.log.info("run %s of %s is not to verify itself, or has copied nothing", run, self.flow)
        elif mode is VerifyMode.CONTENT:
            self._compare(flow, context, run)
        for line in tables.run_verified_lines(found):
            self.log.info("%s", line)

    def _compare(self, flow: FlowConfig, context: Context, run: str) -> None:
        connection = self.spark_connection()
        if connection.conn_type != CONNECT:
            self.submit(connection, flow, context, ["--run", run, "--keep"])
            return
        from ferry.features.verify.spark.job import VerifyRequest, keep_outcome, verify_flow  # noqa: PLC0415 - as above
        from ferry_airflow import tables  # noqa: PLC0415 - as above

        wanted = Wanted(run=run)
        request = VerifyRequest(flow=flow, wanted=wanted, say=lambda text: self.log.info("%s", text))
        kept = self.over_connect(lambda connect: keep_outcome(flow, wanted, verify_flow(request, connect)))
        for line in tables.run_verified_lines(kept):
            self.log.info("%s", line)


class FerryVerifyOperator(FerrySparkOperator):
    """Compares what the trigger form asks for of all that the flow has copied; fails when the sides differ."""

    job = "verify_job.py"
    killed = "killed; nothing is known"
    operator_extra_links = (ResultLink(),)
    run_link = ""

    def execute(self, context: Context) -> None:
        """Print differences without keys and values, and return the result as `ferry verify --json` does."""
        from ferry_airflow import steps, tables  # noqa: PLC0415 - Kafka's libraries only where they are used

        with airflow_errors():
            flow = flow_named(self)
            own = verify_dag_id(flow.flow)
            self.run_link = result_on_page(flow.flow, str(context["dag"].dag_id), own, run_of(context))
            wanted = steps.wanted_of(context["params"])
            wanted.check()
        connection = self.spark_connection()
        if connection.conn_type == CONNECT:
            body = self._over_connect(flow, wanted)
        else:
            body = self._submitted(connection, flow, wanted, context)
        for line in tables.verified_lines(body):
            self.log.info("%s", line)
        short = tables.shortened(body, RETURNED)
        context["ti"].xcom_push(key="return_value", value=short)  # a task that fails returns nothing otherwise
        if not body["equal"]:
            raise final_failure(tables.verified_sentence(body))

    def _over_connect(self, flow: FlowConfig, wanted: Wanted) -> dict[str, Any]:
        from ferry.features.observe.acts.after_run import publish_verification  # noqa: PLC0415 - as above
        from ferry.features.verify.spark.job import VerifyRequest, verify_flow  # noqa: PLC0415 - as above
        from ferry.ledger.verified_codec import verified_json  # noqa: PLC0415 - as above

        request = VerifyRequest(flow=flow, wanted=wanted, say=lambda text: self.log.info("%s", text))
        result = self.over_connect(lambda connect: verify_flow(request, connect))
        publish_verification(flow, result, narrow=wanted.is_narrow)
        return verified_json(result)

    def _submitted(self, connection: Any, flow: FlowConfig, wanted: Wanted, context: Context) -> dict[str, Any]:
        from ferry_airflow import steps  # noqa: PLC0415 - as above

        with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
            out = Path(folder) / "verified.json"
            try:
                self.submit(connection, flow, context, [*steps.verify_arguments(wanted), "--out", str(out)])
            except AirflowException:
                if not out.exists():
                    raise
            if not out.exists():
                raise final_failure(
                    f"the job left no result at {out}: a driver in the Spark cluster cannot, so make the deploy mode"
                    f" of {self._conn_id!r} client"
                )
            found: dict[str, Any] = json.loads(out.read_text())
            return found
