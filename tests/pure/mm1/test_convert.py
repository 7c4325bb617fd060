"""Whole set-ups of MirrorMaker 1: the new file says the same, and every option is accounted for."""

from pathlib import Path

import pytest

from ferry.config.flow.start import StartEarliest, StartLatest, StartOffsets
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.config.login.jaas import parse_jaas
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.convert import MERGE_KEY
from ferry.features.migrate.acts.mm1.keys import CONSUMER_KEYS, PRODUCER_KEYS
from ferry.features.migrate.acts.mm1.login import read_login
from ferry.features.migrate.acts.mm1.outcome import Fate
from tests.golden import Golden, brief
from tests.pure.mm1.setups import SOURCE, TARGET, converted, outcome, settings

JAAS = 'KafkaClient { a.Krb5LoginModule required keyTab="/k" principal="m@R" serviceName="kafka"; };'

OLDEST = (
    "zk.connect=zoo:2181/kafka\nzk.connectiontimeout.ms=1000000\nconsumer.timeout.ms=-1\ngroupid=mirror\n"
    "shallow.iterator.enable=true\nmirror.topics.whitelist=app_log\n"
)


def test_the_oldest_set_up_with_nothing_but_zookeeper() -> None:
    conversion = converted(
        consumers=(OLDEST,),
        producer="zk.connect=zoo2:2181\nproducer.type=async\n",
        source_servers="west-1:9092",
        target_servers="east-1:9092",
    )
    read = settings(conversion)
    flow = read.flow("west->east")
    assert flow.topics.filter.include.items == ("app_log",)
    assert flow.topics.policy_name == "IdentityReplicationPolicy"
    assert flow.copy.start == StartEarliest()
    assert flow.client("source", "consumer")["bootstrap.servers"] == "west-1:9092"
    assert [row.option for row in conversion.to_decide()] == ["groupid"], "it would be copied from its beginning again"


def test_the_usual_set_up() -> None:
    conversion = converted(
        "--whitelist", "topic1, topic2", "--num.streams", "4", "--abort.on.send.fail", "--new.consumer",
        consumers=("bootstrap.servers=west-1:9092\ngroup.id=mirror\nenable.auto.commit=false\n",),
        producer="bootstrap.servers=east-1:9092\nacks=-1\nretries=2147483647\nblock.on.buffer.full=true\n",
    )  # fmt: skip
    flow = settings(conversion).flow("west->east")
    assert flow.topics.filter.include.items == ("topic1", "topic2")
    assert (flow.copy.tasks_max, flow.copy.isolation_level, flow.copy.start) == (4, "read_committed", StartLatest())
    assert (flow.topics.replication_factor, flow.topics.sync_topic_configs, flow.topics.selection.heartbeats) == (
        -1,
        False,
        False,
    )
    assert flow.topics.policy.format_remote_topic("west", "topic1") == "topic1"
    assert flow.topics.selection.takes("topic1")
    assert not flow.topics.selection.takes("topic3")


def test_topics_that_mirrormaker_2_would_leave_out_are_still_copied() -> None:
    flow = settings(converted("--whitelist", "*")).flow("west->east")
    assert flow.topics.selection.takes("orders.replica")
    assert not flow.topics.selection.takes("__consumer_offsets")


def test_a_blacklist_alone_takes_all_the_rest() -> None:
    flow = settings(converted("--blacklist=__consumer-offsets,audit.*")).flow("west->east")
    assert flow.topics.selection.takes("orders")
    assert not flow.topics.selection.takes("audit.log")
    assert not flow.topics.selection.takes("__consumer_offsets")


def test_the_command_line_s_list_wins_over_the_file_s(golden: Golden) -> None:
    conversion = converted("--whitelist", "a", consumers=(f"{SOURCE}mirror.topics.whitelist=b\n",))
    assert settings(conversion).flow("west->east").topics.filter.include.items == ("a",)
    golden(outcome(conversion, "mirror.topics.whitelist").why)


