"""What the documents tell people to type, typed: every line of these commands against two real clusters."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev import ClusterSpec, RunningCluster, up_all
from ferry.dev.jars import jars, java
from tests.clusters import KEPT
from tests.harness import Message, commit_offsets, create_topic, delete_topic, producer, send, watermark
from tests.program import Answer, warm_ferry
from tests.tiers import ANSWER_S, IN_PART
from tests.world.documents.commands import ROOT, Typed, answered, placed, resolved, told, typed, unlike

RUN_HERE: Mapping[str, int] = {
    "version": 0,
    "config check": 0,
    "config explain": 0,
    "explain": 0,
    "status": 0,
    "doctor": 0,
    "support-bundle": 0,
    "config policy": 0,
    "flows": 0,
    "acls required": 0,
    "plan": 0,
    "run": 0,
    "lag": 0,
    "ledger show": 0,
    "ledger export": 0,
    "translate": 0,
    "groups show": 0,
    "groups sync": 0,
    "groups snapshot": 0,
    "backfill": 0,
    "lanes list": 0,
    "verify": 0,
    "readiness": 1,  # the file of one flow has none back
    "switches list": 0,
}
"""Commands in the order in which they make sense, with the exit code that each line of them ends with."""

OPEN = "switchover-20260131T060000Z-1a2b"
"""The switch that documents name."""

BY_TEST_ALL = frozenset(
    {
        "ferry doctor",
        "ferry support-bundle",
        "ferry support-bundle --output case-4711.tar.gz",
        "ferry plan 'primary->backup'",
        "ferry run",
        "ferry run 'primary->backup'",
        "ferry lag",
        "ferry lag 'primary->backup'",
        "ferry lag 'primary->backup' --rpo-seconds 600",
        "ferry lag --config mm2.properties",
        "ferry ledger 'primary->backup' --topic orders --partition 3 --offset 1042",
        "ferry ledger 'primary->backup' --topic payments --partition 0 --offset 1042",
        "ferry ledger --runs",
        "ferry translate 'primary->backup' orders 3 1042",
        "ferry groups 'primary->backup'",
        "ferry backfill 'primary->backup' --lane backfill-fix --from-offset orders:3:1000 --to-offset orders:3:2000",
        "ferry verify 'primary->backup'",
        "ferry verify 'primary->backup' --topic orders",
        "ferry verify 'primary->backup' --without-ledger --topic orders",
        "ferry readiness 'primary->backup' --rpo-records 0",
        "ferry migrate hand-back 'primary->backup'",
        "+ ferry groups snapshot 'primary->backup' --name before-the-drill",
        "ferry groups diff 'primary->backup' --snapshot before-the-drill",
        "ferry groups rollback 'primary->backup' --snapshot before-the-drill --dry-run",
        "ferry lanes drop 'primary->backup' backfill-january --dry-run",
        "ferry drills shadow 'primary->backup' --from 2026-01-31T06:00:00Z --dry-run",
        "ferry drills partial 'primary->backup' --group billing --approve-by anna",
        "ferry drills full 'primary->backup' --approve-by anna",
        "ferry switchover 'primary->backup' --dry-run",
        "ferry switchover 'primary->backup' --id june-exercise --approve-by ann",
        "ferry switches show 'primary->backup' june-exercise",
        "ferry failback 'primary->backup' --approve-by ann",
        "ferry failover 'primary->backup' --dry-run",
        "ferry reports list /srv/reports",
        "ferry reports verify /srv/ferry/reports --key report.pub",
    }
)
"""Lines that `make test` leaves to `make test-all`: it types another one of the same command."""

ALONE: Sequence[tuple[str, int]] = (("ferry pause --topic payments.audit --reason 'schema migration'", 0),)
"""What its one flow need not be named in."""

STORY: Sequence[tuple[str, int]] = (
    ("ferry acls diff 'primary->backup'", 2),  # these brokers have no authorizer
    ("ferry migrate mm1 'primary->backup' --group mirror --dry-run", 2),  # there is nothing to take over
    ("ferry migrate mm2 'primary->backup' --dry-run", 2),
    ("ferry migrate hand-back 'primary->backup' --dry-run", 2),  # MirrorMaker 2 has no offsets topic there
    ("ferry migrate hand-back 'primary->backup'", 2),
    ("ferry pause 'primary->backup' --topic orders --reason 'schema migration' --until 2026-01-31T06:00:00Z", 0),
    ("ferry resume 'primary->backup' --dry-run", 0),
    ("ferry resume 'primary->backup' --topic orders", 0),
    ("+ ferry resume 'primary->backup' --topic payments.audit", 0),
    ("ferry skip 'primary->backup' orders 3 --to 1043 --reason 'bad disk, INC-4711' --dry-run", 2),  # nothing is stuck
    ("ferry groups diff 'primary->backup' --snapshot before-upgrade", 0),
    ("ferry groups rollback 'primary->backup' --snapshot before-upgrade --dry-run", 0),
    ("+ ferry groups snapshot 'primary->backup' --name before-the-drill", 0),
    ("ferry groups diff 'primary->backup' --snapshot before-the-drill", 0),
    ("ferry groups rollback 'primary->backup' --snapshot before-the-drill --dry-run", 0),
    ("ferry lanes drop 'primary->backup' backfill-january --dry-run", 0),
    ("ferry lanes drop 'primary->backup' backfill-january --yes", 0),
    ("ferry ledger rebuild 'primary->backup' --input ledger.jsonl --dry-run", 2),  # there is a ledger
    ("ferry drills tabletop 'primary->backup'", 0),
    ("ferry drills shadow 'primary->backup' --from 2026-01-31T06:00:00Z --dry-run", 0),
    ("ferry drills shadow 'primary->backup'", 0),
    ("ferry drills partial 'primary->backup' --topic orders --approve-by anna", 0),
    ("ferry drills partial 'primary->backup' --group billing --approve-by anna", 0),
    ("ferry drills full 'primary->backup' --dry-run", 0),
    ("ferry drills full 'primary->backup' --approve-by anna", 0),
    ("ferry switchover 'primary->backup' --dry-run", 0),
    ("ferry switchover 'primary->backup'", 2),  # nobody is at a terminal, to approve it
    # Its producers are not quiet in no time, so it stands there.
    (
        f"+ ferry switchover 'primary->backup' --id {OPEN} --approve-by ann --quiet-timeout 0",
        4,
    ),
    (f"ferry switches show 'primary->backup' {OPEN}", 0),
    (
        f"ferry switches abandon 'primary->backup' {OPEN} --reason 'producers could not be stopped'",
        0,
    ),
    (f"ferry reports switch 'primary->backup' {OPEN}", 1),  # as it ended
    ("ferry switchover 'primary->backup' --id june-exercise --approve-by ann", 0),
    ("ferry switches show 'primary->backup' june-exercise", 0),
    ("ferry failback 'primary->backup' --approve-by ann", 0),
    ("ferry switchover 'primary->backup' --approve-by anna --redirect-command ./move-clients", 0),
    ("ferry failback 'primary->backup' --approve-by anna --export stranded.jsonl", 0),
    ("ferry failover 'primary->backup' --dry-run", 0),
    ("ferry failover 'primary->backup' --approve-by anna", 0),
    ("ferry reports list", 0),
    ("ferry reports list /srv/reports", 0),
    ("ferry reports verify /srv/reports --key reports.pub.pem", 0),
    ("ferry reports verify /srv/ferry/reports --key report.pub", 0),
)
"""What has its place in one story, behind those: each line with the exit code. Those with a + are in no document."""

OUTAGE = "'primary->backup' --id outage-4711"
"""The failover that its runbook names."""

RUNBOOKS: Mapping[str, Sequence[tuple[str, int]]] = {
    "lag": (
        ("! records come to the source", 0),
        ("ferry lag 'primary->backup' --rpo-records 100", 1),
        ("+ ferry plan 'primary->backup'", 0),
        ("ferry ledger 'primary->backup' --pauses", 0),
        ("+ ferry ledger 'primary->backup' --runs", 0),
        ("+ ferry ledger 'primary->backup' --run cli-20260131T060000Z-1a2b", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("+ ferry lag 'primary->backup' --rpo-seconds 600", 0),
    ),
    "retention": (
        ("! the source deletes records", 0),
        ("+ ferry plan 'primary->backup'", 1),
        ("ferry lag 'primary->backup' --topic orders", 0),
        ("ferry skip 'primary->backup' orders 3 --to 2450 --reason 'retention passed, INC-4712' --dry-run", 0),
        ("ferry skip 'primary->backup' orders 3 --to 2450 --reason 'retention passed, INC-4712'", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("ferry ledger 'primary->backup' --topic orders --partition 3 --offset 2400", 1),  # no receipt
    ),
    "upgrade": (
        ("ferry version", 0),
        ("ferry ledger export 'primary->backup' --output before-upgrade.jsonl", 0),
        ("+ ferry groups snapshot 'primary->backup' --name before-upgrade", 0),
        ("ferry config check --quiet", 0),
        ("+ ferry plan 'primary->backup'", 0),
        ("ferry pause 'primary->backup' --reason upgrade", 0),
        ("ferry ledger 'primary->backup' --runs --last 1", 0),
        ("ferry version", 0),
        ("ferry resume 'primary->backup'", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("+ ferry verify 'primary->backup'", 0),
        ("+ ferry groups diff 'primary->backup' --snapshot before-upgrade", 0),
    ),
    "without-airflow": (
        ("ferry config check --quiet", 0),
        ("ferry flows", 0),
        ("+ ferry plan 'primary->backup'", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("ferry run 'primary->backup' --take-over", 0),
        ("+ ferry lag 'primary->backup' --rpo-seconds 600", 0),
        ("+ ferry switches list 'primary->backup'", 0),
    ),
    "lost-ledger": (
        ("+ ferry ledger export 'primary->backup' --output ledger.jsonl", 0),
        ("! the ledger is lost", 0),
        ("+ ferry plan 'primary->backup'", 1),
        ("+ ferry ledger rebuild 'primary->backup' --input ledger.jsonl --dry-run", 0),
        ("ferry ledger rebuild 'primary->backup' --input ledger.jsonl", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("+ ferry verify 'primary->backup'", 0),
        ("+ ferry groups sync 'primary->backup' --dry-run", 0),
    ),
    "failover": (
        ("! records come to the source", 0),
        ("! the source is lost", 0),
        ("ferry lag 'primary->backup' --patience 10", 3),
        ("ferry switches list 'primary->backup' --patience 10", 0),
        ("ferry failover 'primary->backup' --dry-run --patience 10", 0),
        (f"ferry failover {OUTAGE} --approve-by ann --lost-at 2026-01-31T06:00:00Z --patience 10", 0),
        (f"ferry failover {OUTAGE} --patience 10", 0),
        ("ferry switches show 'primary->backup' outage-4711 --patience 10", 0),
        ("+ ferry reports list", 0),
    ),
    "failback": (
        ("! records come to the target", 0),
        ("! the source is back", 0),
        ("+ ferry switches list 'primary->backup'", 0),
        ("ferry failback 'primary->backup' --dry-run", 0),
        ("ferry failback 'primary->backup' --id return-4711 --approve-by ann --export stranded-4711.jsonl", 0),
        ("ferry failback 'primary->backup' --id return-4711", 0),
        ("ferry switches show 'primary->backup' return-4711", 0),
        ("+ ferry run 'primary->backup'", 0),
        ("+ ferry readiness 'primary->backup'", 0),
        ("+ ferry verify 'primary->backup'", 0),
    ),
    "switchover": (
        ("+ ferry readiness 'primary->backup'", 0),
        ("+ ferry switchover 'primary->backup' --dry-run", 0),
        ("+ ferry switchover 'primary->backup' --id june-exercise --approve-by ann", 0),
        ("ferry switchover 'primary->backup' --id june-exercise", 0),
        ("+ ferry switches show 'primary->backup' june-exercise", 0),
        ("ferry switches abandon 'primary->backup' june-exercise --reason 'producers do not stop'", 2),  # it has ended
        ("ferry run 'backup->primary'", 0),
        ("ferry readiness 'backup->primary'", 0),
        ("+ ferry switches list 'primary->backup'", 0),
    ),
}
"""The commands of each runbook in its order, each with the exit code, and the pages in an order that works.

