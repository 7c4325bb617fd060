"""Every key of the two files: those of Kafka 0.7, of 0.8, and of the Java clients, as the manuals write them."""

import pytest

from ferry.config.text.properties import parse
from ferry.config.text.secrets import HIDDEN
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.keys import CONSUMER_KEYS, PRODUCER_KEYS, KeyRule
from ferry.features.migrate.acts.mm1.outcome import Fate
from tests.golden import Golden, brief
from tests.pure.mm1.setups import SOURCE, TARGET, converted, outcome, settings

KEPT_BY_CONSUMERS = [
    ("client.id=mirror_maker_consumer", "consumer.client.id = mirror_maker_consumer"),
    ("client.rack=r1", "consumer.client.rack = r1"),
    ("client.dns.lookup=use_all_dns_ips", "consumer.client.dns.lookup = use_all_dns_ips"),
    ("fetch.size=1048576", "consumer.max.partition.fetch.bytes = 1048576"),
    ("fetch.message.max.bytes=1048576", "consumer.max.partition.fetch.bytes = 1048576"),
    ("max.partition.fetch.bytes=1048576", "consumer.max.partition.fetch.bytes = 1048576"),
    ("fetch.max.bytes=Int.MaxValue", "consumer.fetch.max.bytes = 2147483647"),
    ("fetch.min.bytes=1", "consumer.fetch.min.bytes = 1"),
    ("fetch.wait.max.ms=100", "consumer.fetch.max.wait.ms = 100"),
    ("fetch.max.wait.ms=100", "consumer.fetch.max.wait.ms = 100"),
    ("socket.buffersize=2097152", "consumer.receive.buffer.bytes = 2097152"),
    ("socket.receive.buffer.bytes=2097152", "consumer.receive.buffer.bytes = 2097152"),
    ("receive.buffer.bytes=-1", "consumer.receive.buffer.bytes = -1"),
    ("socket.timeout.ms=30000", "consumer.request.timeout.ms = 30000"),
    ("request.timeout.ms=Integer.MAX_VALUE", "consumer.request.timeout.ms = 2147483647"),
    ("reconnect.backoff.ms=50", "consumer.reconnect.backoff.ms = 50"),
    ("connections.max.idle.ms=540000", "consumer.connections.max.idle.ms = 540000"),
    ("metadata.max.age.ms=300000", "consumer.metadata.max.age.ms = 300000"),
    ("auto.offset.reset=smallest", "consumer.auto.offset.reset = earliest"),
    ("auto.offset.reset=largest", "consumer.auto.offset.reset = latest"),
    ("auto.offset.reset=Earliest", "consumer.auto.offset.reset = earliest"),
    ("autooffset.reset=smallest", "consumer.auto.offset.reset = earliest"),
    ("isolation.level=read_uncommitted", "consumer.isolation.level = read_uncommitted"),
    ("isolation.level=read_committed", "consumer.isolation.level = read_committed"),
    ("security.protocol=PLAINTEXT", "security.protocol = PLAINTEXT"),
    ("security.protocol=ssl", "security.protocol = SSL"),
    ("ssl.truststore.location=/etc/ts.jks", "ssl.truststore.location = /etc/ts.jks"),
    ("ssl.truststore.password=geheim", "ssl.truststore.password = ${file:/etc/mm/c1:ssl.truststore.password}"),
    ("ssl.key.password=${env:KEY}", "ssl.key.password = ${env:KEY}"),
    ("sasl.mechanism=GSSAPI", "sasl.mechanism = GSSAPI"),
    ("sasl.kerberos.service.name=kafka", "sasl.kerberos.service.name = kafka"),
    ("sasl.jaas.config=a.B required;", "sasl.jaas.config = ${file:/etc/mm/c1:sasl.jaas.config}"),
]
KEPT_BY_PRODUCERS = [
    ("client.id=mirror_maker_producer", "producer.client.id = mirror_maker_producer"),
    ("max.message.size=10000000", "producer.max.request.size = 10000000"),
    ("max.request.size=10000000", "producer.max.request.size = 10000000"),
    ("buffer.size=102400", "producer.send.buffer.bytes = 102400"),
    ("send.buffer.bytes=131072", "producer.send.buffer.bytes = 131072"),
    ("connect.timeout.ms=5000", "producer.socket.connection.setup.timeout.ms = 5000"),
    ("request.timeout.ms=10000", "producer.request.timeout.ms = 10000"),
    ("security.protocol=SASL_SSL\nsasl.jaas.config=a.B required;", "security.protocol = SASL_SSL"),
]
NOT_KEPT_BY_CONSUMERS = [
    ("zk.connect=hdp1:2181/kafka", Fate.GONE, "bootstrap servers"),
    ("zookeeper.connect=hdp1:2181/kafka", Fate.GONE, "bootstrap servers"),
    ("zk.connectiontimeout.ms=1000000", Fate.GONE, "ZooKeeper"),
    ("zookeeper.session.timeout.ms=6000", Fate.GONE, "ZooKeeper"),
    ("zk.synctime.ms=2000", Fate.GONE, "ZooKeeper"),
    ("groupid=dp-MirrorMaker-group", Fate.LOOK, "--offsets"),
    ("group.id=mirror", Fate.LOOK, "--offsets"),
    ("consumerid=x", Fate.GONE, "no consumer group"),
    ("consumer.timeout.ms=-1", Fate.GONE, "ends by itself"),
    ("shallow.iterator.enable=true", Fate.ALWAYS, "unpacked"),
    ("shallowiterator.enable=true", Fate.ALWAYS, "unpacked"),
    ("exclude.internal.topics=true", Fate.ALWAYS, "never copied"),
    ("auto.commit.enable=false", Fate.ALWAYS, "one transaction"),
    ("auto.commit.enabled=false", Fate.ALWAYS, "one transaction"),
    ("autocommit.enable=false", Fate.ALWAYS, "one transaction"),
    ("enable.auto.commit=false", Fate.ALWAYS, "one transaction"),
    ("queuedchunks.max=100", Fate.GONE, "no queue"),
    ("queued.max.message.chunks=10", Fate.GONE, "no queue"),
    ("rebalance.retries.max=4", Fate.GONE, "no rebalance"),
    ("rebalance.backoff.ms=2000", Fate.GONE, "no rebalance"),
    ("partition.assignment.strategy=roundrobin", Fate.GONE, "no rebalance"),
    ("session.timeout.ms=10000", Fate.GONE, "no rebalance"),
    ("offsets.storage=kafka", Fate.GONE, "ledger"),
    ("dual.commit.enabled=false", Fate.GONE, "ledger"),
    ("num.consumer.fetchers=4", Fate.GONE, "`tasks.max`"),
    ("backoff.increment.ms=1000", Fate.GONE, "own rules"),
    ("socket.send.buffer=1048576", Fate.GONE, "brokers"),
    ("max.poll.records=500", Fate.GONE, "no queue"),
    ("key.deserializer=x.Y", Fate.GONE, "bytes"),
    ("check.crcs=true", Fate.ALWAYS, "checksum"),
    ("retry.backoff.ms=100", Fate.GONE, "ferry.retries"),
    ("metric.reporters=x.Y", Fate.GONE, "own figures"),
    ("interceptor.classes=x.Y", Fate.LOOK, "no interceptor"),
    ("interceptor.classes=", Fate.GONE, "is empty"),
    ("fetch.sise=1", Fate.UNKNOWN, "did you mean fetch.size?"),
    ("whatever=1", Fate.UNKNOWN, "it did nothing"),
]
NOT_KEPT_BY_PRODUCERS = [
    ("zk.connect=hdp1:2181/kafka-test", Fate.GONE, "bootstrap servers"),
    ("producer.type=async", Fate.GONE, "nothing is queued"),
    ("queue.time=1000", Fate.GONE, "nothing is queued"),
    ("queue.buffering.max.ms=1000", Fate.GONE, "nothing is queued"),
    ("queue.buffering.max.messages=10000", Fate.GONE, "nothing is queued"),
    ("queue.enqueueTimeout.ms=-1", Fate.ALWAYS, "waits for writing"),
    ("queue.enqueue.timeout.ms=-1", Fate.ALWAYS, "waits for writing"),
    ("batch.size=100", Fate.GONE, "nothing is queued"),
    ("batch.num.messages=200", Fate.GONE, "nothing is queued"),
    ("linger.ms=5", Fate.GONE, "nothing is queued"),
    ("buffer.memory=33554432", Fate.GONE, "nothing is queued"),
    ("compression.codec=0", Fate.GONE, "the compression they have"),
    ("compression.type=gzip", Fate.GONE, "the compression they have"),
    ("compressed.topics=a,b", Fate.GONE, "the compression they have"),
    ("serializer.class=kafka.serializer.DefaultEncoder", Fate.GONE, "bytes"),
    ("acks=-1", Fate.ALWAYS, "acks=all"),
    ("acks=1", Fate.ALWAYS, "acks=all"),
    ("request.required.acks=-1", Fate.ALWAYS, "acks=all"),
    ("retries=Int.MaxValue", Fate.ALWAYS, "without loss"),
    ("retries=2147483647", Fate.ALWAYS, "without loss"),
    ("message.send.max.retries=3", Fate.ALWAYS, "without loss"),
    ("max.in.flight.requests.per.connection=1", Fate.ALWAYS, "order"),
    ("block.on.buffer.full=true", Fate.ALWAYS, "nothing is thrown away"),
    ("max.block.ms=9223372036854775807", Fate.ALWAYS, "nothing is thrown away"),
    ("enable.idempotence=true", Fate.ALWAYS, "idempotent"),
    ("delivery.timeout.ms=2147483647", Fate.GONE, "loses nothing"),
    ("transactional.id=x", Fate.GONE, "its own transactions"),
    ("partitioner.class=x.Y", Fate.LOOK, "partition number"),
    ("interceptor.classes=x.Y", Fate.LOOK, "no interceptor"),
    ("reconnect.interval=30000", Fate.GONE, "own rules"),
    ("topic.metadata.refresh.interval.ms=600000", Fate.GONE, "own rules"),
    ("callback.handler=x.Y", Fate.LOOK, "no handler"),
    ("callback.handler.props=x", Fate.GONE, "belongs to the handler"),
    ("security.providers=x.Y", Fate.GONE, "not Java"),
]


