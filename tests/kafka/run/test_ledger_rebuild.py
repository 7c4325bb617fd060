"""A ledger that is lost and rebuilt from an export: the next run goes on where the last one ended."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.config.settings import parse_settings
from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.archive.acts.export import JsonLines, export_ledger, json_lines
from ferry.features.archive.acts.parquet import ParquetLines, parquet_lines
from ferry.features.archive.acts.rebuild import rebuild_ledger
from ferry.features.archive.cli.file import PARQUET
from ferry.lane.connections import TargetConnection
from ferry.ledger.ledger import fold
from ferry.ledger.rebuilt import FILLER
from ferry.ledger.report import RunState
from ferry.model import LedgerRecord, RefusalKind
from ferry.protocol.names import DRIVER, ledger_topic, transactional_id
from tests.harness import (
    Lab,
    awaited,
    commit_offsets,
    committed_offsets,
    create_topic,
    delete_topic,
    new_alias,
    numbered,
    producer,
    send,
)
from tests.program import PROGRAM
from tests.program import warm_ferry as ferry
from tests.said import codes, data_of, facts_in
from tests.terminal import ESCAPE, at_a_terminal
from tests.tiers import ANSWER_S


def lab_of(source: RunningCluster, target: RunningCluster, topic: str) -> Lab:
    create_topic(source, topic, 2)
    return Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings={"ferry.chunk.bytes": "2000"})


def more(lab: Lab, number: int) -> None:
    send(producer(lab.source), lab.topics[0], numbered(50, start=number * 50, partitions=2, size=100))


def export(lab: Lab, path: Path) -> None:
    export_ledger(lab.flow, path, ParquetLines if path.suffix == PARQUET else JsonLines)


def lose(lab: Lab) -> None:
    delete_topic(lab.target, ledger_topic(lab.alias))
    with TargetConnection.of(lab.flow) as connection:

        async def gone() -> bool:
            return not await connection.has_ledger()

        connection.run(lambda: awaited(connection.loop, gone, "the end of the ledger's topic"))


def kept(lab: Lab) -> list[LedgerRecord]:
    """The ledger's records as they lie, without fillers."""
    with TargetConnection.of(lab.flow) as connection:
        records, _ = connection.run(connection.ledger.read)
    return [record for record in records if record.key != FILLER.key]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_run_goes_on_where_the_lost_ledger_ended(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, suffix: str
) -> None:
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / f"ledger{suffix}"
    for number in range(2):
        more(lab, number)
        assert lab.micro_run().records == 50
    export(lab, path)
    before = {record.offset: (record.key, record.value) for record in kept(lab)}
    read = parquet_lines if suffix == ".parquet" else json_lines
    with pytest.raises(Refused, match="exported"):
        rebuild_ledger(lab.flow, path, read, who="ann@desk", dry_run=False)
    lose(lab)
    told = rebuild_ledger(lab.flow, path, read, who="ann@desk", dry_run=True)
    assert told.records == len(before)
    assert told.ahead == ()
    with TargetConnection.of(lab.flow) as connection:
        assert not connection.run(connection.has_ledger), "a dry run writes nothing"
    assert rebuild_ledger(lab.flow, path, read, who="ann@desk", dry_run=False) == told
    found = {record.offset: (record.key, record.value) for record in kept(lab)}
    assert {offset: found[offset] for offset in found if offset < told.upto} == before
    assert list(found)[len(before) :] == [told.upto], "the mark alone lies behind"
    more(lab, 2)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 50)
    assert (codes(report.notes)[0], facts_in(report.notes[0])["who"]) == ("run.ledger-rebuilt", "ann@desk")
    assert lab.micro_run().notes == (), "once is enough"
    assert lab.assert_equal() == 150
    generations = [run.generation for run in fold(kept(lab), 0).runs]
    assert generations == sorted(generations)


def exported(config: Path, path: Path) -> dict[str, object]:
    """What the command says of an export, after a dry run of it that says the same."""
    would = ferry("ledger", "export", "--output", path, "--dry-run", "--json", config=config).json("ledger-export")
    assert not list(path.parent.glob("ledger.jsonl*")), "a dry run leaves no part of a file, either"
    shown = at_a_terminal([PROGRAM, "ledger", "export", "--output", path, "--dry-run", "--config", config])
    assert re.search(r"\d+ of \d+ offsets of ", ESCAPE.sub("", shown)), "there is a bar while it reads"
    told = ferry("ledger", "export", "--output", path, "--json", config=config).json("ledger-export")
    assert would == told | {"dry_run": True}
    nowhere = ferry("ledger", "export", "--output", path.parent / "none" / "l.jsonl", "--dry-run", config=config)
    assert (nowhere.code, f"{path.parent / 'none'} does not exist" in nowhere.err) == (2, True)
    return dict(told)