Those with a + are in other documents, too, and typed with these as well. A ! does to the clusters what the runbook is
for.
"""

OF_RUNBOOKS = frozenset(line for page in RUNBOOKS.values() for line, _ in page if line[0] not in "+!")
"""The lines that only runbooks have."""

HASTE = ("switchover", "failback")
"""Commands that wait for producers to be quiet for ten seconds; here it is one."""

PLACES = {"/srv/reports": "reports", "/srv/ferry/reports": "reports"}
"""Paths of the documents, and where they are here."""

BOTH_WAYS = """
backup->primary.enabled = true
ferry.rpo.records = 100
ferry.report.dir = reports
ferry.report.private.key = report.pem
"""
"""What the story's lines need beside the file: a way back, and reports."""

_INTERACTIVE = "it asks a person at a terminal"
_SPARK = "it wants a flow with transforms, and starts a Spark"
_CLUSTERS = "it makes or deletes clusters in the checkout's own folder, up to six brokers: ferry.dev is called directly"
NOT_TYPED: Mapping[str, tuple[str, str]] = {
    "ferry config new mm2.properties": (_INTERACTIVE, "pure/config/test_new.py"),
    "ferry plan 'primary->backup' --sample 3": (_SPARK, "spark/test_plan_sample.py"),
    "ferry plan 'primary->backup' --config mm2.properties --sample 3": (_SPARK, "spark/test_plan_sample.py"),
    "ferry run 'primary->backup' --spark": (_SPARK, "spark/test_transformed.py"),
    "ferry run 'primary->backup' --config mm2.properties --spark": (_SPARK, "spark/test_transformed.py"),
    "airflow setup": ("it writes to the database of an Airflow", "airflow/test_setup.py"),
    "metrics serve": ("it answers until it is interrupted", "world/cli/test_metrics_serve.py"),
    "ferry status --watch 10": ("it shows the table until it is interrupted", "pure/cli/test_status.py"),
    "dev up": (_CLUSTERS, "clusters.py"),
    "dev down": (_CLUSTERS, "kafka/dev/test_cluster.py"),
}
"""Lines (or all of a command) that are not typed here: why not, and the test that does what they do."""

