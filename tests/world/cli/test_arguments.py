"""What the command line says before any cluster is asked."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec
from ferry.dev.cluster import STATE_FILE
from ferry.dev.properties import Node
from tests.golden import Golden, brief
from tests.program import ferry as cold_ferry
from tests.program import warm_ferry as ferry

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:{port}
b.bootstrap.servers = 127.0.0.1:{other}
a->b.enabled = true
a->b.topics = orders.*
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file whose clusters do not answer."""
    path = tmp_path / "mm2.properties"
    port, other = _closed_ports()
    path.write_text(FILE.format(port=port, other=other))
    return path


def _closed_ports() -> tuple[int, int]:
    """Two ports that differ: both are taken until both are known."""
    with socket.socket() as probe, socket.socket() as another:
        probe.bind(("127.0.0.1", 0))
        another.bind(("127.0.0.1", 0))
        return probe.getsockname()[1], another.getsockname()[1]


def test_help_brings_no_client_along() -> None:
    """Light start, told by what is imported, not by the clock."""
    script = (
        "import atexit, sys, ferry.program\n"
        "heavy = ('kafka', 'confluent_kafka', 'ferry.run', 'ferry.features')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules]))\n"
        "ferry.program.main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["run", "plan", "lag", "pause", "resume", "skip"])
def test_the_options_of_a_daily_command_bring_no_configuration_along(name: str) -> None:
    script = (
        "import sys\n"
        "from ferry.commands import COMMANDS\n"
        f"COMMANDS[{name!r}].function()\n"
        "heavy = ('ferry.config', 'ferry.model', 'rich.console', 'rich.progress')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_help_of_a_command_brings_no_client_along() -> None:
    """Typer needs a command's module for its help: all of them but those that hand their words on."""
    script = (
        "import sys\n"
        "from ferry.cli.lazy import Group\n"
        "from ferry.commands import COMMANDS, HANDED_ON\n"
        "below = lambda top: sum(map(below, top.rows.values()), []) if isinstance(top, Group) else [top]\n"
        "rows = sum(map(below, COMMANDS.values()), [])\n"
        "loaded = [row.function() for row in rows if row.options != HANDED_ON]\n"
        "heavy = ('kafka', 'confluent_kafka', 'ferry.kafka', 'cryptography', 'pyspark', 'pyarrow', 'airflow')\n"
        "print([name for name in heavy if name in sys.modules], len(loaded) > 40)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"


def test_a_copy_process_brings_nothing_along_that_plans_or_reads_a_file() -> None:
    script = (
        "import sys, ferry.run.worker\n"
        "heavy = ('ferry.plan', 'ferry.config.flow', 'ferry.policy', 'cryptography', 'pyspark')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command", ["", "config new", "dev", "dev up", "airflow", "airflow setup", "migrate hand-back"]
)
def test_help_is_shown_wherever_a_command_comes_from(command: str) -> None:
    answer = ferry(*command.split(), "--help")
    assert answer.code == 0
    assert "Usage" in answer.out


def test_version() -> None:
    assert cold_ferry("version", "--json").json("version")["version"]
    assert ferry("--json", "version").json("version")["version"]
    assert ferry("version").out.startswith("ferry ")


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A home of local clusters that knows one, which does not run."""
    node = Node(node_id=1, ports={"PLAINTEXT": 9092, "CONTROLLER": 9093})
    known = {"spec": asdict(ClusterSpec(name="here")), "cluster_id": "x", "nodes": [asdict(node)]}
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / STATE_FILE).write_text(json.dumps(known))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [["--json", "dev", "status"], ["dev", "--json", "status"], ["dev", "status", "--json"]],
    ids=["before", "between", "behind"],
)
def test_local_clusters_are_shown_as_json(stopped: Path, arguments: list[str]) -> None:
    (cluster,) = ferry(*arguments, "--home", stopped).json("dev")["clusters"]
    assert (cluster["name"], cluster["state"]) == ("here", "stopped")
    assert [(broker["node_id"], broker["pid"]) for broker in cluster["brokers"]] == [(1, None)]


def test_local_clusters_are_stopped_as_json(stopped: Path) -> None:
    answer = ferry("--json", "dev", "down", "--home", stopped)
    assert (answer.code, answer.json("dev-down")) == (0, {"stopped": ["here"], "deleted": False, "dry_run": False})


def test_flows_are_listed_without_a_network(config: Path) -> None:
    body = ferry("flows", "--config", config, "--json").json("flows")
    assert [row["flow"] for row in body["flows"]] == ["a->b"]
    assert "a->b" in ferry("--config", config, "flows").out


@pytest.mark.parametrize("arguments", [["flows"], ["run", "a->c"], ["run", "--patience", "0.4"]])
def test_the_installed_program_says_the_same_as_its_quick_twin_of_these_tests(
    config: Path, arguments: list[str]
) -> None:
    assert cold_ferry(*arguments, config=config) == ferry(*arguments, config=config)


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["run", "a->b", "--bogus"],
        ["dev", "bogus"],
        ["dev", "status", "--bogus"],
        ["dev", "down", "--names", "a,a"],
        ["airflow", "bogus"],
        ["airflow", "setup", "--bogus"],
        ["run", "a->c"],
        ["run", "a"],
        ["run", "a-"],
        ["run", "--max-bytes", "0"],
        ["run", "--max-bytes", "many"],
        ["run", "--max-seconds", "0"],
        ["run", "--resume", "r1", "--max-seconds", "5"],
        ["run", "--resume", "r1", "--topic", "orders"],
        ["plan", "--topic", "payments"],
        ["ledger", "--offset", "5"],
        ["ledger", "--runs", "--topic", "orders"],
        ["pause", "a->b"],
        ["pause", "--reason", " "],
        ["pause", "--reason", "x", "--until", "tomorrow"],
        ["pause", "--reason", "x", "--until", "2999-01-01T00:00:00"],
        ["pause", "--reason", "x", "--until", "2001-01-01T00:00:00Z"],
        ["pause", "--reason", "x", "--topic", "payments"],
    ],
    ids=brief,
)
def test_bad_input_is_one_sentence_and_exit_code_2(config: Path, arguments: list[str], golden: Golden) -> None:
    answer = ferry(*arguments, config=config)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("ferry: ")
    assert answer.err.count("\n") == 1
    told = ferry(*arguments, "--json", config=config)
    assert told.code == 2
    assert told.json("error")["error"] == {"kind": "bad-input", "message": answer.err[len("ferry: ") : -1]}
    golden(answer.err.removeprefix("ferry: "))


def test_without_a_configuration_the_remedy_is_named() -> None:
    answer = ferry("flows")
    assert answer.code == 2
    assert "FERRY_CONFIG" in answer.err


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    answer = ferry("flows", "--config", tmp_path / "none.properties")
    assert answer.code == 2
    assert "none.properties: cannot be read" in answer.err


def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(port=9092, other=9093) + "a->b.ferry.shedule = @daily\n")
    answer = ferry("run", config=path)
    assert answer.code == 2
    assert f"{path}:7: " in answer.err


def test_warnings_are_told_unless_quiet(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(port=9092, other=9093) + "topics.exclude = x # note\n")
    assert "ferry: warning: " in ferry("flows", config=path).err
    assert ferry("flows", "--quiet", config=path).err == ""


def test_several_flows_must_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE.format(port=9092, other=9093) + "b->a.enabled = true\n")
    answer = ferry("run", config=path)
    assert answer.code == 2
    assert "'a->b', 'b->a'" in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["plan"],
        ["lag"],
        ["ledger"],
        ["pause", "--reason", "x"],
        ["resume"],
        ["skip", "orders", "0", "--to", "7", "--reason", "x"],
        ["records", "show", "orders", "0", "7"],
        ["translate", "orders", "0", "7"],
        ["migrate", "mm1", "--group", "mirror"],
        ["migrate", "mm2"],
        ["migrate", "hand-back"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_closed_port_is_exit_code_3_within_the_patience(config: Path, arguments: list[str]) -> None:
    answer = ferry(*arguments, "--patience", "0.4", config=config)
    assert answer.code == 3
    assert (answer.err.count("\n"), "0.4 s" in answer.err) == (1, True)


def test_a_port_that_never_answers_is_exit_code_3_within_the_patience(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        path = tmp_path / "mm2.properties"
        path.write_text(FILE.format(port=mute.getsockname()[1], other=_closed_ports()[0]))
        answer = ferry("run", "--patience", "2", "--json", config=path)
    assert answer.code == 3
    error = answer.json("error")["error"]
    assert (error["kind"], "within 2 s" in error["message"]) == ("unreachable", True)