@pytest.mark.parametrize(("line", "became"), KEPT_BY_CONSUMERS)
def test_what_a_consumer_file_keeps(line: str, became: str) -> None:
    conversion = converted("--whitelist", "x", consumers=(f"{SOURCE}{line}\n",))
    settings(conversion)
    row = outcome(conversion, line.partition("=")[0])
    assert (row.fate, row.became, row.place.line) == (Fate.KEPT, f"west.{became}", 2)
    assert f"\n{row.became}\n" in conversion.text


@pytest.mark.parametrize(("line", "became"), KEPT_BY_PRODUCERS)
def test_what_a_producer_file_keeps(line: str, became: str) -> None:
    conversion = converted("--whitelist", "x", producer=f"{TARGET}{line}\n")
    settings(conversion)
    row = outcome(conversion, line.partition("=")[0], "p")
    assert (row.fate, row.became, row.place.line) == (Fate.KEPT, f"east.{became}", 2)
    assert f"\n{row.became}\n" in conversion.text


@pytest.mark.parametrize(("line", "fate", "words"), NOT_KEPT_BY_CONSUMERS)
def test_what_a_consumer_file_says_without_effect(line: str, fate: Fate, words: str) -> None:
    conversion = converted("--whitelist", "x", consumers=(f"{SOURCE}{line}\n",))
    settings(conversion)
    row = outcome(conversion, line.partition("=")[0])
    shown = HIDDEN if fate is Fate.UNKNOWN else line.partition("=")[2]
    assert (row.fate, row.became, row.value) == (fate, "", shown)
    assert words in row.why