OTHERS_TYPED: Mapping[tuple[str, ...], str] = {
    ("airflow", "connections"): "airflow/test_setup.py",
    ("dags", "unpause"): "airflow/test_typed.py",
    ("dags", "trigger"): "airflow/test_typed.py",
    ("kafka-consumer-groups.sh",): "kafka/mm1/test_takeover.py",
    ("kafka-console-consumer.sh", "--formatter"): "kafka/mirror/test_clients.py",
    ("kafka-console-consumer.sh", "print.key=true"): "world/documents/test_typed.py",
    ("kafka-configs.sh",): "world/documents/test_typed.py",
    ("/opt/kafka/bin/kafka-topics.sh",): "world/documents/test_typed.py",
    ("/opt/kafka/bin/kafka-producer-perf-test.sh",): "world/documents/test_typed.py",
    ("make", "wheel"): "world/packaging/conftest.py",
    ("pip", "freeze"): "world/packaging/test_existing_airflow.py",
    ("pip", "there.txt"): "world/packaging/test_existing_airflow.py",
    ("openssl", "pkeyutl"): "world/reports/test_folder.py",
    ("openssl", "dgst"): "world/reports/test_folder.py",
    ("cd", "docker"): "world/docker/test_files.py",
    ("./secrets.sh",): "world/docker/test_files.py",
    ("cp", ".env"): "world/docker/test_files.py",
}
"""Lines of other programs, by words that are in no other line, and the test that takes the line from the document and
runs it: at another address, without `docker compose exec`, and with an end where it would wait for more."""