def test_what_was_copied_after_the_export_is_named_and_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    group = f"app-{topic}"
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / "ledger.jsonl"
    lab = replace(lab, settings={**lab.settings, "groups": group})
    more(lab, 0)
    commit_offsets(source_cluster, group, {(topic, 0): 10})
    assert lab.micro_run().records == 50
    config = lab.write(tmp_path)
    assert ferry("groups", "sync", config=config).code == 0
    told = exported(config, path)
    assert (told["flow"], told["file"]) == (str(lab.flow.flow), str(path))
    more(lab, 1)
    commit_offsets(source_cluster, group, {(topic, 0): 40})
    assert lab.micro_run().records == 50
    assert ferry("groups", "sync", config=config).code == 0
    stands = committed_offsets(target_cluster, group, lab.target_topic(topic), 2)
    lose(lab)
    # Runs that are refused begin a new ledger, and somebody tells them to wait.
    assert {refusal.kind for refusal in lab.micro_run().refusals} == {RefusalKind.LEDGER_BEHIND}
    assert ferry("pause", "--topic", topic, "--reason", "the ledger is lost", config=config).code == 0
    would = ferry("ledger", "rebuild", "--input", path, "--dry-run", "--json", config=config).json("ledger-rebuild")
    answer = ferry("ledger", "rebuild", "--input", path, "--json", config=config)
    told = answer.json("ledger-rebuild")
    assert told == would | {"dry_run": False}
    assert (told["replaced"] > 0, told["carried"]) == (True, 1)
    ahead = told["ahead"]
    assert answer.code == 1
    pauses = ferry("ledger", "--pauses", "--json", config=config).json("ledger-pauses")["pauses"]
    assert [(one["topic"], one["why"]) for one in pauses] == [(topic, "the ledger is lost")]
    assert ferry("resume", "--topic", topic, config=config).code == 0
    # The group stands where Ferry put it, which the export does not know.
    synced = ferry("groups", "sync", config=config)
    assert (synced.code, committed_offsets(target_cluster, group, lab.target_topic(topic), 2)) == (1, stands)
    assert f"group {group} is at {stands[0]} of " in synced.out
    assert "ledger was rebuilt by " in synced.out
    assert f"ferry groups sync --force --group {group}" in synced.out
    assert [(one["target_partition"], one["exported"], one["copied"]) for one in ahead] == [(0, 25, 50), (1, 25, 50)]
    # Retention takes what no receipt names, so that the positions alone are left to tell of it.
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    places = [TopicPartition(lab.target_topic(topic), number, -1) for number in range(2)]
    for future in admin.delete_records(places).values():
        future.result(ANSWER_S)
    for _ in range(2):  # what is refused stays so
        report = lab.micro_run()
        assert report.records == 0
        assert {(one.kind, one.code) for one in report.refusals} == {(RefusalKind.LEDGER_BEHIND, "ledger.behind")}
        assert {("end", 50), ("known", 25)} <= {*report.refusals[0].facts}

    # Without an export nothing is copied anew either, before the copy is deleted.
    lose(lab)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.FAILED, 0)
    assert {refusal.kind for refusal in report.refusals} == {RefusalKind.LEDGER_BEHIND}
    with lab.runs() as runs:
        assert {refusal.kind for refusal in runs.preview().refusals} == {RefusalKind.LEDGER_BEHIND}
    delete_topic(target_cluster, lab.target_topic(topic))
    assert lab.micro_run().records == 100
    assert lab.assert_equal() == 100


def test_no_run_begins_in_a_ledger_that_is_not_rebuilt_to_its_end(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / "ledger.jsonl"
    more(lab, 0)
    assert lab.micro_run().records == 50
    export(lab, path)
    lose(lab)

    async def die(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ferry.kafka.produce.ledger_topic.LedgerTopic.make_ready", die)
    with pytest.raises(KeyboardInterrupt):
        rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=False)
    with pytest.raises(Refused) as refused:
        lab.micro_run()
    code, facts = data_of(refused.value)
    assert (code, facts["setting"], facts["found"]) == ("ledger.may-lose", "unclean.leader.election.enable", "true")
    monkeypatch.undo()
    rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=False)
    more(lab, 1)
    assert lab.micro_run().records == 50
    assert lab.assert_equal() == 100