@pytest.mark.parametrize(("line", "fate", "words"), NOT_KEPT_BY_PRODUCERS)
def test_what_a_producer_file_says_without_effect(line: str, fate: Fate, words: str) -> None:
    conversion = converted("--whitelist", "x", producer=f"{TARGET}{line}\n")
    settings(conversion)
    row = outcome(conversion, line.partition("=")[0], "p")
    assert (row.fate, row.became) == (fate, "")
    assert words in row.why


@pytest.mark.parametrize(
    ("line", "fate"),
    [
        ("x.key=5", Fate.GONE),
        ("fetch.sizes=1", Fate.UNKNOWN),
    ],
    ids=brief,
)
def test_keys_of_an_own_class_go_with_it(line: str, fate: Fate, golden: Golden) -> None:
    conversion = converted("--whitelist", "x", consumers=(f"{SOURCE}interceptor.classes=x.Y\n{line}\n",))
    row = outcome(conversion, line.partition("=")[0])
    assert (row.fate, row.became) == (fate, "")
    golden(row.why)


@pytest.mark.parametrize("rules", [CONSUMER_KEYS, PRODUCER_KEYS], ids=["consumer", "producer"])
def test_every_key_has_one_rule_and_is_spelled_as_java_reads_it(rules: tuple[KeyRule, ...]) -> None:
    names = [name for rule in rules for name in rule.names]
    assert len(names) == len(set(names))
    assert [entry.key for entry in parse("\n".join(f"{name}=x" for name in names), "f")] == names


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("bootstrap.servers=a:1, b:2", "a:1,b:2"),
        ("metadata.broker.list=a:1", "a:1"),
        ("broker.list=0:a:1,1:b:2", "a:1,b:2"),
        ("bootstrap.servers=SASL://a:1", "SASL://a:1"),
        ("bootstrap.servers=[::1]:9092", "[::1]:9092"),
    ],
)
def test_servers_in_every_spelling(written: str, read: str) -> None:
    conversion = converted("--whitelist", "x", producer=written)
    settings(conversion)
    assert f"\neast.bootstrap.servers = {read}\n" in conversion.text


