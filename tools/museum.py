"""Record ledgers as this version of Ferry writes them, with its answers, for tests/pure/decide/test_museum.py.

```
python tools/museum.py tests/pure/decide/museum/2026-11-30
```

Two brokers with an authorizer are started, and stopped at the end. Each function of `SCENARIOS` is a flow on them; its
docstring says what it records. Names after the folder record only these.

For each flow the folder gets the export of its ledger (`NAME.jsonl`) and what the commands answered (`NAME.json`). That
is their arguments, exit codes and JSON, and where logs began and ended then.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ferry.clock import wall_ms
from ferry.config.settings import parse_settings
from ferry.dev import ClusterSpec, RunningCluster, guard, up_all
from ferry.features.switch.acts.approvals import keep_approval, use_approval
from ferry.model.switch import Approval
from ferry.program import main as ferry_main
from ferry.protocol.names import ledger_topic
from ferry.run.ledger.access import LedgerAccess
from tests.harness import Lab, commit_offsets, create_topic, delete_topic, numbered, producer, send, wait_until
from tests.pure.run.unit_flows import Units, messages

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
SMALL = {
    "ferry.lane.summaries.FIRST_WINDOW": 4,
    "ferry.ledger.block_index.BLOCK_ROWS": 2,
    "ferry.features.groups.acts.offset_maps.WHOLE_BLOCKS": 0,
    "ferry.protocol.driver.KEPT_RUNS": 2,
    "ferry.lane.pruning.TOMBSTONES_A_RUN": 2,
    "ferry.lane.pruning.FOR_EACH_SLICE": 0,
}
"""With these a ledger of a few runs has forgotten runs, blocks and pruned receipts."""
LATE_OVER = {
    "ferry.features.identical.rules.late.LEASE_MS": 0,
    "ferry.features.identical.rules.late.MARGIN_MS": -86_400_000,
}
"""With these no batch can arrive late: a ledger that has forgotten runs makes switches wait for such batches."""
BROKER = {
    "log.retention.check.interval.ms": "86400000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SUMMARISED = "ferry.lane.upkeep.is_due"


@dataclass(kw_only=True)
class Exhibit:
    """A flow between two clusters, and what Ferry answers about it."""

    source: RunningCluster
    target: RunningCluster
    folder: Path
    name: str
    topics: Mapping[str, int]
    """Source topics with their numbers of partitions."""
    settings: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, str]
    answers: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, Any] = field(default_factory=dict)
    compacted: Collection[str] = ()
    """Topics that are compacted, among those created."""
    deleted: set[str] = field(default_factory=set)
    """Topics that were deleted at the source."""
    sent: int = 0

    def __post_init__(self) -> None:
        for topic, partitions in self.topics.items():
            config = {"cleanup.policy": "compact"} if topic in self.compacted else None
            create_topic(self.source, topic, partitions, config)

    @property
    def flow(self) -> str:
        """Return the flow's name."""
        return "->".join(self.aliases)

    @property
    def text(self) -> str:
        """Return the text of the flow's file."""
        here, there = self.aliases
        lines = {
            "clusters": f"{here}, {there}",
            f"{here}.bootstrap.servers": self.source.bootstrap,
            f"{there}.bootstrap.servers": self.target.bootstrap,
            f"{here}->{there}.enabled": "true",
            "topics": ", ".join(self.topics),
            "groups": "billing.*",
            "heartbeats.replication.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "2",
            "ferry.deployment": "museum",
            **self.settings,
        }
        return "".join(f"{key} = {value}\n" for key, value in lines.items())

    def send(self, topic: str, count: int) -> None:
        """Send so many more records, distributed to all partitions in turn."""
        send(producer(self.source), topic, numbered(count, partitions=self.topics[topic], size=20, start=self.sent))
        self.sent += count

    def abort(self, topic: str, side: RunningCluster | None = None) -> None:
        """Leave records of an aborted transaction in partition 0, at the source or on a side that is named."""
        client = producer(side or self.source, transactional_id=f"museum-{topic}")
        client.init_transactions(30)
        client.begin_transaction()
        client.produce(topic if side is None else self.copy_of(topic), value=b"aborted", partition=0)
        client.flush(30)
        client.abort_transaction(30)

    def ferry(self, *words: str, keep: bool = True, allowed: tuple[int, ...] = (0,)) -> Any:
        """Run a command of this version of Ferry; return its JSON, which is kept with `keep`."""
        out = io.StringIO()
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
            file.write(self.text)
            file.flush()
            given = ["ferry", *words, "--json", "--quiet", "--config", file.name]
            code: Any = 0
            with contextlib.redirect_stdout(out), mock.patch.object(sys, "argv", given):
                try:
                    ferry_main()
                except SystemExit as end:
                    code = end.code or 0
        print(f"{self.name}: {' '.join(words)}: {code}", file=sys.stderr)
        if code not in allowed:
            raise RuntimeError(f"ferry {' '.join(words)} ended with {code}: {out.getvalue()}")
        answer = json.loads(out.getvalue()) if out.getvalue() else None
        if keep:
            self.answers.append({"asked": list(words), "code": code, "answer": answer})
        return answer

    def run(self, name: str, *words: str, summary: bool = False, allowed: tuple[int, ...] = (0,)) -> None:
        """Run a micro-run, with a summary of the ledger or without."""
        with mock.patch(SUMMARISED, return_value=summary):
            self.ferry("run", self.flow, "--run", name, *words, keep=False, allowed=allowed)

    def copy_of(self, topic: str) -> str:
        """Return the name of the target topic."""
        return topic if IDENTITY in self.settings.values() else f"{self.aliases[0]}.{topic}"

    def delete_before(self, topic: str, offset: int, side: RunningCluster) -> None:
        """Delete records before an offset, as retention does."""
        name = topic if side is self.source else self.copy_of(topic)
        client = AdminClient({"bootstrap.servers": side.bootstrap})
        for found in client.delete_records([TopicPartition(name, 0, offset)]).values():
            found.result(30)

    def delete(self, topic: str) -> None:
        """Delete a topic at the source."""
        self.deleted.add(topic)
        _delete(self.source, topic)

    def lose_and_rebuild(self) -> None:
        """Delete the ledger, and write it again from an export."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "ledger.jsonl")
            self.ferry("ledger", "export", self.flow, "--to", path, keep=False)
            _delete(self.target, ledger_topic(self.aliases[0]))
            self.ferry("ledger", "rebuild", self.flow, "--input", path, keep=False)

    def look(self, groups: Iterable[str] = ()) -> None:
        """Run the commands that read, and note where the logs begin and end."""
        self.ferry("plan", self.flow, allowed=(0, 1))
        topics = {topic: count for topic, count in self.topics.items() if topic not in self.deleted}
        for topic, partitions in topics.items():
            for partition in range(partitions):
                self.logs[f"{topic}/{partition}"] = low, high = _edges(self.source, topic, partition)
                self.logs[f"target {topic}/{partition}"] = there = _edges(self.target, self.copy_of(topic), partition)
                for offset in sorted({0, low, low + 1, (low + high) // 2, high - 1, high, 17, 19, 21}):
                    self.ferry("translate", self.flow, topic, str(partition), str(offset), allowed=(0, 1, 2))
                place = "--topic", topic, "--partition", str(partition), "--offset", "4"
                self.ferry("ledger", self.flow, *place, allowed=(0, 1))
                for offset in sorted({there[0], sum(there) // 2, there[1]}):
                    words = self.copy_of(topic), str(partition), str(offset), "--reverse"
                    self.ferry("translate", self.flow, *words, allowed=(0, 1, 2))
        runs = self.ferry("ledger", self.flow, "--runs")
        for run in runs["runs"]:
            self.ferry("ledger", self.flow, "--run", run["run"], allowed=(0, 2))
        self.ferry("ledger", self.flow, "--pauses")
        for topic in topics:
            self.ferry("ledger", self.flow, "--topic", topic, "--last", "2")
        for group in groups:
            self.ferry("groups", self.flow, "--group", group, allowed=(0, 1))

    def close(self) -> None:
        """Export the ledger, and write the answers next to it."""
        path = self.folder / f"{self.name}.jsonl"
        self.ferry("ledger", "export", self.flow, "--to", str(path), keep=False)
        body = {"flow": self.flow, "config": self.settings, "logs": self.logs, "answers": self.answers}
        lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in self.answers)
        head = json.dumps({key: body[key] for key in ("flow", "config", "logs")}, separators=(",", ":"))
        path.with_suffix(".json").write_text(f'{head[:-1]},"answers":[\n{lines}\n]}}\n')


Begin = Callable[..., Exhibit]
"""Makes the exhibit of a scenario; its name, folder and clusters are already given."""


def _edges(cluster: RunningCluster, topic: str, partition: int) -> tuple[int, int]:
    client = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "museum"})
    try:
        low, high = client.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
    finally:
        client.close()
    return int(low), int(high)


def _delete(cluster: RunningCluster, topic: str) -> None:
    delete_topic(cluster, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wait_until(lambda: topic not in admin.list_topics(timeout=30).topics, "the end of the deleted topic")


def copied(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record runs, an ended pause, one in force, groups, a skip, aborted records, forgotten runs."""
    one = begin(
        aliases=("primary", "backup"),
        topics={"orders": 2, "audit": 2},
    )
    one.send("orders", 20)
    one.send("audit", 6)
    commit_offsets(here, "billing", {("orders", 0): 4, ("orders", 1): 7, ("audit", 1): 1})
    one.run("run-1")
    one.abort("orders")
    one.send("orders", 8)
    one.run("run-2", "--topic", "orders")
    one.ferry("pause", one.flow, "--topic", "audit", "--why", "cleaning", keep=False)
    one.send("audit", 6)
    one.send("orders", 8)
    one.run("run-3", summary=True)
    one.ferry("resume", one.flow, "--topic", "audit", keep=False)
    one.ferry("skip", one.flow, "audit", "1", "--to", "5", "--reason", "corrupt", keep=False)
    one.delete_before("orders", 17, here)
    one.delete_before("orders", 17, there)
    one.send("orders", 8)
    one.run("run-4", summary=True)
    one.send("orders", 8)
    commit_offsets(here, "billing", {("orders", 0): 24, ("audit", 1): 3})
    one.run("run-5")
    one.ferry("groups", "snapshot", one.flow, "--name", "kept", keep=False)
    one.send("orders", 12)
    one.send("audit", 6)
    one.run("run-6", "--topic", "orders", "--max-records", "6")
    one.ferry("pause", one.flow, "--topic", "audit", "--why", "still dirty", keep=False)
    one.look(["billing"])
    one.close()


