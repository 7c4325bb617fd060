"""What the command line is asked, story by story, what it answers in JSON, and the ledgers that come of it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import ferry.dev.app
from ferry.config.settings import parse_settings
from ferry.dev import preview
from ferry.dev.cluster import BrokerStatus, ClusterStatus
from ferry.errors import BadInput
from ferry.features.observe.acts import endpoint
from ferry.features.records.cli import in_spark
from ferry.features.records.rules.sample import Pair, Sample, Side
from ferry.features.records.spark import sample
from ferry.plan import transform_digest
from ferry_airflow import setup as airflow_setup
from tests.pure.answers.world import FILE, Answer, World, world
from tests.pure.decide.test_museum import EXHIBITS, exhibit

KEPT = Path(__file__).with_name("kept")

HEARTBEATS = ("heartbeats.replication.enabled = false", "emit.heartbeats.enabled = false")
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
GUARDED = ("ferry.guard.retention.passed = skip", "ferry.guard.topic.recreated = restart")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An answer with the schema of docs/schemas that it satisfies."""

    schema: str
    asked: tuple[str, ...]
    code: int
    body: Any

    @property
    def text(self) -> str:
        """What its file has."""
        said = {"asked": " ".join(("ferry", *self.asked)), "exit": self.code, "schema": self.schema}
        return json.dumps({**said, "answer": self.body}, indent=1) + "\n"


Story = Callable[[World], Iterator[tuple[str, Kept]]]