def test_what_is_carried_over_outlives_a_rebuild_that_is_killed_behind_the_deletion(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / "ledger.jsonl"
    config, kept_file = lab.write(tmp_path), tmp_path / "ledger.jsonl.carried"
    more(lab, 0)
    assert lab.micro_run().records == 50
    export(lab, path)
    lose(lab)
    more(lab, 1)  # of which there is no receipt
    lab.micro_run()
    assert ferry("pause", "--topic", topic, "--reason", "the ledger is lost", config=config).code == 0

    async def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def killed(method: str) -> None:
        monkeypatch.setattr(f"ferry.kafka.produce.ledger_topic.LedgerTopic.{method}", die)
        with pytest.raises(KeyboardInterrupt):
            rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=False)
        monkeypatch.undo()

    killed("create_unready")  # nothing lies there now
    with TargetConnection.of(lab.flow) as connection:
        assert not connection.run(connection.has_ledger)
    assert rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=True).carried == 1
    killed("append_each")  # a ledger without a record
    killed("make_ready")  # all but open
    assert not kept_file.exists()
    killed("create_unready")
    assert kept_file.exists(), "what lay behind the export is kept again"
    told = rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=False)
    assert (told.carried, kept_file.exists()) == (1, False)
    pauses = ferry("ledger", "--pauses", "--json", config=config).json("ledger-pauses")["pauses"]
    assert [(one["topic"], one["why"]) for one in pauses] == [(topic, "the ledger is lost")]


def test_a_ledger_that_tells_of_copied_records_is_not_replaced_and_what_would_be_lost_is_named(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / "ledger.jsonl"
    more(lab, 0)
    assert lab.micro_run().records == 50
    export(lab, path)
    lose(lab)
    delete_topic(target_cluster, lab.target_topic(topic))
    assert lab.micro_run().records == 50, "who cannot wait for an export copies all anew"
    copy, ledger = lab.target_topic(topic), ledger_topic(lab.alias)
    for dry_run in (True, False):
        with pytest.raises(Refused, match=r"receipts .*\(2\)") as refused:
            rebuild_ledger(lab.flow, path, json_lines, who="ann@desk", dry_run=dry_run)
        said = str(refused.value)
        assert f"--bootstrap-server {target_cluster.bootstrap} --delete --topic {ledger}, and rebuild again" in said
        assert f"then refuses {copy}, until " in said
    more(lab, 1)
    assert lab.micro_run().records == 50, "it is as it was"
    assert lab.assert_equal() == 100


@pytest.mark.parametrize(
    ("renamed", "lane", "name"),
    [
        (False, "live", 7),
        (False, "live", DRIVER),
        (True, "live", 0),
        (True, "live", DRIVER),
        (False, "append-x", DRIVER),
    ],
)
def test_a_run_that_is_at_work_when_the_ledger_is_lost_does_not_write_into_what_is_rebuilt(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    tmp_path: Path,
    renamed: bool,
    lane: str,
    name: int | str,
) -> None:
    """Also in a slot that no ledger knows any more, for the export is older than the run; a driver; and under the name
    that the flow had before its target's alias was changed.
    """
    lab, path = lab_of(source_cluster, target_cluster, topic), tmp_path / "ledger.jsonl"
    more(lab, 0)
    assert lab.micro_run().records == 50
    export(lab, path)
    writing = transactional_id(lab.flow.flow, lane, name)
    flow = lab.flow
    if renamed:
        name_now = f"r{lab.alias}"
        text = lab.text.replace(f"t{lab.alias}", name_now)
        flow = parse_settings(text, "lab.properties").flow(f"{lab.alias}->{name_now}")
    writer = Producer({"bootstrap.servers": target_cluster.bootstrap, "transactional.id": writing})
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    lose(lab)
    rebuild_ledger(flow, path, json_lines, who="ann@desk", dry_run=False)
    writer.produce(ledger_topic(lab.alias), key=b'["receipt"]', value=b"{}")
    with pytest.raises(KafkaException) as fenced:
        writer.commit_transaction(ANSWER_S)
    assert fenced.value.args[0].code() == KafkaError._FENCED
    more(lab, 1)
    assert lab.micro_run().records == 50
    assert lab.assert_equal() == 100
