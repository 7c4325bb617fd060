"""A file that works and what it means; those that do not are in test_broken.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.config.flow.parts import Budget
from ferry.config.flow.start import StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.config.settings import Settings, parse_settings
from ferry.config.text.problem import Severity
from ferry.errors import BadInput
from ferry.model import Flow, TopicPartition
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from tests.golden import Golden
from tests.said import data_of

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092, broker-2:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
"""

AT = TopicPartition(topic="a", partition=0)


def settings(text: str) -> Settings:
    return parse_settings(text, "mm2.properties")


def warnings(text: str) -> list[str]:
    return [str(problem) for problem in settings(text).problems if problem.severity is Severity.WARNING]


def test_defaults() -> None:
    read = settings(BASE)
    assert read.problems == ()
    assert set(read.clusters) == {"west", "east"}
    assert read.cluster("west").bootstrap_servers == "broker-1:9092,broker-2:9092"
    flow = read.flow("west->east")
    assert flow.flow == Flow(source="west", target="east")
    assert flow.topics.filter.include.items == (".*",)
    assert flow.topics.filter.exclude.items == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert flow.topics.policy == DefaultReplicationPolicy()
    assert flow.topics.replication_factor is None
    assert flow.copy.tasks_max == 1
    assert flow.copy.isolation_level == "read_committed"
    assert flow.copy.start == StartEarliest()
    assert flow.copy.budget == Budget(max_bytes=10 * 1024**3, max_records=None, max_seconds=900)
    assert (flow.airflow.schedule, flow.lane, flow.airflow.retries) == ("*/5 * * * *", "live", 3)
    assert (flow.airflow.spark_conn_id, flow.airflow.pool) == ("spark_default", "ferry_west_east")
    assert (flow.copy.chunk_bytes, flow.copy.chunk_seconds, flow.copy.transaction_timeout_ms) == (
        256 * 1024**2,
        20,
        60_000,
    )
    assert flow.topics.sync_topic_configs
    assert flow.topics.config_exclude.matches("min.insync.replicas")


def test_the_top_level_counts_for_all_flows_and_a_flows_own_line_wins() -> None:
    read = settings(
        BASE
        + """
east->west.enabled = TRUE
topics = orders.*, payments
replication.factor = 3
tasks.max = 4
ferry.run.max.seconds = 60
ferry.schedule = @hourly
west->east.topics = orders-eu
west->east.replication.factor = 1
west->east.ferry.schedule = none
west->east.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
east->west.replication.policy.separator = _
"""
    )
    there, back = read.flow("west->east"), read.flow("east -> west")
    assert (there.topics.filter.include.items, back.topics.filter.include.items) == (
        ("orders-eu",),
        ("orders.*", "payments"),
    )
    assert (there.topics.replication_factor, back.topics.replication_factor) == (1, 3)
    assert (there.copy.tasks_max, back.copy.tasks_max) == (4, 4)
    assert (there.airflow.schedule, back.airflow.schedule) == (None, "@hourly")
    assert there.copy.budget.max_seconds == 60
    assert there.topics.policy == IdentityReplicationPolicy(source_alias="west")
    assert back.topics.policy == DefaultReplicationPolicy(separator="_")


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("west.consumer.auto.offset.reset = latest", StartLatest()),
        ("ferry.start = latest", StartLatest()),
        ("west.consumer.auto.offset.reset = latest\nferry.start = earliest", StartEarliest()),
        ("ferry.start = 2026-01-31T06:00:00Z", StartTime(timestamp_ms=1_769_839_200_000)),
        ("ferry.start = 2026-01-31T07:00:00.5+01:00", StartTime(timestamp_ms=1_769_839_200_500)),
        ("ferry.start = 1769839200000", StartTime(timestamp_ms=1_769_839_200_000)),
        (
            "west->east.ferry.start = a:0:5, b.c:1:7",
            StartOffsets(offsets={AT: 5, TopicPartition(topic="b.c", partition=1): 7}),
        ),
    ],
)  # fmt: skip
def test_start(line: str, start: object) -> None:
    assert settings(BASE + line).flow("west->east").copy.start == start


def test_disabled_and_unmentioned_flows_are_left_out() -> None:
    text = BASE + "east->west.enabled = false\neast->west.topics = a\n"
    assert [str(flow.flow) for flow in settings(text).flows] == ["west->east"]


def test_aliases_that_begin_with_one_another_are_told_apart() -> None:
    text = """\
clusters = a, a.b, a-b
a.bootstrap.servers = h:1
a.b.bootstrap.servers = h:2
a-b.bootstrap.servers = h:3
a->a.b.enabled = true
a->a-b.enabled = true
"""
    assert [str(flow.flow) for flow in settings(text).flows] == ["a->a-b", "a->a.b"]


def test_of_many_flows_a_few_are_named(golden: Golden) -> None:
    names = ", ".join(f"c{n}" for n in range(7))
    lines = "".join(f"c{n}.bootstrap.servers = h{n}:1\nc{n}->c{(n + 1) % 7}.enabled = true\n" for n in range(7))
    settings = parse_settings(f"clusters = {names}\n{lines}", "f")
    with pytest.raises(BadInput) as caught:
        settings.flow("c0->c2")
    golden(caught.value)