def answers(story: str) -> dict[str, str]:
    """The files of a story, by name: its answers, and in the end the ledgers."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as made:
        for name, one in STORIES[story](made):
            assert f"{name}.json" not in found, name
            found[f"{name}.json"] = one.text
        for name, flow in LEDGERS.get(story, {}).items():
            made.ask("ledger", "export", flow, "--output", name)
            found[name] = (made.folder / name).read_text()
    return found


def texts() -> dict[Path, str]:
    """Each file of the corpus, with what it has to say."""
    return {KEPT / story / name: text for story in STORIES for name, text in answers(story).items()}


def of(schema: str, answer: Answer, *, timed: str | None = None) -> Kept:
    """An answer of a command; `timed`: which part of it has seconds that are not rounded (empty: the answer itself)."""
    body = answer.body
    if timed is not None:
        part = body[timed] if timed else body
        assert part["seconds"] >= 0
        part["seconds"] = 0.0
    if ("error" in body) is not (schema == "error"):
        raise AssertionError(f"{answer.asked}: {answer.out}{answer.err}")
    return Kept(schema=schema, asked=answer.asked, code=answer.code, body=body)


def begun(made: World, *lines: str, topics: Mapping[str, int] | None = None) -> None:
    """Topics with some records at the source, and the file of a flow that copies them."""
    topics = {"orders": 2, "users": 1} if topics is None else topics
    made.write(f"topics = {', '.join(topics)}", "groups = billing.*", *HEARTBEATS, *lines)
    for name, partitions in topics.items():
        made.a.topic(name, partitions)
        for number in range(partitions):
            made.produce(made.a, name, number, 10 - 2 * number)


def copying(made: World) -> Iterator[tuple[str, Kept]]:
    """A flow that copies, and what is asked of it day by day: groups, offsets, pauses, what a run did."""
    begun(made)
    ask = made.ask
    made.commit(made.a, "billing", orders_0=4, orders_1=6)
    yield "error-never-ran", of("error", ask("ledger", "a->b"))
    yield "plan-first", of("plan", ask("plan", "a->b"))
    yield "run-dry", of("plan", ask("run", "a->b", "--dry-run"))
    yield "run-first", of("run", ask("run", "a->b", "--id", "r1"))
    yield "groups", of("groups", ask("groups", "a->b"))
    yield "groups-snapshot", of("groups-snapshot", ask("groups", "snapshot", "a->b", "--snapshot", "kept"))
    made.produce(made.a, "orders", 0, 5)
    made.commit(made.a, "billing", orders_0=8)
    yield "groups-sync-dry", of("groups-sync", ask("groups", "sync", "a->b", "--dry-run"))
    yield "groups-sync", of("groups-sync", ask("groups", "sync", "a->b"))
    yield "groups-snapshots", of("groups-snapshot", ask("groups", "snapshots", "list", "a->b"))
    yield "groups-diff", of("groups-diff", ask("groups", "diff", "a->b", "--snapshot", "kept"))
    yield "groups-rollback", of("groups-rollback", ask("groups", "rollback", "a->b", "--snapshot", "kept"))
    made.commit(made.b, "billing", **{"a.orders_0": 2})
    yield "groups-rollback-of-moved", of("groups-rollback", ask("groups", "rollback", "a->b", "--snapshot", "kept"))
    yield "lag", of("lag", ask("lag", "a->b"))
    yield "plan-next", of("plan", ask("plan", "a->b"))
    yield "run-next", of("run", ask("run", "a->b", "--id", "r2", "--max-records", "3"))
    yield "pause", of("pause", ask("pause", "a->b", "--topic", "users", "--reason", "cleaning"))
    yield "pause-dry", of("pause", ask("pause", "a->b", "--reason", "all of it", "--dry-run"))
    yield "ledger-pauses", of("ledger-pauses", ask("ledger", "a->b", "--pauses"))
    yield "plan-paused", of("plan", ask("plan", "a->b"))
    yield "resume", of("resume", ask("resume", "a->b", "--topic", "users"))
    yield "resume-of-nothing", of("resume", ask("resume", "a->b", "--topic", "users"))
    yield "skip-dry", of("skip", ask("skip", "a->b", "orders", "0", "--to", "14", "--reason", "corrupt", "--dry-run"))
    yield "skip", of("skip", ask("skip", "a->b", "orders", "0", "--to", "14", "--reason", "corrupt"))
    yield "ledger", of("ledger", ask("ledger", "a->b"))
    yield "ledger-run", of("ledger", ask("ledger", "a->b", "--run", "r1"))
    yield "ledger-last", of("ledger", ask("ledger", "a->b", "--topic", "orders", "--last", "1"))
    yield "ledger-runs", of("ledger-runs", ask("ledger", "a->b", "--runs"))
    place = "ledger", "a->b", "--topic", "orders", "--partition", "0", "--offset"
    for name, at in (("", "4"), ("-skipped", "13"), ("-not-copied", "14")):
        yield f"ledger-offset{name}", of("ledger-offset", ask(*place, at))
    yield "translate", of("translate", ask("translate", "a->b", "orders", "0", "12"))
    yield "translate-not-copied", of("translate", ask("translate", "a->b", "orders", "0", "14"))
    yield "translate-back", of("translate", ask("translate", "a->b", "a.orders", "0", "12", "--reverse"))
    yield "translate-group", of("translate-group", ask("translate", "a->b", "--group", "billing"))
    yield "verify", of("verify", ask("verify", "a->b"), timed="")
    made.change(made.a, "users", 0)
    yield "verify-different", of("verify", ask("verify", "a->b", "--topic", "users"), timed="")
    yield "readiness-not-yet", of("readiness", ask("readiness", "a->b"))
    yield "acls-required", of("acls-required", ask("acls", "required", "a->b"))
    made.a.acls = [_acl("orders", "User:ann", 3), _acl("orders", "User:bob", 4), _acl("orders", "User:ann", 8)]
    made.b.acls = [_acl("a.users", "User:ann", 3)]
    yield "acls-diff", of("acls-diff", ask("acls", "diff", "a->b"))
    drop = "groups", "snapshots", "drop", "a->b", "kept", "--dry-run"
    yield "groups-snapshots-drop-dry", of("groups-snapshot", ask(*drop))


def records(made: World) -> Iterator[tuple[str, Kept]]:
    """A flow that copies and passes over records, and what either side has at an offset."""
    begun(made)
    made.ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "orders", 0, 5)
    made.ask("run", "a->b", "--id", "r2", "--max-records", "3")
    made.ask("skip", "a->b", "orders", "0", "--to", "14", "--reason", "corrupt")
    ask = partial(made.ask, "records", "show", "a->b")
    yield "show", of("records-show", ask("orders", "0", "12"))
    yield "show-skipped", of("records-show", ask("orders", "0", "13", "--as", "json"))
    yield "show-not-copied", of("records-show", ask("orders", "0", "14"))
    yield "show-not-written", of("records-show", ask("orders", "0", "99"))
    yield "show-back", of("records-show", ask("a.orders", "0", "12", "--reverse", "--as", "hex"))
    yield "show-marker", of("records-show", ask("a.orders", "0", "10", "--reverse"))
    yield "error-not-of-the-flow", of("error", ask("other", "0", "0"))
    yield "error-not-a-copy", of("error", ask("other", "0", "0", "--reverse"))
    made.change(made.a, "users", 0)
    yield "show-different", of("records-show", ask("users", "0", "0"))


def _acl(topic: str, principal: str, operation: int) -> dict[str, Any]:
    """An ACL that allows it, by Kafka's numbers."""
    return {
        "resource_type": 2,
        "resource_name": topic,
        "pattern_type": 3,
        "principal": principal,
        "operation": operation,
    }


