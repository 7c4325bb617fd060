"""MirrorMaker 1's command line: every spelling, and what it refuses."""

import pytest

from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.arguments import OPTIONS, Takes, read_arguments
from ferry.features.migrate.acts.mm1.outcome import Fate
from tests.golden import Golden, brief

FILES = ["--consumer.config", "c", "--producer.config", "p"]


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (["--whitelist", "my-topic"], "whitelist", "my-topic"),
        (["--whitelist=topic1, topic2"], "whitelist", "topic1, topic2"),
        (['--whitelist=".*"'], "whitelist", '".*"'),
        (["--white-list=.*"], "whitelist", ".*"),
        (["--include", "a|b"], "whitelist", "a|b"),
        (["--blacklist=__consumer-offsets"], "blacklist", "__consumer-offsets"),
        (["--black-list", "x"], "blacklist", "x"),
        (["--exclude", "x"], "blacklist", "x"),
        (["--num.streams", "4"], "num.streams", "4"),
        (["--num.s=4"], "num.streams", "4"),
        (["--num.producers", "2"], "num.producers", "2"),
        (["--queue.size", "2000"], "queue.size", "2000"),
        (["--queue.byte.size", "2000"], "queue.byte.size", "2000"),
        (["--abort.on.send.fail"], "abort.on.send.failure", ""),
        (["--abort.on.send.failure", "true"], "abort.on.send.failure", "true"),
        (["--abort.on.send.failure=False"], "abort.on.send.failure", "False"),
        (["--abortOnSendFail"], "abort.on.send.failure", ""),
        (["--abort.on.send.fail", "--new.consumer"], "abort.on.send.failure", ""),
        (["--new.consumer"], "new.consumer", ""),
        (["--new.producer"], "new.producer", ""),
        (["--offset.commit.interval.ms", "60000"], "offset.commit.interval.ms", "60000"),
        (["--consumer.rebalance.listener", "a.B"], "consumer.rebalance.listener", "a.B"),
        (["--rebalance.listener.args", "x"], "rebalance.listener.args", "x"),
        (["--message.handler", "a.B"], "message.handler", "a.B"),
        (["--message.handler.args", "x"], "message.handler.args", "x"),
    ],
)
def test_every_spelling_is_read(words: list[str], option: str, value: str) -> None:
    for line in ([*FILES, *words], [*words, *FILES]):
        given = read_arguments(line).one(option)
        assert given is not None
        assert (given.value, given.written) == (value, words[0].partition("=")[0])


@pytest.mark.parametrize(
    "front",
    [
        ["bin/kafka-mirror-maker.sh"],
        ["kafka-mirror-maker"],
        ["/usr/hdp/current/kafka-broker/bin/kafka-run-class.sh", "kafka.tools.MirrorMaker"],
        ["bin/kafka-run-class.sh", "-Djava.security.auth.login.config=/etc/jaas.conf", "kafka.tools.MirrorMaker"],
    ],
)
def test_the_whole_command_line_may_be_pasted(front: list[str]) -> None:
    read = read_arguments([*front, *FILES, "--whitelist", "x"])
    assert [given.option.name for given in read.given] == ["consumer.config", "producer.config", "whitelist"]
    assert read.jaas_file == ("/etc/jaas.conf" if len(front) == 3 else None)


def test_several_sources() -> None:
    read = read_arguments(["--consumer.config", "a", "--consumer.config", "b", "--producer.config", "p"])
    assert [given.value for given in read.all("consumer.config")] == ["a", "b"]


def test_options_that_are_not_kept_say_why() -> None:
    assert [option.name for option in OPTIONS if option.fate is not Fate.KEPT and not option.why] == []
    assert {option.name for option in OPTIONS if option.takes is not Takes.VALUE} == {
        "abort.on.send.failure",
        "new.consumer",
        "new.producer",
    }


@pytest.mark.parametrize(
    "words",
    [
        ["--producer.config", "p"],
        ["--consumer.config", "c"],
        [*FILES, "--producer.config", "q"],
        [*FILES, "--whitelist", "a", "--white-list", "b"],
        [*FILES, "--whitelist"],
        [*FILES, "--whitelist", "--num.streams", "2"],
        [*FILES, "--whitelist="],
        [*FILES, "\u2013whitelist", "a"],
        [*FILES, "-num.streams=4"],
        ["KAFKA_OPTS=-Dx=y", *FILES],
        [*FILES, "--whitelist", "a.log", "b.log"],
        [*FILES, "--num.streams", "four"],
        [*FILES, "--num.streams", "0"],
        [*FILES, "--abort.on.send.failure=perhaps"],
        [*FILES, "--new.consumer=true"],
        [*FILES, "--num", "2"],
        [*FILES, "--bogus", "2"],
        [*FILES, "--"],
        [*FILES, "-h"],
    ],
    ids=brief,
)
def test_what_mirrormaker_1_would_not_start_with_is_refused(words: list[str], golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        read_arguments(words)
    golden(caught.value)
