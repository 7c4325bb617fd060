"""The DAG file is read without the network: whoever connects, sends or resolves a name raises an event seen here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferry.errors import BadInput
from ferry_airflow.dags import flow_dags
from ferry_airflow.naming import TELLING
from tests.golden import Golden

ROOT = Path(__file__).parents[2]

VERBS = (
    *("ferry", "ferry_backfill", "ferry_drill", "ferry_failback", "ferry_failover", "ferry_switchover"),
    "ferry_verify",
)

OF_GROUPS = "ferry_groups__east__west"
"""A DAG that only the flow has whose file asks for it."""

CONFIG = """
clusters = east, west
east.bootstrap.servers = kafka.east.invalid:9092, 127.0.0.1:1
west.bootstrap.servers = kafka.west.invalid:9092
west.security.protocol = SASL_SSL
west.sasl.mechanism = PLAIN
west.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="u" password="${file:/no/such/secrets:word}";
east->west.enabled = true
east->west.ferry.verify.schedule = @daily
east->west.ferry.groups.schedule = * * * * *
west->east.enabled = true
west->east.ferry.verify = receipt
topics = .*
"""

PROGRAM = """
import json, runpy, socket, sys

# Python raises these audit events (PEP 578) whichever library asks. Binding reaches nobody: urllib3 does it when it is
# imported, to learn whether there is IPv6.
REACHING_OUT = {
    "socket.connect", "socket.sendto", "socket.sendmsg",
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
}
used = []

def watch(event, arguments):
    if event in REACHING_OUT:
        used.append(f"{event} {arguments[-2:]}")
        raise OSError(f"no network here: {event}")

sys.addaudithook(watch)
found = runpy.run_path(sys.argv[1])
parsed = list(used)
try:
    socket.create_connection(("127.0.0.1", 1))
except OSError:
    pass
dags = sorted(name for name in found if name.startswith("ferry_"))
form = sorted(found[dags[0]].params)
verify = sorted(found[dags[-1]].params)
tasks = {name: found[name].task_ids for name in dags}
paused = {name: found[name].is_paused_upon_creation for name in dags}
said = {"dags": dags, "form": form, "verify": verify, "tasks": tasks, "paused": paused, "parsing": parsed, "all": used}
print(json.dumps(said))
"""


def parsed(tmp_path: Path, **environment: str) -> Any:
    """What the DAG file holds in an environment, and whom it asked while it was read."""
    config = tmp_path / "flows.properties"
    config.write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "dags" / "ferry_flows.py")],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "FERRY_CONFIG": str(config), "AIRFLOW_HOME": str(tmp_path / "home"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the DAG file holds where nothing is said of clusters or DAGs."""
    return parsed(tmp_path_factory.mktemp("whole"))


def test_parsing_the_dag_file_reaches_out_to_nobody(whole: Any) -> None:
    said = whole
    flows = ["ferry__east__west", "ferry__west__east"]
    assert said["dags"] == sorted(
        [
            *(f"{verb}__{flow}" for verb in VERBS for flow in ("east__west", "west__east")),
            OF_GROUPS,
        ]
    )
    assert {name: said["tasks"][name] for name in flows} == {
        flows[0]: ["plan", "copy", "checkpoint", "report"],
        flows[1]: ["plan", "copy", "checkpoint", "report", "verify"],
    }, "a flow that does not verify itself has no task for it"
    assert said["verify"] == ["from", "mode", "partition", "sample", "to", "topics", "without_ledger"]
    assert said["form"] == ["dry_run", "max_bytes", "max_records", "max_seconds", "take_over", "topics"]
    others = [name for name in said["dags"] if name not in flows]
    assert all(set(TELLING) & set(said["tasks"][name]) for name in others), "the page shows what these return"
    assert said["parsing"] == []
    assert said["all"], "the watch does not see a connection being made"


def test_only_what_begins_by_itself_waits_for_somebody_to_unpause_it(whole: Any) -> None:
    paused = whole["paused"]
    scheduled = {"ferry__east__west", "ferry__west__east", "ferry_verify__east__west", OF_GROUPS}
    assert paused == {name: None if name in scheduled else False for name in paused}


def test_a_task_builds_its_own_dag_alone(whole: Any, tmp_path: Path) -> None:
    every = whole["tasks"]
    for name in ("ferry__west__east", "ferry_failback__east__west"):
        assert parsed(tmp_path, _AIRFLOW_PARSING_CONTEXT_DAG_ID=name)["tasks"] == {name: every[name]}
    other = "ferry__of__another_file"
    assert parsed(tmp_path, _AIRFLOW_PARSING_CONTEXT_DAG_ID=other)["tasks"] == every


def test_each_data_centre_has_the_dags_of_its_own_clusters(tmp_path: Path) -> None:
    assert parsed(tmp_path, FERRY_CLUSTERS="west")["dags"] == sorted(
        [
            *(f"{verb}__east__west" for verb in VERBS),
            OF_GROUPS,
        ]
    )


def test_flows_that_would_share_a_dag_are_refused(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "flows.properties"
    lines = "".join(f"{alias}.bootstrap.servers = h:1\n" for alias in ("a", "b__c", "a__b", "c"))
    file.write_text(f"clusters = a, b__c, a__b, c\n{lines}a->b__c.enabled = true\na__b->c.enabled = true\n")
    with pytest.raises(BadInput) as wrong:
        flow_dags(file)
    golden(wrong.value)
    file.write_text(file.read_text().replace("a__b->c.enabled = true\n", ""))
    assert "ferry__a__b__c" in flow_dags(file)