def guarded(made: World) -> Iterator[tuple[str, Kept]]:
    """Runs that refuse, and runs whose guards pass what is lost."""
    begun(made)
    ask = made.ask
    ask("run", "a->b", "--id", "r1")
    made.lose(made.a, "orders", 0, 16)
    made.a.own["users"] = {"retention.ms": "5"}
    yield "plan-refused", of("plan", ask("plan", "a->b"))
    yield "run-partial", of("run", ask("run", "a->b", "--id", "r2"))
    made.write("topics = orders, users", "groups = billing.*", *HEARTBEATS, *GUARDED)
    yield "plan-guarded", of("plan", ask("plan", "a->b"))
    yield "run-guarded", of("run", ask("run", "a->b", "--id", "r3"))
    yield "lag-after-a-gap", of("lag", ask("lag", "a->b"))
    yield "ledger-run-partial", of("ledger", ask("ledger", "a->b", "--run", "r2"))
    yield "error-run-is-there", of("error", ask("run", "a->b", "--id", "r3"))
    yield "status", of("status", made.ask("status"))


def verified(made: World) -> Iterator[tuple[str, Kept]]:
    """A run that verifies itself."""
    begun(made, "ferry.verify = receipt")
    yield "run-verified", of("run", made.ask("run", "a->b", "--id", "r1"), timed="verified")


def transformed(made: World) -> Iterator[tuple[str, Kept]]:
    """A plan with records that are changed, and with a topic that gets another number of partitions."""
    begun(
        made,
        "tasks.max = 2",
        "ferry.transforms = small, few",
        "ferry.transform.small.topics = orders",
        "ferry.transform.small.partitions = 3",
        "ferry.transform.few.topics = users",
        "ferry.transform.few.where = TRUE",
    )
    with mock.patch.object(transform_digest, "version", return_value="4.2.0"):
        yield "plan-transformed", of("plan", made.ask("plan", "a->b"))
        yield "error-needs-spark", of("error", made.ask("run", "a->b", "--id", "r1"))


def lanes(made: World) -> Iterator[tuple[str, Kept]]:
    """History that is copied once, to topics of its own, and dropped again."""
    begun(made, topics={"users": 1})
    ask = made.ask
    window = "backfill", "a->b", "--lane", "backfill-june", "--from-offset", "users:0:2", "--to-offset", "users:0:7"
    yield "backfill-dry", of("backfill", ask(*window, "--dry-run"))
    yield "backfill", of("backfill", ask(*window))
    yield "lanes-list", of("lanes-list", ask("lanes", "list", "a->b"))
    drop = "lanes", "drop", "a->b", "backfill-june"
    yield "lanes-drop-dry", of("lanes-drop", ask(*drop, "--dry-run"))
    yield "lanes-drop", of("lanes-drop", ask(*drop, "--yes"))
    yield "lanes-drop-again", of("lanes-drop", ask(*drop, "--yes"))