_A_VARIABLE = "it sets a variable of the reader's shell"
_HOURS = "hours long: its figures, and by which command each was made, are in bench/README.md"
OTHERS_NOT_TYPED: Mapping[tuple[str, ...], str] = {
    ("docker", "up"): "it wants a container engine: docker/test_topology.py runs the same processes without one",
    ("docker", "ferry"): "the same: `ferry lag` is typed here",
    ("export",): _A_VARIABLE,
    ("page-somebody",): "it stands for whatever the reader has",
    (
        "pip",
        "ferry-replicator[kerberos]",
    ): "it installs a release: packaging/test_requirements.py has the extras, packaging/test_wheel.py a wheel",
    (".venv/bin/python", "bench/long_ledger.py"): _HOURS,
    (".venv/bin/python", "ferry_airflow.demo"): "it stops what runs in the checkout's own folder: demo/test_demo.py",
    ("make", "bench"): _HOURS,
    ("make", "demo"): "minutes long, and a gigabyte: demo/test_demo.py has its steps, tests/airflow all else of it",
    ("make", "drill"): "the same with a drill: `ferry drills shadow` is typed here",
    ("make", "setup"): "who runs the tests has made it",
    ("make", "test"): "runs this",
}
"""Those that no test runs, and why not."""

WITHOUT_CLUSTERS: Mapping[str, int] = {
    "config new": 0,
    "migrate import-mm1": 0,  # where the consumer's group stands is left to decide
    "dev status": 0,
}
"""Commands whose lines are typed in a folder that has MirrorMaker 1's files, and no other."""

