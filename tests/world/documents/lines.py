"""Which lines of the documents are typed, in which order and with which exit code; and which are not, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    "groups snapshots list": 0,
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
        "+ ferry groups snapshot 'primary->backup' --snapshot before-the-drill",
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
    ("ferry groups snapshots drop 'primary->backup' before-upgrade --dry-run", 0),
    ("+ ferry groups rollback 'primary->backup' --snapshot before-upgrade", 0),
    ("+ ferry groups snapshots drop 'primary->backup' before-upgrade --yes", 0),
    ("+ ferry groups snapshot 'primary->backup' --snapshot before-the-drill", 0),
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
    ("ferry failback 'primary->backup' --approve-by anna --output stranded.jsonl", 0),
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
        ("+ ferry groups snapshot 'primary->backup' --snapshot before-upgrade", 0),
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
        ("ferry ledger export 'primary->backup' --output ledger-after.jsonl", 0),
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
        ("ferry failback 'primary->backup' --id return-4711 --approve-by ann --output stranded-4711.jsonl", 0),
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
    "records show": ("its offsets are of clusters with more records", "pure/answers/stories.py"),
    "dev up": (_CLUSTERS, "clusters.py"),
    "dev down": (_CLUSTERS, "kafka/dev/test_cluster.py"),
}
"""Lines (or all of a command) that are not typed here: why not, and the test that does what they do."""

OTHERS_TYPED: Mapping[tuple[str, ...], str] = {
    ("airflow", "connections"): "airflow/test_setup.py",
    ("dags", "pause"): "airflow/test_typed.py",
    ("airflow-scheduler", "unpause"): "airflow/test_typed.py",
    ("unpause", "--yes"): "airflow/test_typed.py",
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

_RELEASE = "it installs a release: packaging/test_requirements.py has the extras, packaging/test_wheel.py a wheel"
_A_VARIABLE = "it sets a variable of the reader's shell"
_HOURS = "hours long: its figures, and by which command each was made, are in bench/README.md"
OTHERS_NOT_TYPED: Mapping[tuple[str, ...], str] = {
    ("docker", "up"): "it wants a container engine: docker/test_topology.py runs the same processes without one",
    ("docker", "ferry"): "the same: `ferry lag` is typed here",
    ("date",): "it prints the time of now",
    ("export",): _A_VARIABLE,
    ("page-operator",): "it stands for whatever the reader has",
    ("pip", "ferry_replicator-….whl[kerberos]"): _RELEASE,
    (".venv/bin/python", "bench/long_ledger.py"): _HOURS,
    (".venv/bin/python", "ferry_airflow.demo"): "it stops what runs in the checkout's own folder: demo/test_demo.py",
    ("make", "bench"): _HOURS,
    ("make", "demo"): "minutes long, and a gigabyte: demo/test_demo.py has its steps, tests/airflow all else of it",
    ("make", "drill"): "the same with a drill: `ferry drills shadow` is typed here",
    ("make", "setup"): "who runs the tests has made it",
    ("python3", "venv"): _RELEASE,
    ("/tmp/ferry-new/bin/pip", "install"): _RELEASE,
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
sync.group.offsets.enabled = true
heartbeats.replication.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
tasks.max = 2
"""
RUN = "cli-20260131T060000Z-1a2b"
"""The run that documents name in their examples."""