def archive(made: World) -> Iterator[tuple[str, Kept]]:
    """A ledger that is exported, lost, and built again."""
    begun(made, topics={"users": 1})
    ask = made.ask
    ask("run", "a->b", "--id", "r1")
    export = "ledger", "export", "a->b", "--output", "out.jsonl"
    yield "ledger-export-dry", of("ledger-export", ask(*export, "--dry-run"))
    yield "ledger-export", of("ledger-export", ask(*export))
    made.b.delete("ferry-ledger.a.internal")
    rebuild = "ledger", "rebuild", "a->b", "--input", "out.jsonl"
    yield "ledger-rebuild-dry", of("ledger-rebuild", ask(*rebuild, "--dry-run"))
    yield "ledger-rebuild", of("ledger-rebuild", ask(*rebuild))
    yield "ledger-rebuilt", of("ledger-runs", ask("ledger", "a->b", "--runs"))
    yield "error-not-lost", of("error", ask(*rebuild))


def switching(made: World) -> Iterator[tuple[str, Kept]]:
    """Clients that move to the target, and back."""
    begun(made, "b->a.enabled = true", "ferry.rpo.records = 100", topics={"users": 1})
    ask = made.ask
    made.commit(made.a, "billing", users_0=4)
    ask("run", "a->b", "--id", "r1")
    yield "readiness", of("readiness", ask("readiness", "a->b"))
    over = "switchover", "a->b", "--id", "s-1", "--quiet-seconds", "0"
    yield "switchover-dry", of("switch-preview", ask(*over, "--dry-run"))
    yield "switchover", of("switch", ask(*over, "--approve-by", "bob"))
    yield "switch-show", of("switch", ask("switches", "show", "a->b", "s-1"))
    back = "failback", "a->b", "--id", "s-2", "--quiet-seconds", "0"
    yield "failback-dry", of("switch-preview", ask(*back, "--dry-run"))
    yield "failback", of("switch", ask(*back, "--approve-by", "bob", "--no-smoke"))
    yield "switch-list", of("switch-list", ask("switches", "list", "a->b"))


def failing(made: World) -> Iterator[tuple[str, Kept]]:
    """A switchover that is given up, a failover, and their reports."""
    begun(made, "b->a.enabled = true", topics={"users": 1})
    ask = made.ask
    ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "users", 0, 3)
    over = "switchover", "a->b", "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "5", "--quiet-timeout", "0"
    yield "error-not-quiet", of("error", ask(*over))
    yield "switch-stopped", of("switch", ask("switches", "show", "a->b", "s-1"))
    yield "switch-abandon", of("switch", ask("switches", "abandon", "a->b", "s-1", "--reason", "not today"))
    fail = "failover", "a->b", "--id", "s-2"
    yield "failover-dry", of("switch-preview", ask(*fail, "--dry-run"))
    yield "failover", of("switch", ask(*fail, "--approve-by", "bob", "--no-smoke", "--report", "reports"))
    yield "switch-list-of-two", of("switch-list", ask("switches", "list", "a->b"))
    yield "reports-switch", of("drill", ask("reports", "switch", "a->b", "s-2", "--report", "reports"))
    yield "reports-list", of("reports-list", ask("reports", "list", "reports"))
    yield "reports-verify", of("reports-verify", ask("reports", "verify", "reports", "--chain-only"))
    for name, schema in (("report-000001.json", "report"), ("index.json", "reports-list")):
        body = json.loads((made.folder / "reports" / name).read_text())
        yield f"file-{name.removesuffix('.json')}", Kept(schema=schema, asked=("...", name), code=0, body=body)
    yield "status-after-a-failover", of("status", made.ask("status"))


