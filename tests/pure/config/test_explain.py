"""`ferry config explain`: every key has its meaning."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ferry.config.client_options import ENGINE_CHOOSES
from ferry.config.explain import every_key, explain
from ferry.config.flow.clients import flow_client_options, flow_fetch_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.catalogue import keys_of
from ferry.config.keys.own import FERRY_KEYS
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.program import main
from tests.golden import Golden

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "config-explain.json"


def test_no_key_is_left_out() -> None:
    listed = {one.name for one in every_key()}
    assert {key.name for key in FERRY_KEYS} <= listed
    for group in ("flow", "worker", "consumer", "producer", "admin"):
        assert set(keys_of(group)) <= listed
    assert all(one.text and one.places for one in every_key())


@pytest.mark.parametrize("name", sorted({one.name for one in every_key() if "{" not in one.name}))
def test_each_listed_key_is_explained_by_its_name(name: str) -> None:
    assert {one.name for one in explain(name)} == {name}


@pytest.mark.parametrize(
    ("key", "name", "default", "kafkas"),
    [
        ("topics", "topics", ".*", None),
        ("us-west->us.east.topics", "topics", ".*", None),
        ("us-west.consumer.fetch.max.bytes", "fetch.max.bytes", None, "52428800"),
        ("a->b.target.producer.max.request.size", "max.request.size", None, "1048576"),
        ("auto.offset.reset", "auto.offset.reset", "earliest", None),
        ("west.consumer.receive.buffer.bytes", "receive.buffer.bytes", "-1", "65536"),
        ("west.producer.client.id", "client.id", "ferry.S->T", None),
        ("west.admin.request.timeout.ms", "request.timeout.ms", "30000", None),
        ("delivery.timeout.ms", "delivery.timeout.ms", "120000", None),
        ("isolation.level", "isolation.level", "read_committed", "read_uncommitted"),
        ("a->b.sync.group.offsets.enabled", "sync.group.offsets.enabled", "true", "false"),
        ("a->b.ferry.lane", "ferry.lane", "live", None),
        ("west.ferry.airflow.conn.id", "ferry.airflow.conn.id", None, None),
        ("transforms.mask.type", "transforms.mask.type", None, None),
    ],
)
def test_a_key_is_found_behind_alias_flow_and_client(
    key: str, name: str, default: str | None, kafkas: str | None
) -> None:
    (one,) = explain(key)
    assert (one.name, one.default, one.kafkas_default) == (name, default, kafkas)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("us-west.topics", True),
        ("b.tasks.max", True),
        ("rename.topics", True),
        ("a.enabled", True),
        ("a.ferry.lane", True),
        ("a->b.exactly.once.source.support", True),
        ("topics.blacklist", True),
        ("a->b.groups.blacklist", True),
        ("topics", False),
        ("fetch.max.bytes", False),
        ("a.b.consumer.fetch.max.bytes", False),
        ("a->b.c.producer.client.id", False),
        ("a->b.admin.client.id", False),
        ("a->b.target.producer.client.id", False),
        ("a->b.source.cluster.sasl.mechanism", False),
        ("a.sasl.mechanism", False),
        ("a.topic.creation.x", False),
    ],
)
def test_a_place_where_the_key_does_not_count_is_said(key: str, said: bool, golden: Golden) -> None:
    notes = {one.note for one in explain(key)}
    assert (None in notes) is not said
    assert len(notes) == 1
    if said:
        golden(notes.pop())


def test_what_differs_between_clients_is_told_apart() -> None:
    clients, admin, worker = explain("request.timeout.ms")
    assert (clients.fate, admin.fate, worker.fate) == ("used", "not needed", "not needed")
    assert {"{alias}.consumer.", "{alias}.producer."} <= set(clients.places)
    assert "{alias}.admin." in admin.places


def flow_of(line: str = "") -> FlowConfig:
    text = f"clusters = S, T\nS.bootstrap.servers = s:1\nT.bootstrap.servers = t:1\nS->T.enabled = true\n{line}\n"
    return parse_settings(text, "f").flow("S->T")


def test_defaults_of_clients_are_those_of_ferry_s_clients() -> None:
    """Where explain names a default, a file that says the same changes nothing."""
    flow = flow_of()
    said = {one.name: one.default for one in every_key() if one.places[0] == "{alias}.consumer."}
    connection = flow_client_options(flow, "source", "consumer")
    assert said["client.id"] == connection.client_id
    assert said["request.timeout.ms"] == str(connection.request_timeout_ms)
    assert said["metadata.max.age.ms"] == str(connection.metadata_max_age_ms)
    assert said["reconnect.backoff.max.ms"] == str(connection.reconnect_backoff_max_ms)
    assert flow_fetch_options(flow) == ENGINE_CHOOSES
    assert {said[name] for name in ("fetch.max.bytes", "fetch.min.bytes", "fetch.max.wait.ms")} == {None}
    for name in ("send.buffer.bytes", "receive.buffer.bytes", "isolation.level", "auto.offset.reset"):
        written = flow_of(f"S.consumer.{name} = {said[name]}")
        assert flow_client_options(written, "source", "consumer") == connection
        assert (written.copy.start, written.copy.isolation_level) == (flow.copy.start, flow.copy.isolation_level)


def test_no_default_is_told_from_one_that_reads_none(capsys: pytest.CaptureFixture[str]) -> None:
    for key, shown in (
        ("ferry.start", "  no default"),
        ("metadata.recovery.strategy", "  default  rebootstrap (Kafka's)"),
    ):
        with pytest.raises(SystemExit):
            main(["config", "explain", key])
        assert shown in capsys.readouterr().out.splitlines()


def test_an_unknown_key_names_the_nearest(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        explain("topcs")
    golden(caught.value)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("A->B.enable", "A->B.enabled"),
        ("west.consumer.fetch.max.byts", "west.consumer.fetch.max.bytes"),
        ("a->b.c.topcs", "a->b.c.topics"),
        ("us.west->us.east.ferry.lan", "us.west->us.east.ferry.lane"),
    ],
)
def test_the_nearest_stands_in_the_same_place(key: str, meant: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        explain(key)
    assert meant in str(caught.value)
    golden(caught.value)


@pytest.mark.parametrize("owner", ["A->B.", "west."])
@pytest.mark.parametrize("name", ["config.providers", "config.providers.file.param.allowed.paths"])
def test_providers_count_at_top_level_alone(owner: str, name: str) -> None:
    (one,) = explain(f"{owner}{name}")
    assert one.places == ("",)
    assert one.note is not None


def test_the_command(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "explain", "groups.exclude"])
    assert ended.value.code == 0
    golden(capsys.readouterr().out)
    with pytest.raises(SystemExit):
        main(["config", "explain", "--json"])
    body = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert len(body["keys"]) > 250


def test_without_a_line_batches_keep_the_compression_of_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = explain("producer.compression.type")
    assert (one.default, one.kafkas_default) == (None, "none")
    with pytest.raises(SystemExit):
        main(["config", "explain", "producer.compression.type"])
    assert "no default (MirrorMaker 2: none)" in capsys.readouterr().out


@pytest.mark.parametrize("text", sorted({one.text for one in every_key()}))
def test_each_meaning_stands_alone(text: str) -> None:
    """`config explain` shows one row: other keys, and what is written before it, are not in sight."""
    assert not re.match(r"(the same|they|it|as|of)\b", text, re.IGNORECASE)
    assert not re.search(r"\b(above|that (hook|key|setting)|as (before|there))\b", text)
