"""OpenLineage's events of a copy, made by its own provider and written by its own transport into a file."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow.providers.apache.kafka.assets import kafka as theirs
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

from ferry.config.settings import parse_settings
from ferry.ledger.report import Report
from ferry.model import Segment
from ferry_airflow.assets import topic_asset
from ferry_airflow.lineage import lineage_of
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import PLAN, RECEIPT, place, redealt, refusal

FLOW = parse_settings(
    "clusters = a, b\na.bootstrap.servers = one.a:9092, two.a:9092\nb.bootstrap.servers = SSL://[::1]:9093\n"
    "a->b.enabled = true\n",
    "f",
).flow("a->b")

REPORT = Report(
    plan=PLAN,
    started_ms=1_000,
    receipts=(
        replace(RECEIPT, segments=(Segment(source_start=0, target_start=7, count=40),)),
        replace(RECEIPT, source=place("orders", 1), target=place("a.orders", 1), bytes=400),
        replace(RECEIPT, source=place("audit"), target=place("a.audit"), records=0, segments=()),
        redealt(receipt(1, (5, 3), target_next=9), target_start=6, records=3, bytes=30),
    ),
    refusals=(refusal("t", 0),),
    unfinished=(),
    left=(),
    done=2,
)

PROGRAM = """
import datetime, types
from dataclasses import replace
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.utils.state import TaskInstanceState
from ferry_airflow.operators import FerryCopyOperator
from tests.airflow.test_lineage import FLOW, REPORT
from ferry_airflow.lineage import is_sent, lineage_of

assert is_sent()
task = FerryCopyOperator(task_id="copy", config="/f", flow="a->b", conn_id="spark_default")
nothing = lineage_of(FLOW, replace(REPORT, receipts=()))
assert (nothing.inputs, nothing.outputs) == ([], [])
assert task.get_openlineage_facets_on_complete(None).outputs == [], "nothing was to be copied"
task.lineage = lineage_of(FLOW, REPORT)
run = types.SimpleNamespace(run_id="r", dag_id="ferry__a__b")
now = datetime.datetime.now(datetime.UTC).isoformat()
adapter = OpenLineageAdapter()
for state, told, more in (
    (TaskInstanceState.SUCCESS, adapter.complete_task, {}),
    (TaskInstanceState.FAILED, adapter.fail_task, {"error": "killed"}),
):
    found = ExtractorManager().extract_metadata(run, task, task_instance_state=state, task_instance=None)
    told(
        run_id="01a2b3c4-0000-7000-8000-000000000001", job_name="ferry__a__b.copy", end_time=now, task=found,
        nominal_start_time=None, nominal_end_time=None, owners=[], tags=[], run_facets={}, job_description=None,
        job_description_type=None, **more,
    )
"""


def test_the_providers_event_has_both_topics_their_ranges_and_the_run(tmp_path: Path) -> None:
    """Also of a copy that failed: what was committed stays."""
    file = tmp_path / "events.json"
    root = Path(__file__).parents[2]
    environment = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(file), "append": True}),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "airflow-west",
        "PYTHONPATH": ":".join(map(str, (root, root / "src", root / "plugins"))),
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    completed, failed = map(json.loads, file.read_text().splitlines())
    assert (completed["eventType"], failed["eventType"]) == ("COMPLETE", "FAIL")
    assert (failed["inputs"], failed["outputs"]) == (completed["inputs"], completed["outputs"])
    assert (completed["job"]["namespace"], completed["job"]["name"]) == ("airflow-west", "ferry__a__b.copy")
    (source, dealt), (target, dealt_to) = completed["inputs"], completed["outputs"]
    assert (dealt["name"], dealt_to["name"]) == ("t", "a.t")
    assert dealt["facets"]["ferry_ranges"]["partitions"] == [
        {"partition": 0, "start": 0, "end": 5},
        {"partition": 1, "start": 0, "end": 3},
    ]
    assert dealt_to["facets"]["ferry_ranges"]["partitions"] == [{"partition": 1, "start": 6, "end": 9}]
    assert (source["namespace"], source["name"]) == ("kafka://one.a:9092", "orders")
    assert (target["namespace"], target["name"]) == ("kafka://[::1]:9093", "a.orders")
    assert target["outputFacets"]["outputStatistics"]["rowCount"] == 80
    assert target["outputFacets"]["outputStatistics"]["size"] == 4_400
    assert source["facets"]["ferry_ranges"]["partitions"] == [
        {"partition": 0, "start": 0, "end": 40},
        {"partition": 1, "start": 0, "end": 40},
    ]
    assert target["facets"]["ferry_ranges"]["partitions"][0] == {"partition": 0, "start": 7, "end": 47}
    run: dict[str, Any] = completed["run"]["facets"]["ferry_run"]
    assert (run["flow"], run["state"], run["refused"], run["records"]) == ("a->b", "partial", 1, 83)
    assert run["run"] == PLAN.run


def test_the_kafka_provider_gives_a_topic_the_same_name() -> None:
    """Airflow's assets go through the provider's handler of `kafka://`, and become datasets by its converter."""
    assert ProvidersManagerTaskRuntime().asset_uri_handlers["kafka"] is theirs.sanitize_uri
    outputs = lineage_of(FLOW, REPORT).outputs
    assert [out.name for out in outputs] == ["a.orders", "a.t"]
    for out in outputs:
        asset = topic_asset(FLOW, "target", out.name)
        made = theirs.create_asset(server=out.namespace.removeprefix("kafka://"), topic=out.name)
        assert (asset.name, asset.uri) == (made.name, made.uri)
        dataset = theirs.convert_asset_to_openlineage(asset, None)
        assert (dataset.namespace, dataset.name) == (out.namespace, out.name)