def unsynced(made: World) -> Iterator[tuple[str, Kept]]:
    """A flow that carries no groups: what its pause keeps it from, and its failover when the source is lost."""
    begun(made, "b->a.enabled = true", "sync.group.offsets.enabled = false", topics={"users": 1})
    ask = made.ask
    made.commit(made.a, "billing", users_0=4)
    ask("run", "a->b", "--id", "r1")
    yield "readiness-group-without-checkpoint", of("readiness", ask("readiness", "a->b"))
    ask("pause", "a->b", "--reason", "night")
    made.produce(made.a, "users", 0, 3)
    yield "run-paused", of("run", ask("run", "a->b", "--id", "r2"))
    ask("resume", "a->b")
    made.lost = made.a
    fail = "failover", "a->b", "--id", "s-1", "--no-reverse", "--no-smoke"
    yield "failover-refused-dry", of("switch-preview", ask(*fail, "--dry-run"))
    yield "error-groups-not-known", of("error", ask(*fail, "--approve-by", "bob"))
    without = *fail, "--leave-unknown"
    yield "failover-dry", of("switch-preview", ask(*without, "--dry-run"))
    yield "failover", of("switch", ask(*without, "--approve-by", "bob"))


def drilling(made: World) -> Iterator[tuple[str, Kept]]:
    """Failovers that are rehearsed."""
    begun(made, "b->a.enabled = true", topics={"users": 1})
    ask = made.ask
    made.commit(made.a, "billing", users_0=4)
    ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "users", 0, 3)
    yield "drill-tabletop", of("drill", ask("drills", "tabletop", "a->b"))
    shadow = "drills", "shadow", "a->b", "--from", "earliest"
    yield "drill-shadow-dry", of("drill-dry-run", ask(*shadow, "--dry-run"))
    yield "drill-shadow", of("drill", ask(*shadow))
    partial = "drills", "partial", "a->b", "--topic", "users"
    yield "drill-partial-dry", of("drill-dry-run", ask(*partial, "--dry-run"))
    yield "drill-partial", of("drill", ask(*partial, "--approve-by", "bob"))
    yield "drill-full-dry", of("drill-dry-run", ask("drills", "full", "a->b", "--dry-run"))


def migrating(made: World) -> Iterator[tuple[str, Kept]]:
    """What MirrorMaker has copied is taken over, and handed back."""
    begun(made, IDENTITY)
    ask = made.ask
    made.b.topic("orders", 2)
    made.produce(made.b, "orders", 0, 8)
    made.produce(made.b, "orders", 1, 8)
    made.commit(made.a, "mirror", orders_0=8, orders_1=7)
    adopt = "migrate", "mm1", "a->b", "--group", "mirror", "--topic", "orders"
    yield "adopt-mm1-dry", of("adopt", ask(*adopt, "--dry-run"))
    yield "adopt-mm1", of("adopt", ask(*adopt))
    place = "ledger", "a->b", "--topic", "orders", "--partition", "0", "--offset", "4"
    yield "ledger-offset-adopted", of("ledger-offset", ask(*place))
    back = "migrate", "hand-back", "a->b", "--topic", "orders", "--create"
    yield "hand-back-dry", of("hand-back", ask(*back, "--dry-run"))
    yield "hand-back", of("hand-back", ask(*back))
    yield "adopt-mm2", of("adopt", ask("migrate", "mm2", "a->b", "--topic", "orders", "--dry-run"))
    yield "error-no-offsets-topic", of("error", ask("migrate", "mm2", "a->b", "--offsets-topic", "nope"))


def museum(made: World) -> Iterator[tuple[str, Kept]]:
    """What is said of ledgers that real brokers had (tests/pure/decide/museum)."""
    newest = {path.stem: path for path in EXHIBITS}  # they are sorted by day
    for name, path in newest.items():
        kept = exhibit(path)
        flow = kept.head.flow
        made.load(kept)
        yield f"runs-{name}", of("ledger-runs", made.ask("ledger", flow, "--runs"))
        yield f"last-{name}", of("ledger", made.ask("ledger", flow, "--last", "3"))
        yield f"lanes-{name}", of("lanes-list", made.ask("lanes", "list", flow))
        yield f"pauses-{name}", of("ledger-pauses", made.ask("ledger", flow, "--pauses"))
        run = made.ask("ledger", flow, "--runs").body["runs"][-1]["run"]
        yield f"run-{name}", of("ledger", made.ask("ledger", flow, "--run", run))
        if name == "switched":
            yield "switches", of("switch-list", made.ask("switches", "list", flow))
            yield "switch", of("switch", made.ask("switches", "show", flow, "s-1"))
        topic = next(iter(kept.logs)).split("/")[0]
        for offset in ("1", "4", "21"):
            place = "--topic", topic, "--partition", "0", "--offset", offset
            yield f"offset-{offset}-{name}", of("ledger-offset", made.ask("ledger", flow, *place))


