"""What the documents tell people to type, typed: every line of these commands against two real clusters."""

from __future__ import annotations

import logging
import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev import ClusterSpec, RunningCluster, up_all
from ferry.dev.jars import jars, java
from tests.clusters import KEPT
from tests.commands import installed
from tests.harness import Message, commit_offsets, create_topic, delete_topic, producer, send, watermark
from tests.program import Answer, warm_ferry
from tests.tiers import ANSWER_S, IN_PART
from tests.world.documents.commands import ROOT, Typed, answered, placed, resolved, told, typed, unlike
from tests.world.documents.lines import (
    ALONE,
    BOTH_WAYS,
    BY_TEST_ALL,
    FILE,
    HASTE,
    NOT_TYPED,
    OF_RUNBOOKS,
    PLACES,
    RUN,
    RUN_HERE,
    RUNBOOKS,
    STORY,
    WITHOUT_CLUSTERS,
)

TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}
"""What Kafka's scripts run."""

LOG = logging.getLogger(__name__)
"""With `--log-cli-level=INFO` it shows how long each line of the runbooks took: figures that they have."""

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


@pytest.mark.timeout(300 if IN_PART else 900)  # a hundred commands, one after the other
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
        "the source is lost": partial(primary.stop, grace_seconds=0),
        "records come to the target": lambda: _send_more(backup, 20),
        "the source is back": primary.start,
    }
    wrong = [text for page in RUNBOOKS for text in _runbook(page, happens, config)]
    assert wrong == [], "\n".join(wrong)


def _runbook(page: str, happens: Mapping[str, Callable[[], object]], config: Path) -> Iterator[str]:
    """What is wrong with the ends of a runbook's lines, and with the answers that it shows."""
    document = ROOT / "docs" / "runbooks" / f"{page}.md"
    shown = [answer for _, answer in shown_on(document)]
    for text, code in RUNBOOKS[page]:
        mark, line = (text[0], text[2:]) if text[0] in "+!" else ("", text)
        if mark == "!":
            happens[line]()
            continue
        one = Typed(document=f"docs/runbooks/{page}.md", words=tuple(shlex.split(line)))
        begun = time.monotonic()
        answer = warm_ferry(*_here(one.words[1:]), config=config)
        LOG.info("%s: %.1f s: %s", page, time.monotonic() - begun, line)
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
    private, openssl = folder / "report.pem", installed("openssl", "openssl")
    subprocess.run([openssl, "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    private.chmod(0o600)
    for name in ("report.pub", "reports.pub.pem"):
        subprocess.run([openssl, "pkey", "-in", private, "-pubout", "-out", folder / name], check=True)


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


def shown_on(page: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The lines of `ferry` of a page that are typed here, in order, each with what the page shows as its answer."""
    return [
        (line, answer)
        for line, answer in answered(page)
        if line.startswith("ferry ") and not {line, command_of(line)} & NOT_TYPED.keys()
    ]


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