FILE = """
clusters = primary, backup
primary.bootstrap.servers = {source}
backup.bootstrap.servers = {target}
primary->backup.enabled = true
primary->backup.topics = orders, payments.*
groups = billing
heartbeats.replication.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
tasks.max = 2
"""
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}
"""What Kafka's scripts run."""
RUN = "cli-20260131T060000Z-1a2b"
"""The run that documents name in their examples."""

JANUARY = 1_768_003_200_000
"""10 January 2026, in the window that documents copy again."""


@pytest.fixture
def folder(source_cluster: RunningCluster, target_cluster: RunningCluster, tmp_path: Path) -> Path:
    """A folder with mm2.properties, the documents' flow; its topics have what the documents name in them."""
    return fill(source_cluster, target_cluster, tmp_path)


@pytest.fixture
def pair(cluster_home: Path) -> Iterator[tuple[RunningCluster, RunningCluster]]:
    """Two clusters of the runbooks' own: one is stopped, and the other documents' topics have the same names."""
    specs = [ClusterSpec(name=f"runbook-{name}", properties=KEPT) for name in ("primary", "backup")]
    primary, backup = up_all(specs, home=cluster_home)
    yield primary, backup
    primary.stop()
    backup.stop()


def fill(source: RunningCluster, target: RunningCluster, folder: Path) -> Path:
    """Write the documents' file to a folder, and the records that they name to the source."""
    kept = {"retention.ms": "-1"}
    create_topic(source, "orders", 6, kept)
    create_topic(source, "payments.audit", 1, kept)
    create_topic(source, "payments", 1, kept)
    records = [
        Message(value=b"%d" % number, key=b"%d" % number, partition=partition, timestamp=JANUARY + number)
        for partition, count in enumerate((50, 50, 50, 2_100, 50, 50))
        for number in range(count)
    ]
    client = producer(source)
    send(client, "orders", records)
    send(client, "payments.audit", records[:50])
    send(client, "payments", [replace(record, partition=0) for record in records[:1_100]])
    # Of now: what a drill looks at, and the group is about to read.
    send(client, "orders", [Message(value=b"%d" % number, key=b"now", partition=3) for number in range(50)])
    commit_offsets(source, "billing", {("orders", 3): 2_110})
    (folder / "mm2.properties").write_text(FILE.format(source=source.bootstrap, target=target.bootstrap))
    return folder


def lines_of(names: Collection[str]) -> dict[str, list[Typed]]:
    """The documents' lines of these commands that are typed here, by the commands' words, in order."""
    found: dict[str, dict[str, Typed]] = {name: {} for name in names}
    for one in typed():
        name = resolved(one.words[1:])[0] if one.words[0] == "ferry" else ""
        if name in found and one.line not in {*NOT_TYPED, *OF_RUNBOOKS}:
            found[name][one.line] = one
    for name, lines in found.items():
        assert lines, f"no document tells to type `ferry {name}`: take it out"
    return {name: [lines[line] for line in sorted(lines)] for name, lines in found.items()}


def due(line: str) -> bool:
    """Whether a line is typed in this run of the tests."""
    return not (IN_PART and line in BY_TEST_ALL)