def examined(made: World) -> Iterator[tuple[str, Kept]]:
    """A flow before its first run and after it, and what is gathered for those who help."""
    begun(made, "topcs = orders", topics={"users": 1})
    ask = made.ask
    yield "doctor-first", of("doctor", ask("doctor"))
    ask("run", "a->b", "--run", "r1")
    yield "doctor", of("doctor", ask("doctor", "a->b"))
    yield "support-bundle", of("support-bundle", ask("support-bundle", "--output", "bundle.tar.gz"))
    made.write("topics = users", "replication.factor = many")
    yield "doctor-of-a-wrong-file", of("doctor", ask("doctor"))


def files(made: World) -> Iterator[tuple[str, Kept]]:
    """What is asked of files alone."""
    made.write("topics = orders, users", "topcs = orders", "ferry.shedule = @hourly")
    ask = made.ask
    yield "config-check", of("config-check", ask("config", "check", FILE))
    yield "config-check-fixed", of("config-check", ask("config", "check", FILE, "--fix", "fixed.properties"))
    yield "error-config", of("error", ask("flows"))
    made.write(
        "b->a.enabled = true",
        "topics = orders, users",
        "a->b.ferry.schedule = @hourly",
        "a->b.ferry.schedule.lag.records = 1000",
    )
    yield "explain", of("explain", ask("explain", "retention-passed"))
    yield "flows", of("flows", ask("flows"))
    yield "plan-why", of("plan-why", ask("plan", "a->b", "--explain", "orders"))
    yield "plan-why-left-out", of("plan-why", ask("plan", "a->b", "--explain", "__consumer_offsets"))
    yield "config-explain", of("config-explain", ask("config", "explain", "ferry.start"))
    servers = "--source-servers", "one:9092", "--target-servers", "two:9092"
    yield "config-new-dry", of("config-new", ask("config", "new", "new.properties", *servers, "--dry-run"))
    yield "config-new", of("config-new", ask("config", "new", "new.properties", *servers))
    (made.folder / "consumer.config").write_text("bootstrap.servers=one:9092\ngroup.id=mirror\nfoo=bar\n")
    (made.folder / "producer.config").write_text("bootstrap.servers=two:9092\nacks=1\n")
    old = "--consumer.config", "consumer.config", "--producer.config", "producer.config", "--whitelist", "orders"
    yield "import-mm1-dry", of("import-mm1", ask("migrate", "import-mm1", *old, "--dry-run"))
    yield "import-mm1", of("import-mm1", ask("migrate", "import-mm1", *old, "--output", "out.properties"))
    yield "policy", of("policy", ask("config", "policy", "DefaultReplicationPolicy", "--topic", "orders"))
    with mock.patch("platform.python_version", return_value="3.11.0"):
        yield "version", of("version", ask("version"))
    yield "error-command", of("error", ask("nonsense"))
    yield "error-option", of("error", ask("plan", "a->b", "--nope"))


