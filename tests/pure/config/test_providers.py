"""Config providers against Kafka's own: what is looked up, and what is not allowed."""

import os
from pathlib import Path

import pytest

from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from ferry.features.switch.settings import SwitchSettings
from ferry.model import code_of, facts_of
from tests.golden import Golden

KAFKAS = "org.apache.kafka.common.config.provider."
BASE = f"""\
clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
config.providers = env,file,dir
config.providers.env.class = {KAFKAS}EnvVarConfigProvider
config.providers.file.class = {KAFKAS}FileConfigProvider
config.providers.dir.class = {KAFKAS}DirectoryConfigProvider
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "values.properties").write_text(
        "topics = from.\\u0066ile\nlong = a,\\\n   b\ncolon:c\n", encoding="utf-8"
    )
    (tmp_path / "plain").write_text("from-a-file")
    return tmp_path


@pytest.mark.parametrize(
    ("limits", "value", "found"),
    [
        ("file.param.allowed.paths = FOLDER", "${file:FOLDER/values.properties:topics}", "from.file"),
        (
            "file.param.allowed.paths = /nowhere, FOLDER/values.properties",
            "${file:FOLDER/values.properties:topics}",
            "from.file",
        ),
        ("file.param.allowed.paths = FOLDER/sub", "${file:FOLDER/sub/../values.properties:topics}", None),
        ("dir.param.allowed.paths = FOLDER", "${dir:FOLDER:plain}", "from-a-file"),
        ("dir.param.allowed.paths = /etc", "${dir:FOLDER:plain}", None),
        ("env.param.allowlist.pattern = FERRY_.*", "${env:FERRY_OF_A_TEST}", "of-a-test"),
        ("env.param.allowlist.pattern = FERRY", "${env:FERRY_OF_A_TEST}", None),
    ],
)
def test_a_provider_keeps_within_its_limits(
    limits: str, value: str, found: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "of-a-test")
    text = f"{BASE}config.providers.{limits}\ntopics = {value}\n".replace("FOLDER", str(folder))
    examined = examine(text, "f")
    if found is not None:
        assert examined.problems == ()
        assert examined.flows[0].topics.filter.include.items == (found,)
    else:
        golden(examined.problems[0].message)


def test_a_link_leads_out_of_no_limit(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub" / "link").symlink_to(folder / "values.properties")
    for limit, is_allowed in ((folder / "sub", False), (folder, True)):
        line = f"config.providers.file.param.allowed.paths = {limit}\n"
        text = f"{BASE}{line}topics = ${{file:{folder}/sub/link:topics}}\n"
        assert (examine(text, "f").problems == ()) is is_allowed


def test_clusters_and_switches_may_be_looked_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "true")
    (folder / "aliases").write_text("a, b")
    text = BASE.replace("clusters = a, b", f"clusters = ${{dir:{folder}:aliases}}").replace(
        "enabled = true", "enabled = ${env:FERRY_OF_A_TEST}"
    )
    assert [str(flow.flow) for flow in parse_settings(text, "f").flows] == ["a->b"]


def test_no_value_of_the_environment_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "planted")
    examined = examine(f"{BASE}a.ssl.key.password = ${{env:FERRY_OF_A_TEST}}\n", "f")
    assert examined.problems == ()
    assert "planted" not in repr(examined)
    assert os.environ["FERRY_OF_A_TEST"] == "planted"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:s3cret@hooks.example:8443/services/s3cret?x=s3cret#s3cret", "https://hooks.example:8443/[hidden]"),
        ("https://hooks.example/", "https://hooks.example/"),
    ],
)
def test_the_path_of_a_hook_is_not_shown(address: str, shown: str) -> None:
    examined = examine(f"{BASE}ferry.switch.redirect.url = {address}\n", "f")
    assert examined.problems == ()
    (found,) = [one for one in examined.settings[examined.flows[0].flow] if one.name == "ferry.switch.redirect.url"]
    assert found.value == shown
    assert examined.flows[0].of(SwitchSettings).redirect.url == address


@pytest.mark.parametrize("reference", ["${env:FERRY_OF_A_TEST:-a}", "${env:FERRY_OF_A_TEST:FERRY_OTHER}"])
def test_a_variable_has_no_default(reference: str, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    """Kafka's provider refuses a path, too; what is after it is the name that would be read."""
    monkeypatch.setenv("FERRY_OF_A_TEST", "a")
    monkeypatch.setenv("FERRY_OTHER", "b")
    examined = examine(f"{BASE}topics = {reference}\n", "f")
    (problem,) = examined.problems
    assert (problem.line, code_of(problem.message)) == (9, "line.reference")
    assert examined.flows[0].clients.providers.variables(reference) == frozenset()
    golden(problem.message)


def test_values_of_clients_have_no_blanks_around_them_as_in_kafka(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ConfigDef.parseType` trims passwords and texts; what a login's text has inside of quotes stays."""
    (folder / "secret").write_text("s3cret \n")
    monkeypatch.setenv("FERRY_OF_A_TEST", "two words\r\n")
    lines = (
        f"a.ssl.keystore.password = ${{dir:{folder}:secret}}\n"
        "a.ssl.key.password = ${env:FERRY_OF_A_TEST}\n"
        "a.consumer.client.id = mine\\u0020\n"
        "a.consumer.client.rack = az\\u00a0\\t\n"
        'a.sasl.jaas.config = x.Y required password=" p ";\\u0020\n'
    )
    client = parse_settings(BASE + lines, "f").flows[0].client("source", "consumer")
    assert client["ssl.keystore.password"] == "s3cret"
    assert client["ssl.key.password"] == "two words"
    assert client["client.id"] == "mine"
    assert client["client.rack"] == "az\u00a0", "Java's trim takes no blank of other scripts"
    assert client["sasl.jaas.config"] == 'x.Y required password=" p ";'
    assert "two words" not in client.redacted("ssl.key.password: two words, s3cret")


def test_a_problem_has_a_code_and_no_fact_of_what_was_looked_up(folder: Path) -> None:
    (folder / "broken").write_text("secret = \\u00zz\n")
    (folder / "number").write_text("not-a-number")
    lines = (
        f"tasks.max = ${{dir:{folder}:number}}\ntopics = ${{env:NOT_SET_HERE}}\ngroups = ${{file:{folder}/broken:a}}\n"
    )
    found = {one.key: one.message for one in examine(BASE + lines, "f").problems}
    assert code_of(found["tasks.max"]) == "value.number"
    assert (facts_of(found["tasks.max"]), "not-a-number" in found["tasks.max"]) == ((), False)
    assert dict(facts_of(found["topics"]))["key"] == "topics"
    assert code_of(found["topics"]) == "line.reference"
    assert "malformed" in found["groups"]


def test_a_variable_that_is_not_utf8_is_a_problem_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_OF_A_TEST", "s\udce4cret")
    (found,) = examine(f"{BASE}tasks.max = 1\ntopics = ${{env:FERRY_OF_A_TEST}}\n", "f").problems
    assert (found.key, code_of(found.message), "cret" in found.message) == ("topics", "line.reference", False)
