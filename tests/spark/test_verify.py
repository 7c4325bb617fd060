"""The comparison as a Spark job: by spark-submit in local mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from jsonschema import Draft202012Validator

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.run.spark.submit import submit_conf
from tests.harness import Lab, Message, create_topic, new_alias, numbered, producer, send
from tests.program import SCHEMAS
from tests.spark.jobs import BIN, LOCAL, ROOT

JOB = ROOT / "jobs" / "verify_job.py"


def submitted(
    lab: Lab, folder: Path, *arguments: str, more: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """The job; `more` are settings of Spark."""
    conf = [part for key, value in {**submit_conf(), **more}.items() for part in ("--conf", f"{key}={value}")]
    return subprocess.run(
        [BIN / "spark-submit", "--master", "local[2]", *conf, JOB, "--config", lab.write(folder),
         "--flow", str(lab.flow.flow), *arguments],
        env={**os.environ, **LOCAL, "PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_tasks_compare_what_was_copied_and_the_driver_sums_up(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 3)
    send(producer(source_cluster), topic, numbered(3_000, partitions=3))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 3_000
    send(producer(target_cluster), lab.target_topic(topic), [Message(value=b"foreign", partition=1)])
    out = tmp_path / "verified.json"
    job = submitted(lab, tmp_path, "--out", str(out))
    assert job.returncode == 1, job.stdout + job.stderr
    body = json.loads(out.read_text())
    Draft202012Validator(json.loads((SCHEMAS / "verify.json").read_text())).validate(body)
    assert (body["equal"], body["complete"], body["partitions"], body["records"]) == (False, True, 3, 3_000)
    assert [(one["partition"], one["kind"], one["source_range"]) for one in body["differences"]] == [
        (1, "extra", [1_000, 1_000])
    ]
    assert f"extra in {topic}-1 [1000, 1000]" in job.stdout
    assert "in 2 tasks" in job.stdout


def test_what_a_run_copied_is_compared_and_the_outcome_kept_for_its_report(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(1_000, partitions=2))
    settings = {"ferry.verify": "content"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    lab.micro_run()
    send(producer(source_cluster), topic, numbered(200, partitions=2))
    run = lab.micro_run().plan.run
    job = submitted(lab, tmp_path, "--run", run, "--keep")
    assert job.returncode == 0, job.stdout + job.stderr
    with lab.runs() as runs:
        report = runs.report(run)
    assert report.verified is not None
    assert (report.state, report.verified.equal, report.verified.records) == (RunState.SUCCESS, True, 200)