def test_of_two_spellings_the_newer_client_s_counts(golden: Golden) -> None:
    text = f"{SOURCE}fetch.size=1\nmax.partition.fetch.bytes=2\n"
    conversion = converted("--whitelist", "x", consumers=(text,))
    settings(conversion)
    assert "west.consumer.max.partition.fetch.bytes = 2\n" in conversion.text
    golden(outcome(conversion, "fetch.size").why)


def test_of_two_lines_java_takes_the_last() -> None:
    conversion = converted("--whitelist", "x", consumers=(f"{SOURCE}fetch.size=1\nfetch.size=2\n",))
    assert "west.consumer.max.partition.fetch.bytes = 2\n" in conversion.text
    rows = [row for row in conversion.outcomes if row.option == "fetch.size"]
    assert [(row.place.line, row.fate) for row in rows] == [(2, Fate.GONE), (3, Fate.KEPT)]


@pytest.mark.parametrize(
    ("consumer", "producer"),
    [
        ("fetch.size=1 MB", ""),
        ("fetch.size=-1", ""),
        ("auto.offset.reset=none", ""),
        ("isolation.level=committed", ""),
        ("security.protocol=TLS", ""),
        ("client.id=a # b", ""),
        ("client.id=", ""),
        ("bootstrap.servers=a:1,b-6667", ""),
        ("bootstrap.servers=a", ""),
        ("bootstrap.servers=a:99999", ""),
        ("bootstrap.servers=", ""),
        ("mirror.consumer.numthreads=x", ""),
        ("", "max.message.size=big"),
        ("", "bootstrap.servers=0:a"),
    ],
)  # fmt: skip
def test_a_bad_value_is_one_sentence_with_file_line_and_remedy(consumer: str, producer: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        converted("--whitelist", "x", consumers=(SOURCE + consumer,), producer=TARGET + producer)
    golden(caught.value)