def test_the_old_mirror_s_own_threads() -> None:
    file = f"{SOURCE}mirror.topics.whitelist=b\nmirror.topics.blacklist=bb\nmirror.consumer.numthreads=3\n"
    flow = settings(converted(consumers=(file,))).flow("west->east")
    assert (flow.copy.tasks_max, flow.topics.filter.exclude.items) == (3, ("bb",))
    overruled = converted("--num.streams=2", consumers=(file,))
    assert settings(overruled).flow("west->east").copy.tasks_max == 2
    assert outcome(overruled, "mirror.consumer.numthreads").fate is Fate.GONE


def test_several_sources_become_several_flows() -> None:
    west, south = SOURCE, "bootstrap.servers=south-1:9092\nauto.offset.reset=smallest\n"
    conversion = converted("--whitelist", "a.*", consumers=(west, south))
    read = settings(conversion)
    assert [str(flow.flow) for flow in read.flows] == ["west1->east", "west2->east"]
    assert [flow.copy.start for flow in read.flows] == [StartLatest(), StartEarliest()]
    merges = MERGE_KEY in FERRY_KEYS_BY_NAME
    assert bool(conversion.to_decide()) is not merges
    assert (f"west1->east.{MERGE_KEY} = " in conversion.text) is merges


def test_positions_of_the_group_are_where_the_first_run_begins() -> None:
    conversion = converted("--whitelist", "a", consumers=(f"{SOURCE}group.id=g\n",), offsets="a:0:5, a:1:6")
    assert isinstance(settings(conversion).flow("west->east").copy.start, StartOffsets)
    assert outcome(conversion, "group.id").fate is Fate.KEPT


@pytest.mark.parametrize(
    ("lists", "fate"),
    [
        (["--whitelist", "a"], Fate.KEPT),
        (["--whitelist", "a.*"], Fate.KEPT),
        (["--whitelist", "a, not-there"], Fate.KEPT),
        (["--blacklist", "x"], Fate.KEPT),
        (["--whitelist", "b"], Fate.LOOK),
        (["--blacklist", "a, x"], Fate.LOOK),
    ],
    ids=brief,
)
def test_positions_of_another_group_are_left_to_decide(lists: list[str], fate: Fate, golden: Golden) -> None:
    conversion = converted(*lists, consumers=(f"{SOURCE}group.id=g\n",), offsets="a:0:5, x:1:6")
    row = outcome(conversion, "group.id")
    assert row.fate is fate
    golden(row.why)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "auto.offset.reset=largest\n",
        "autooffset.reset=latest\n",
        "auto.offset.reset=smallest\n",
    ],
)
def test_a_group_whose_positions_are_not_given(line: str, golden: Golden) -> None:
    conversion = converted("--whitelist", "a", consumers=(f"{SOURCE}group.id=g\n{line}",))
    row = outcome(conversion, "group.id")
    assert (row.fate, row.became) == (Fate.LOOK, "")
    golden(row.why)
    assert conversion.to_decide() == (row,)


@pytest.mark.parametrize(
    ("option", "key", "included", "excluded"),
    [
        ("--blacklist=__consumer-offsets", "mirror.topics.whitelist", (".*",), ("__consumer-offsets",)),
        ("--exclude=b", "mirror.topics.whitelist", (".*",), ("b",)),
        ("--whitelist=.*", "mirror.topics.blacklist", (".*",), ("__.*",)),
    ], ids=brief,
)  # fmt: skip
def test_a_list_of_the_file_does_not_narrow_the_command_line_s(
    option: str, key: str, included: tuple[str, ...], excluded: tuple[str, ...], golden: Golden
) -> None:
    conversion = converted(option, consumers=(f"{SOURCE}{key}=app_log\n",))
    topics = settings(conversion).flow("west->east").topics.filter
    assert (topics.include.items, topics.exclude.items) == (included, excluded)
    row = outcome(conversion, key)
    assert (row.fate, row.became) == (Fate.LOOK, "")
    golden(row.why)