@pytest.mark.parametrize("more", ["", "west.nonsense = 1\n"])
def test_the_error_of_a_wrong_file_has_the_code_and_facts_of_its_first_problem(more: str) -> None:
    with pytest.raises(BadInput) as caught:
        settings(f"{BASE}west->east.replication.factor = many\n{more}")
    code, facts = data_of(caught.value)
    assert (code, facts["value"]) == ("value.number", "many")
    assert str(caught.value).startswith("mm2.properties:5: ")


def test_an_unknown_flow_or_cluster_names_the_known_ones(golden: Golden) -> None:
    read = settings(BASE)
    with pytest.raises(BadInput) as caught:
        read.flow("east->west")
    golden(caught.value, "flow")
    with pytest.raises(BadInput) as caught:
        read.cluster("north")
    golden(caught.value, "cluster")


def test_a_value_with_a_unit_means_what_the_bare_number_means() -> None:
    bare = "ferry.run.max.bytes = 1073741824\nferry.run.max.seconds = 900\nferry.transaction.timeout.ms = 90000\n"
    units = "ferry.run.max.bytes = 1GiB\nferry.run.max.seconds = 15m\nferry.transaction.timeout.ms = 90s\n"
    first, second = (settings(BASE + lines).flow("west->east") for lines in (bare, units))
    assert first.copy.budget == second.copy.budget == Budget(max_bytes=1 << 30, max_records=None, max_seconds=900)
    assert first.copy.transaction_timeout_ms == second.copy.transaction_timeout_ms == 90_000
    assert first.digest() == second.digest()


def test_the_digest_follows_meaning_not_text_and_holds_no_secret() -> None:
    digest = settings(BASE).flow("west->east").digest()
    assert len(digest) == 64
    assert settings("# other\n" + BASE.replace(" = ", ":") + "topics=.*\n").flow("west->east").digest() == digest
    assert settings(BASE + "topics = a\n").flow("west->east").digest() != digest
    passwords = [settings(BASE + f"west.ssl.key.password = {word}\n").flow("west->east") for word in ("x", "y")]
    assert passwords[0].digest() == passwords[1].digest()
    assert replace(passwords[0], lane="other").digest() != passwords[0].digest()


def test_secrets_do_not_show_and_references_are_looked_up_at_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    (tmp_path / "secrets.properties").write_text("key = from-file\n")
    (tmp_path / "token").write_text("from-dir")
    monkeypatch.delenv("FERRY_TEST_SECRET", raising=False)
    read = settings(
        BASE
        + f"""
west.ssl.key.password = ${{env:FERRY_TEST_SECRET}}
west.ssl.keystore.password = ${{file:{tmp_path}/secrets.properties:key}}
west.ssl.truststore.password = ${{dir:{tmp_path}:token}}
west.sasl.jaas.config = plain-in-file
west.client.x = ${{vault:not/ours}}
west.consumer.y = ${{vault:not/ours}}
"""
    )
    assert "plain-in-file" not in repr(read)
    with pytest.raises(BadInput) as wrong:
        read.cluster("west").client("admin")
    golden(wrong.value, "as the file has it")
    monkeypatch.setenv("FERRY_TEST_SECRET", "from-env")
    client = read.flow("west->east").client("source", "consumer")
    assert client["ssl.key.password"] == "from-env"
    assert client["ssl.keystore.password"] == "from-file"
    assert client["ssl.truststore.password"] == "from-dir"
    assert client["y"] == "${vault:not/ours}"
    assert "from-" not in repr(client)
    assert read.cluster("west").client("producer")["ssl.key.password"] == "from-env"
    (tmp_path / "secrets.properties").write_text("other = 1\n")
    with pytest.raises(BadInput) as caught:
        read.cluster("west").client("admin")
    golden(caught.value, "no entry")
    (tmp_path / "token").unlink()
    (tmp_path / "secrets.properties").write_text("key = 1\n")
    with pytest.raises(BadInput) as caught:
        read.cluster("west").client("admin")
    golden(caught.value, "no file")


@pytest.mark.parametrize(
    "line",
    [
        "west->east.topics = foo.* # only some",
        "east->west.enable = true",
        "topics.blacklist = a",
        "west->east.topics.blacklist = a",
        "north.bootstrap.servers = h:1",
        "east.bootstrap.servers = broker-3:9092",
    ],
)
def test_what_java_accepts_but_nobody_means_is_a_warning(line: str, golden: Golden) -> None:
    found = warnings(BASE + line)
    assert len(found) == 1
    assert found[0].startswith("mm2.properties:5: ")
    golden(found[0])


def test_a_file_without_an_enabled_flow_says_so() -> None:
    assert "add west->east.enabled = true" in warnings(BASE.replace("= true", "= false"))[0]


def test_more_errors_are_counted(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        settings(BASE + "tasks.max = x\nreplication.factor = y\n")
    golden(caught.value)


@pytest.mark.parametrize(("written", "percent"), [("10%", 10), ("10", 10), ("0 %", 0), ("", None)])
def test_the_space_that_must_stay_free_may_be_written_as_percent(written: str, percent: int | None) -> None:
    (flow,) = settings(f"{BASE}ferry.target.free.percent = {written}\n").flows
    assert flow.topics.target_free_percent == percent


@pytest.mark.parametrize("written", ["100%", "%", "10%%", "0.5%"])
def test_a_share_of_free_space_that_is_no_whole_percentage_is_an_error(written: str) -> None:
    with pytest.raises(BadInput, match=r"ferry\.target\.free\.percent"):
        settings(f"{BASE}ferry.target.free.percent = {written}\n")
