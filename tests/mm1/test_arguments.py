"""MirrorMaker 1's command line: every spelling, and what it refuses."""

import pytest

from ferry.errors import BadInput
from ferry.mm1.arguments import OPTIONS, Takes, read_arguments
from ferry.mm1.outcome import Fate

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
    ("words", "sentence"),
    [
        (["--producer.config", "p"], "--consumer.config is missing: add --consumer.config FILE"),
        (["--consumer.config", "c"], "--producer.config is missing: add --producer.config FILE"),
        ([*FILES, "--producer.config", "q"], "--producer.config is given twice"),
        ([*FILES, "--whitelist", "a", "--white-list", "b"], "--white-list is given twice"),
        ([*FILES, "--whitelist"], "--whitelist has no value: write --whitelist and its value behind it"),
        ([*FILES, "--whitelist", "--num.streams", "2"], "--whitelist has no value"),
        ([*FILES, "--whitelist="], "--whitelist has no value"),
        (
            [*FILES, "\u2013whitelist", "a"],
            "argument '\u2013whitelist' does not begin with two hyphens; write --whitelist",
        ),
        ([*FILES, "-num.streams=4"], "argument '-num.streams=4' does not begin with two hyphens; write --num"),
        (["KAFKA_OPTS=-Dx=y", *FILES], "argument 'KAFKA_OPTS=-Dx=y' sets a variable: put it before ferry, or"),
        ([*FILES, "--whitelist", "a.log", "b.log"], "argument 'b.log' belongs to no option of MirrorMaker 1: put a"),
        ([*FILES, "--num.streams", "four"], "--num.streams: 'four' is not a whole number; write one of at least 1"),
        ([*FILES, "--num.streams", "0"], "--num.streams: 0 is out of range"),
        ([*FILES, "--abort.on.send.failure=perhaps"], "--abort.on.send.failure: 'perhaps' is neither true nor false"),
        ([*FILES, "--new.consumer=true"], "--new.consumer takes no value, but 'true' was given: remove it"),
        ([*FILES, "--num", "2"], "--num fits several options: write one of --num.producers, --num.streams"),
        ([*FILES, "--bogus", "2"], "--bogus is no option of MirrorMaker 1 or of this command: write one of --abort"),
        ([*FILES, "--"], "-- is no option of MirrorMaker 1"),
    ],
)
def test_what_mirrormaker_1_would_not_start_with_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_arguments(words)
    assert str(caught.value).startswith(sentence)