def typed_here() -> set[str]:
    """All lines of documents that are typed here."""
    lines = lines_of({**RUN_HERE, **WITHOUT_CLUSTERS})
    return (
        {one.line for them in lines.values() for one in them}
        | {line for line, _ in (*ALONE, *STORY) if line[0] != "+"}
        | OF_RUNBOOKS
    )


@pytest.mark.timeout(900)  # a hundred commands, one after the other
def test_every_line_ends_as_it_should(
    folder: Path, target_cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("AIRFLOW_HOME", raising=False)  # the checkout's own Airflow, which knows nothing of this file
    config = folder / "mm2.properties"
    first = warm_ferry("run", "primary->backup", "--id", RUN, config=config)
    assert first.code == 0, first.err
    lines = lines_of(RUN_HERE)
    wrong = [
        text
        for name, code in RUN_HERE.items()
        for one in lines[name]
        if due(one.line)
        for text in _not_so(one, code, config)
    ]
    _read_ledger(target_cluster)
    wrong += _story(ALONE, config)
    config.write_text(config.read_text() + BOTH_WAYS)
    _keys(folder)
    wrong += _story(STORY, config)
    assert wrong == [], "\n".join(wrong)
    assert (folder / "moved").read_text().split() == ["backup"], "whom the hook of the documents' line was told"
    assert not (folder / "stranded.jsonl").exists(), "nothing was left behind"


@pytest.mark.timeout(900)  # the clusters are started, and one of them is lost on the way
def test_every_runbook_ends_and_prints_as_it_says(
    pair: tuple[RunningCluster, RunningCluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, backup = pair
    config = fill(primary, backup, tmp_path) / "mm2.properties"
    config.write_text(config.read_text() + BOTH_WAYS + "backup->primary.topics = orders, payments.*\n")
    _keys(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = warm_ferry("run", "primary->backup", "--id", RUN, config=config)
    assert first.code == 0, first.err
    happens: Mapping[str, Callable[[], object]] = {
        "records come to the source": lambda: _send_more(primary, 200),
        "the source deletes records": lambda: _delete_before(primary, 2_450),
        "the ledger is lost": lambda: delete_topic(backup, "ferry-ledger.primary.internal"),
        "the source is lost": primary.stop,
        "records come to the target": lambda: _send_more(backup, 20),
        "the source is back": primary.start,
    }
    wrong = [text for page in RUNBOOKS for text in _runbook(page, happens, config)]
    assert wrong == [], "\n".join(wrong)


def _runbook(page: str, happens: Mapping[str, Callable[[], object]], config: Path) -> Iterator[str]:
    """What is wrong with the ends of a runbook's lines, and with the answers that it shows."""
    document = ROOT / "docs" / "runbooks" / f"{page}.md"
    shown = [answer for line, answer in answered(document) if line.startswith("ferry ")]
    for text, code in RUNBOOKS[page]:
        mark, line = (text[0], text[2:]) if text[0] in "+!" else ("", text)
        if mark == "!":
            happens[line]()
            continue
        one = Typed(document=f"docs/runbooks/{page}.md", words=tuple(shlex.split(line)))
        answer = warm_ferry(*_here(one.words[1:]), config=config)
        yield from _amiss(one, code, answer)
        for absent in unlike(shown.pop(0), answer.out + answer.err):
            yield f"{one.document}: {line}\ndoes not print: {absent}\n{answer.out[-1500:]}{answer.err[-500:]}"


def _send_more(cluster: RunningCluster, count: int) -> None:
    send(producer(cluster), "orders", [Message(value=b"%d" % number, partition=3) for number in range(count)])


def _delete_before(cluster: RunningCluster, offset: int) -> None:
    """Delete records that no run has copied, and raise the topic's retention, as the runbook says."""
    _send_more(cluster, 200)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    place = TopicPartition("orders", 3, offset)
    assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == offset
    line = told("kafka-configs.sh")
    words = of_kafka(line.words[0], placed(line, {"SOURCE": cluster.bootstrap}))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _read_ledger(target: RunningCluster) -> None:
    """As the documents tell to read it with Kafka's own consumer, which else waits for more."""
    line = told("kafka-console-consumer.sh", "print.key=true")
    words = [*placed(line, {"TARGET": target.bootstrap}), "--max-messages", "5"]
    done = subprocess.run(of_kafka(line.words[0], words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'["run","live","{RUN}"]' in done.stdout.replace(", ", ","), done.stdout


def test_kafkas_own_tools_take_the_lines_for_the_containers(source_cluster: RunningCluster, topic: str) -> None:
    """There they are run in the broker's container, here beside the broker."""
    at = {"localhost:9094": source_cluster.bootstrap, "orders": topic}
    for tool in ("kafka-topics.sh", "kafka-producer-perf-test.sh"):
        line = told(f"/opt/kafka/bin/{tool}")
        words = placed(line, at)
        assert words[:3] == ["compose", "exec", "kafka-primary"]
        done = subprocess.run(of_kafka(tool, words[4:]), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert sum(watermark(source_cluster, topic, number) for number in range(4)) == 100_000


def of_kafka(script: str, words: Sequence[str]) -> list[str]:
    """What one of Kafka's scripts runs."""
    return [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", TOOLS[script], *words]


def _story(lines: Iterable[tuple[str, int]], config: Path) -> list[str]:
    known = {one.line: one for one in typed()}
    wrong = []
    for line, code in filter(lambda one: due(one[0]), lines):
        words = tuple(shlex.split(line.removeprefix("+ ")))
        one = Typed(document="(between)", words=words) if line.startswith("+") else known[line]
        wrong += _not_so(one, code, config)
    return wrong


def _keys(folder: Path) -> None:
    """What the story's lines name: a hook, and the two halves of a key for reports."""
    hook = folder / "move-clients"
    hook.write_text('#!/bin/sh\necho "$FERRY_SWITCH_TO" >> moved\n')
    hook.chmod(0o755)
    private = folder / "report.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    private.chmod(0o600)
    for name in ("report.pub", "reports.pub.pem"):
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", folder / name], check=True)


def test_lines_that_need_no_cluster_end_as_they_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    lines = lines_of(WITHOUT_CLUSTERS)
    for name, code in WITHOUT_CLUSTERS.items():
        for one in lines[name]:
            for file, server in (("consumer", "west"), ("c", "west"), ("producer", "east"), ("p", "east")):
                group = "group.id=mirror\n" if server == "west" else ""
                (tmp_path / f"{file}.properties").write_text(f"bootstrap.servers={server}-1:9092\n{group}")
            (tmp_path / "mm2.properties").unlink(missing_ok=True)
            wrong += _not_so(one, code)
    assert wrong == [], "\n".join(wrong)


def test_each_command_has_a_line_that_make_test_types() -> None:
    here = (typed_here() - OF_RUNBOOKS) | {line for line, _ in STORY}
    assert not BY_TEST_ALL - here, "no document has it any more"
    assert {command_of(line) for line in here} == {command_of(line) for line in here - BY_TEST_ALL}


def command_of(line: str) -> str:
    """The words of the command that a line begins with."""
    return resolved(tuple(shlex.split(line.removeprefix("+ "))[1:]))[0]


def _not_so(one: Typed, code: int, config: Path | None = None) -> list[str]:
    """What is wrong with a line's end."""
    return _amiss(one, code, warm_ferry(*_here(one.words[1:]), config=config))


def _amiss(one: Typed, code: int, answer: Answer) -> list[str]:
    """What is wrong with the end of a line that gave this answer."""
    if answer.code == code and "Traceback" not in answer.err:
        return []
    return [f"{one.document}: {one.line}\nexit code {answer.code}\n{answer.out[-500:]}{answer.err[-500:]}"]


def _here(words: tuple[str, ...]) -> list[str]:
    """A line's words with the places of here, a time that is still to come, and less patience with producers."""
    times = {"--until": _time_in(3600), "--lost-at": _time_in(-60)}
    placed = [PLACES.get(word, times.get(before, word)) for before, word in pairwise(("", *words))]
    hasty = words[0] in HASTE and "--approve-by" in words and "--quiet-timeout" not in words
    return [*placed, *(("--quiet-seconds", "1") if hasty else ())]


def _time_in(seconds: float) -> str:
    """A time from now, as it is typed."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