@pytest.mark.parametrize(
    ("second", "shared"),
    [("west-1:9092", "west-1:9092"), ("WEST-1:9092", "WEST-1:9092"), ("west-2:9092, west-1:9092", "west-1:9092")],
)
def test_one_source_given_twice_is_refused(second: str, shared: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        converted("--whitelist", "a", consumers=(SOURCE, f"\nbootstrap.servers={second}\n"))
    assert shared in str(caught.value)
    golden(caught.value)


def test_each_side_has_its_own_security() -> None:
    conversion = converted(
        "--whitelist", "a",
        consumers=(f"{SOURCE}security.protocol=SSL\nssl.keystore.password=geheim1\n",),
        producer=f"{TARGET}security.protocol=SSL\nssl.keystore.password=geheim2\n",
    )  # fmt: skip
    read = settings(conversion)
    told = repr(read) + conversion.text + repr(conversion)
    assert "geheim" not in told
    assert "west.ssl.keystore.password = ${file:/etc/mm/c1:ssl.keystore.password}\n" in conversion.text
    assert "east.ssl.keystore.password = ${file:/etc/mm/p:ssl.keystore.password}\n" in conversion.text


def test_a_misspelt_password_is_hidden_as_well() -> None:
    lines = "ssl.keystore.pasword=geheim\nsasl.pasword=geheim\nkeystore.pasword=geheim\n"
    conversion = converted("--whitelist", "x", consumers=(f"{SOURCE}{lines}",))
    assert "geheim" not in conversion.text + "".join(map(repr, conversion.outcomes))
    assert outcome(conversion, "ssl.keystore.pasword").became.endswith(":ssl.keystore.pasword}")


def test_secrets_are_copied_when_asked_for_and_never_shown() -> None:
    file = f"{SOURCE}security.protocol=SSL\nssl.keystore.password=ge\\\\heim \n"
    conversion = converted("--whitelist", "a", consumers=(file,), copy_secrets=True)
    flow = settings(conversion).flow("west->east")
    assert flow.clients.properties["source", "consumer"]["ssl.keystore.password"] == "ge\\heim "
    assert flow.client("source", "consumer")["ssl.keystore.password"] == "ge\\heim", "Kafka trims it"
    row = outcome(conversion, "ssl.keystore.password")
    assert "heim" not in repr(conversion.outcomes)
    assert row.became == "west.ssl.keystore.password = [hidden]"


def test_kerberos_by_the_jaas_file_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "jaas.conf").write_text(JAAS)
    file = f"{SOURCE}security.protocol=PLAINTEXTSASL\n"
    login = read_login(JAAS, "jaas.conf", tmp_path / "jaas.conf")
    conversion = converted("--whitelist", "a", consumers=(file,), login=login)
    client = settings(conversion).flow("west->east").client("source", "consumer")
    assert client["security.protocol"] == "SASL_PLAINTEXT"
    # The file is read where the client logs in, by the reader that every sasl.jaas.config goes through.
    assert parse_jaas(client["sasl.jaas.config"]).options["principal"] == "m@R"
    row = outcome(conversion, "KafkaClient")
    assert (row.fate, row.became) == (Fate.KEPT, f"west.sasl.jaas.config = ${{dir:{tmp_path}:jaas.conf}}")


def test_options_of_the_java_process_are_told_as_well(golden: Golden) -> None:
    words = ("-Djava.security.krb5.conf=/etc/krb5.conf", "-Xmx1G", "-Dx.password=geheim")
    conversion = converted("--whitelist", "a", *words, "-Djava.security.auth.login.config=/etc/jaas.conf")
    assert outcome(conversion, "-Djava.security.krb5.conf").fate is Fate.LOOK
    assert outcome(conversion, "-Xmx1G").fate is Fate.GONE
    assert outcome(conversion, "-Dx.password").value == "[hidden]"
    golden(outcome(conversion, "-Djava.security.auth.login.config").why)