def switched(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record a switchover that is done."""
    aliases = ("left", "right")
    one = begin(
        aliases=aliases,
        topics={"moves": 2},
        settings={
            "right->left.enabled": "true",
            "ferry.switch.redirect.command": "true",
            "ferry.rpo.records": "100",
        },
    )
    one.send("moves", 20)
    commit_offsets(here, "billing-moves", {("moves", 0): 4, ("moves", 1): 7})
    one.run("run-1")
    one.send("moves", 4)
    words = "switchover", one.flow, "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "0.6"
    one.ferry(*words, keep=False)
    one.look(["billing-moves"])
    one.ferry("switches", "list", one.flow)
    one.ferry("switches", "show", one.flow, "s-1")
    one.close()


def adopted(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record what MirrorMaker 1 had copied, and runs that continued there."""
    one = begin(
        aliases=("plant", "depot"),
        topics={"bills": 2},
        settings={"replication.policy.class": IDENTITY},
    )
    create_topic(there, "bills", 2)
    one.send("bills", 20)
    send(producer(there), "bills", numbered(20, partitions=2, size=20))
    commit_offsets(here, "mirror", {("bills", 0): 10, ("bills", 1): 10})
    one.ferry("migrate", "mm1", one.flow, "--group", "mirror", keep=False)
    for number in range(1, 3):
        one.send("bills", 10)
        one.run(f"run-{number}")
    one.send("bills", 4)
    one.look()
    one.close()


def guarded(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record guards that skip, begin again and refuse, and runs that verify themselves."""
    one = begin(
        aliases=("north", "south"),
        topics={"stock": 2, "logs": 2, "bank": 2},
        settings={
            "ferry.guard.topic.recreated": "restart",
            "ferry.guard.retention.passed": "fail, skip:logs",
            "ferry.verify": "receipt",
        },
    )
    for topic in one.topics:
        one.send(topic, 12)
    one.run("run-1")
    _delete(here, "stock")
    create_topic(here, "stock", 2)
    for topic in one.topics:
        one.send(topic, 8)
    for topic in ("logs", "bank"):
        one.delete_before(topic, 8, here)
    one.run("run-2", allowed=(0, 1))
    for topic in one.topics:
        one.send(topic, 4)
    one.look()
    one.close()


def dealt(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record a repartitioned topic; the tests' stand-in for Spark makes the rows."""
    own = {"ferry.deployment": "museum"}
    lab = Lab(source=here, target=there, alias="field", topics=("grain",), settings=own)
    units = Units(lab, "grain")
    one = begin(
        aliases=("field", "tfield"),
        topics={"grain": 5},
        settings=units.lab.settings,
    )
    runs = []
    for number in range(3):
        send(producer(here), "grain", messages(40, start=number * 40))
        if number < 2:
            runs.append(units.run().run)
    for partition in range(5):
        one.logs[f"grain/{partition}"] = _edges(here, "grain", partition)
    for partition in range(3):
        one.logs[f"target grain/{partition}"] = _edges(there, "field.grain", partition)
    one.ferry("plan", one.flow, allowed=(0, 1))
    one.ferry("ledger", one.flow, "--runs")
    for run in runs:
        one.ferry("ledger", one.flow, "--run", run)
    one.ferry("ledger", one.flow, "--topic", "grain", "--partition", "1", "--offset", "3", allowed=(0, 1, 2))
    one.close()


def pruned(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record receipts that were pruned, because neither side has their records; tombstones follow in later runs."""
    one = begin(aliases=("mine", "depot"), topics={"coal": 1})
    for number in range(1, 8):
        one.send("coal", 4)
        one.run(f"run-{number}", summary=True)
        if number == 5:
            one.delete_before("coal", 16, here)
            one.delete_before("coal", 16, there)
    one.look()
    one.close()


def followed(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record ACLs, a merged and a compacted topic, aborted records of others on the target, and a deleted topic.

    A window of history is copied by a lane that is dropped then, and the ledger is lost and rebuilt.
    """
    one = begin(
        aliases=("home", "away"),
        topics={"bread": 2, "shared": 1, "keyed": 1, "gone": 1},
        compacted=["keyed"],
        settings={"ferry.merge.topics": "shared", "ferry.sync.topic.deletes.enabled": "true"},
    )
    rule = AclBinding(
        ResourceType.TOPIC,
        "bread",
        ResourcePatternType.LITERAL,
        "User:ann",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": here.bootstrap})  # held: its answers die with it
    for created in admin.create_acls([rule]).values():
        created.result(30)
    for topic in one.topics:
        one.send(topic, 8)
    one.run("run-1")
    one.abort("bread", there)
    one.delete("gone")
    one.send("bread", 8)
    one.run("run-2")
    window = "--from-offset", "bread:0:1", "--to-offset", "bread:0:3"
    one.ferry("backfill", one.flow, "--lane", "backfill-old", *window, keep=False)
    one.ferry("lanes", "drop", one.flow, "backfill-old", "--yes", keep=False)
    one.lose_and_rebuild()
    one.send("bread", 8)
    one.run("run-3")
    one.send("bread", 4)
    one.look()
    one.close()


def begun(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record a switch whose clients could not be redirected, and the approval in Airflow that it used."""
    one = begin(
        aliases=("east", "west"),
        topics={"posts": 1},
        settings={
            "west->east.enabled": "true",
            "ferry.switch.redirect.command": "false",
            "ferry.rpo.records": "100",
        },
    )
    one.send("posts", 8)
    one.run("run-1")
    given = Approval(run="switch/manual-1", who="bob", at_ms=wall_ms(), asked_by="ann", params="0" * 64)
    with LedgerAccess(parse_settings(one.text, "museum.properties").flow(one.flow)) as ledger:
        keep_approval(ledger, given)
        use_approval(ledger, given.run, params=given.params, by="s-1", within_s=3600)
    words = "switchover", one.flow, "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "0.6"
    one.ferry(*words, keep=False, allowed=(4,))
    one.look()
    one.ferry("switches", "list", one.flow)
    one.ferry("switches", "show", one.flow, "s-1")
    one.close()


def identical(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record two runs with identical offsets: the second one passes an aborted record and its marker."""
    one = begin(
        aliases=("river", "lake"),
        topics={"boats": 2},
        settings={"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"},
    )
    commit_offsets(here, "billing-boats", {("boats", 0): 4})
    for number in range(1, 3):
        one.send("boats", 12)
        if number == 2:
            one.abort("boats")
            one.send("boats", 2)
        one.run(f"run-{number}")
    one.send("boats", 4)
    one.look(["billing-boats"])
    one.close()


def returned(begin: Begin, here: RunningCluster, there: RunningCluster) -> None:
    """Record a switchover and a failback with identical offsets, and a run after them.

    What `look` translates is all of this flow. Translations of clients' records need the ledger of the flow back, too.
    """
    one = begin(
        aliases=("shore", "isle"),
        topics={"ferries": 1},
        settings={
            "isle->shore.enabled": "true",
            "ferry.offsets": "identical",
            "ferry.offsets.may.lose": "true",
            "replication.policy.class": IDENTITY,
            "ferry.switch.redirect.command": "true",
        },
    )
    back = "isle->shore"
    one.ferry("pause", back, "--why", "standby", keep=False)
    one.send("ferries", 32)
    one.run("run-1")
    words = one.flow, "--approve-by", "bob", "--quiet-seconds", "0.6"
    with replaced(LATE_OVER):
        one.ferry("switchover", *words, "--id", "s-1", keep=False)
        send(producer(there), "ferries", numbered(6, size=20, start=100))
        one.ferry("run", back, "--run", "back-1", keep=False)
        one.ferry("failback", *words, "--id", "s-2", keep=False)
    one.send("ferries", 4)
    one.run("run-2")
    one.send("ferries", 4)
    one.look()
    one.ferry("switches", "list", one.flow)
    one.ferry("switches", "show", one.flow, "s-1")
    one.close()


SCENARIOS = (copied, switched, adopted, guarded, dealt, pruned, followed, begun, identical, returned)


@contextlib.contextmanager
def replaced(numbers: Mapping[str, int]) -> Iterator[None]:
    """Replace numbers of the code, by their names, for a while."""
    with contextlib.ExitStack() as stack:
        for name, value in numbers.items():
            stack.enter_context(mock.patch(name, value))
        yield


@contextlib.contextmanager
def small() -> Iterator[None]:
    """Set small numbers for the ledger, while it is written."""
    with replaced(SMALL), mock.patch("socket.gethostname", return_value="desk-7"):
        yield


def main(folder: Path, names: list[str]) -> None:
    """Record the named flows; all when none is named."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ClusterSpec(name=name, properties=BROKER) for name in ("a", "b")]
    with tempfile.TemporaryDirectory() as home, guard(Path(home)), small():
        here, there = up_all(specs, home=Path(home))
        for scenario in SCENARIOS:
            if not names or scenario.__name__ in names:
                begin = partial(Exhibit, source=here, target=there, folder=folder, name=scenario.__name__)
                scenario(begin, here, there)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
