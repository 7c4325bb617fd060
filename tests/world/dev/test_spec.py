"""What is refused before anything starts, and the settings that a spec turns into."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, Listener, attach
from ferry.dev.jars import jars, java
from ferry.dev.properties import Node, render, server_properties
from ferry.dev.ready import java_hash, names_of_all_partitions
from ferry.errors import BadInput
from ferry.ports import FIRST, LAST, free_ports
from tests.golden import Golden

SASL = Listener(name="SASL", protocol="SASL_PLAINTEXT")
PLAIN = Listener(name="PLAIN", protocol="PLAINTEXT")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClusterSpec(name="../x"),
        lambda: ClusterSpec(name=""),
        lambda: ClusterSpec(name="two", brokers=2),
        lambda: ClusterSpec(name="sasl", listeners=(SASL,)),
        lambda: ClusterSpec(name="none", listeners=()),
        lambda: ClusterSpec(name="twice", listeners=(PLAIN, PLAIN)),
        lambda: jars("0.0.1"),
    ],
    ids=["a folder", "no name", "two brokers", "SASL alone", "no listener", "a listener twice", "no jars"],
)
def test_bad_input(make: Callable[[], object], golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        make()
    golden(wrong.value)


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput) as wrong:
        java()
    golden(wrong.value)


def test_an_unknown_cluster_is_named(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        attach(tmp_path, "nobody")
    golden(wrong.value)


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, "1", "1"), (3, "3", "2")])
def test_internal_topics_are_as_safe_as_the_cluster_allows(brokers: int, replicas: str, in_sync: str) -> None:
    spec = ClusterSpec(name="any", brokers=brokers)
    nodes = tuple(Node(node_id=n, ports={"PLAINTEXT": 1000 + n, "CONTROLLER": 2000 + n}) for n in range(1, brokers + 1))
    settings = server_properties(spec, nodes, nodes[0], Path("data"))
    assert settings["offsets.topic.replication.factor"] == replicas
    assert settings["transaction.state.log.replication.factor"] == replicas
    assert settings["transaction.state.log.min.isr"] == in_sync
    assert settings["controller.quorum.voters"].count("@127.0.0.1:") == brokers


def test_the_spec_has_the_last_word_and_listens_on_loopback_only() -> None:
    spec = ClusterSpec(name="any", listeners=(PLAIN, SASL), properties={"offsets.topic.num.partitions": "50"})
    node = Node(node_id=1, ports={"PLAIN": 1, "SASL": 2, "CONTROLLER": 3})
    settings = server_properties(spec, (node,), node, Path("data"))
    assert settings["offsets.topic.num.partitions"] == "50"
    assert settings["listeners"] == "PLAIN://127.0.0.1:1,SASL://127.0.0.1:2,CONTROLLER://127.0.0.1:3"
    assert settings["advertised.listeners"] == "PLAIN://127.0.0.1:1,SASL://127.0.0.1:2"


def test_backslashes_survive_the_properties_format() -> None:
    assert render({"a": r"b\c"}) == "a=b\\\\c\n"


@pytest.mark.parametrize(("text", "value"), [("", 0), ("a", 97), ("ferry", 97321242), ("consumer", 3727197174)])
def test_java_hash(text: str, value: int) -> None:
    """Values by Java: `Integer.toUnsignedString("ferry".hashCode())` in jshell."""
    assert java_hash(text) == value


@pytest.mark.parametrize("partitions", [1, 4, 50])
def test_every_coordinator_is_asked(partitions: int) -> None:
    names = names_of_all_partitions(partitions)
    assert [java_hash(name) % partitions for name in names] == list(range(partitions))


def test_ports_are_distinct_and_outside_the_ephemeral_range() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert all(FIRST <= port < LAST for port in ports)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["up", "--brokers", "2"], "choose 1 or 3"),
        (["up", "--names", "a,a"], "each once"),
        (["up", "--property", "x"], "not NAME=VALUE"),
        (["down", "--names", "nobody"], "no cluster 'nobody'"),
    ],
)
def test_commands_refuse_with_a_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    command = [sys.executable, "-m", "ferry.dev", *arguments, "--home", str(tmp_path)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 2
    assert complaint in run.stderr
    assert "Traceback" not in run.stderr