def test_a_login_that_is_nowhere_is_left_to_decide() -> None:
    conversion = converted("--whitelist", "a", consumers=(f"{SOURCE}security.protocol=SASL_SSL\n",))
    (row,) = conversion.to_decide()
    assert "java.security.auth.login.config" in row.why


@pytest.mark.parametrize("option", ["--num.producers=2", "--queue.size=2000", "--offset.commit.interval.ms=1"])
def test_options_without_meaning_are_told(option: str) -> None:
    conversion = converted("--whitelist", "a", option)
    row = outcome(conversion, option.partition("=")[0])
    assert (row.fate, row.became) == (Fate.GONE, "")


def test_a_message_handler_is_left_to_decide() -> None:
    conversion = converted("--whitelist", "a", "--message.handler=x.Y", "--message.handler.args=z")
    assert [row.option for row in conversion.to_decide()] == ["--message.handler"]


def test_every_option_is_accounted_for() -> None:
    """All keys at once: none may be missing from the account."""
    values = {
        "bootstrap.servers": "a:1", "metadata.broker.list": "a:1", "broker.list": "0:a:1",
        "auto.offset.reset": "latest", "autooffset.reset": "latest", "isolation.level": "read_committed",
        "security.protocol": "SSL", "client.dns.lookup": "use_all_dns_ips",
    }  # fmt: skip
    names = [[name for rule in rules for name in rule.names] for rules in (CONSUMER_KEYS, PRODUCER_KEYS)]
    texts = ["".join(f"{name}={values.get(name, '1')}\n" for name in side) for side in names]
    texts[1] = texts[1].replace("a:1", "b:1")
    conversion = converted("--whitelist", "a", "--num.streams", "2", consumers=(texts[0],), producer=texts[1])
    settings(conversion)
    for file, side in zip(("c1", "p"), names, strict=True):
        assert sorted(row.option for row in conversion.outcomes if row.place.file == file and row.place.line) == sorted(
            side
        )
    order = [(row.place.file, row.place.line or 10_000) for row in conversion.outcomes if row.place.file]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("words", "consumer", "producer"),
    [
        ([], SOURCE, TARGET),
        (["--whitelist", "(a"], SOURCE, TARGET),
        (["--blacklist", "["], SOURCE, TARGET),
        ([], f"{SOURCE}mirror.topics.whitelist=*a\n", TARGET),
        (["--whitelist", "a"], "zk.connect=z:2181/k\n", TARGET),
        (["--whitelist", "a"], SOURCE, "\nzookeeper.connect=z:2181\n"),
        (["--whitelist", "a"], "", TARGET),
    ], ids=brief,
)  # fmt: skip
def test_what_is_missing_or_wrong_is_one_sentence(
    words: list[str], consumer: str, producer: str, golden: Golden
) -> None:
    with pytest.raises(BadInput) as caught:
        converted(*words, consumers=(consumer,), producer=producer)
    golden(caught.value)


def test_a_password_in_a_jaas_file_is_not_copied_unasked(tmp_path: Path) -> None:
    text = 'KafkaClient { a.PlainLoginModule required username="u" password="ge\\"heim"; };'
    (tmp_path / "jaas.conf").write_text(text)
    login = read_login(text, "jaas.conf", tmp_path / "jaas.conf")
    file = f"{SOURCE}security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
    assert "heim" not in converted("--whitelist", "a", consumers=(file,), login=login).text
    asked = converted("--whitelist", "a", consumers=(file,), login=login, copy_secrets=True)
    assert "heim" not in repr(asked)
    client = settings(asked).flow("west->east").client("source", "consumer")
    assert parse_jaas(client["sasl.jaas.config"]).options["password"] == 'ge"heim'