def elsewhere(made: World) -> Iterator[tuple[str, Kept]]:
    """Answers about what only Spark, Java, Airflow or a server does: its outcome is given, its form is kept."""
    ask = made.ask
    made.write(
        "topics = orders, clicks",
        "ferry.transforms = days, small",
        "ferry.transform.days.topics = orders",
        "ferry.transform.days.target = concat(topic, '-', partition)",
        "ferry.transform.days.targets = {topic}-0, {topic}-1",
        "ferry.transform.days.partitions = 2",
        "ferry.transform.days.poison = skip",
        "ferry.transform.small.topics = clicks",
        "ferry.transform.small.where = TRUE",
    )
    with mock.patch.object(in_spark, "need_spark"), mock.patch.object(sample, "samples", return_value=_samples(made)):
        for name, more in (("plan-sample", ()), ("plan-sample-values", ("--show-values",))):
            yield name, of("plan-sample", ask("plan", "a->b", "--sample", "3", *more))
    broker = BrokerStatus(
        node_id=1, address="127.0.0.1:30001", state="running", pid=4711, log="home/source/broker-1.log"
    )
    there = ClusterStatus(
        name="source",
        version="4.3.0",
        state="running",
        bootstrap="127.0.0.1:30001",
        cluster_id="id",
        directory="home/source",
        brokers=(broker,),
    )
    dev = ferry.dev.app
    (made.folder / "home").mkdir()
    with mock.patch.object(dev, "status", return_value=(there,)):
        yield "dev-status", of("dev", ask("dev", "status", "--home", "home"))
    with mock.patch.object(dev, "down", return_value=("source",)):
        yield "dev-down", of("dev-down", ask("dev", "down", "--home", "home", "--delete"))
    with mock.patch.object(preview, "jars"), mock.patch.object(preview, "java"):  # which this machine may lack
        yield "dev-dry-run", of("dev-dry-run", ask("dev", "up", "--home", "home", "--dry-run"))
    server, thread = mock.Mock(server_port=9464), mock.Mock()
    with mock.patch.object(endpoint, "serve", return_value=(server, thread)):
        yield "metrics-serve", of("metrics-serve", ask("metrics", "serve", "metrics"))
    with _airflow():
        yield "airflow-setup", of("airflow-setup", ask("airflow", "setup", "--dry-run"))


def _samples(made: World) -> list[Sample]:
    """One of each kind of record that a transform leaves."""
    flow = parse_settings((made.folder / FILE).read_text(), FILE).flow("a->b")
    days, small = flow.records.transforms
    before = Side(topic="orders", timestamp=1, key=b"k", value=b'{"n": 1}', headers=(("h", b"x"), ("n", None)))

    def pair(offset: int, name: str | None, **more: Any) -> Pair:
        after = None if name is None else Side(topic=name, timestamp=1, key=b"k", value=None, headers=())
        return Pair(partition=0, offset=offset, before=before, after=after, **{"poison": None, **more})

    pairs = (
        pair(0, "orders-0"),
        pair(1, "orders-2"),
        pair(2, None),
        pair(3, None, poison="its value is not JSON"),
        pair(4, None, broken="CAST_INVALID_INPUT"),
    )
    error = BadInput("ferry.transform.small.where: nothing of it is understood")
    return [
        Sample(transform=days, digest="d1", topic="orders", target="orders-0", named="a.orders", pairs=pairs),
        Sample(transform=small, digest="", topic=None, target=None, named=None, pairs=(), error=error),
    ]


@contextlib.contextmanager
def _airflow() -> Iterator[None]:
    """The command of Ferry's Airflow package, without Airflow."""
    done = SimpleNamespace(pools=("ferry-a-b",), connections=("spark_default",), missing=())
    named = mock.patch.dict(os.environ, {"AIRFLOW_HOME": "airflow"})
    with named, mock.patch.object(airflow_setup, "setup", return_value=done):
        yield


STORIES: Mapping[str, Story] = {
    one.__name__: one
    for one in (
        *(copying, records, guarded, verified, transformed, lanes, archive),
        *(switching, failing, unsynced, drilling, migrating, examined, files, elsewhere, museum),
    )
}
FORTH = {"ledger.jsonl": "a->b"}
LEDGERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("copying", "guarded", "lanes", "failing", "migrating"), FORTH),
    "switching": {**FORTH, "ledger-back.jsonl": "b->a"},
}
"""Whose ledgers are kept, by the names of their files with their flows."""
