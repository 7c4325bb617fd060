"""MirrorMaker 1's command line, in all spellings of its versions and their manuals.

Source: `kafka.tools.MirrorMaker` of Kafka 0.7 to 3.9. Until 1.0 its parser accepted every unique prefix of an option,
so `--abort.on.send.fail` is `--abort.on.send.failure`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ferry.config.keys import values
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.outcome import Fate
from ferry.model import located

JAAS_PROPERTY = "-Djava.security.auth.login.config"
KERBEROS_PROPERTY = "-Djava.security.krb5.conf"


class Takes(Enum):
    """Whether an option is followed by a value."""

    VALUE = "value"
    PERHAPS = "perhaps"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. `why` says what happens to it, if that does not depend on its value."""

    name: str
    spellings: tuple[str, ...] = ()
    takes: Takes = Takes.VALUE
    repeatable: bool = False
    fate: Fate = Fate.KEPT
    why: str = ""


_POSITIONS = "positions are in the ledger and are committed with the records"
_BUFFER = "Ferry holds no queue between reading and writing; `ferry.task.memory.bytes` bounds what a task holds"

OPTIONS = (
    Option(name="consumer.config", repeatable=True),
    Option(name="producer.config"),
    Option(name="whitelist", spellings=("white-list", "include")),
    Option(name="blacklist", spellings=("black-list", "exclude")),
    Option(name="num.streams"),
    Option(name="num.producers", fate=Fate.GONE, why="each Spark task has one; `tasks.max` is their number"),
    Option(name="queue.size", fate=Fate.GONE, why=_BUFFER),
    Option(name="queue.byte.size", fate=Fate.GONE, why=_BUFFER),
    Option(
        name="abort.on.send.failure",
        spellings=("abortOnSendFail", "abortOnSendFailure"),
        takes=Takes.PERHAPS,
        fate=Fate.ALWAYS,
        why="Ferry never passes a record that could not be written: the partition waits and the run reports it",
    ),
    Option(
        name="new.consumer",
        takes=Takes.NOTHING,
        fate=Fate.GONE,
        why="there is one kind of client now, and it speaks to brokers only",
    ),
    Option(
        name="new.producer",
        takes=Takes.NOTHING,
        fate=Fate.GONE,
        why="there is one kind of client now, and it speaks to brokers only",
    ),
    Option(name="offset.commit.interval.ms", fate=Fate.GONE, why=_POSITIONS),
    Option(name="consumer.rebalance.listener", fate=Fate.GONE, why="there is no consumer group, so no rebalance"),
    Option(name="rebalance.listener.args", fate=Fate.GONE, why="there is no consumer group, so no rebalance"),
    Option(
        name="message.handler",
        fate=Fate.LOOK,
        why="Ferry copies records as they are: what this class changed or left out is not changed or left out any more",
    ),
    Option(name="message.handler.args", fate=Fate.GONE, why="it belongs to the message handler"),
)

_BY_SPELLING = {spelling: option for option in OPTIONS for spelling in (option.name, *option.spellings)}
_PROGRAM = re.compile(r"(?:.*/)?(?:kafka-mirror-maker|kafka-run-class)(?:\.sh|\.bat)?|kafka\.tools\.MirrorMaker")

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*=")
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"
"""Hyphens, and the characters that word processors and web pages make of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One option as it was written; `value` is empty if there was none."""

    option: Option
    written: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """A command line of MirrorMaker 1."""

    given: tuple[Given, ...]
    java: Mapping[str, str] = field(default_factory=dict)
    """Options of the Java process, such as `-Djava.security.auth.login.config`, and their values."""

    @property
    def jaas_file(self) -> str | None:
        """The JAAS file on the command line."""
        return self.java.get(JAAS_PROPERTY)

    def all(self, name: str) -> tuple[Given, ...]:
        """Return all uses of the option `name`."""
        return tuple(given for given in self.given if given.option.name == name)

    def one(self, name: str) -> Given | None:
        """Return the first use of the option `name`; None if there is none."""
        return next(iter(self.all(name)), None)


def read_arguments(words: Sequence[str]) -> Arguments:
    """Read the options in `words`, which may begin with MirrorMaker's own program and class name.

    Raises BadInput, with the remedy, for a command line with which MirrorMaker 1 would not have started.
    """
    given: list[Given] = []
    java: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if word.startswith("--"):
            given.append(_option(word, left, given))
        elif word.startswith(("-D", "-X")):
            name, _, value = word.partition("=")
            java[name] = value
        elif not _PROGRAM.fullmatch(word):
            raise BadInput(_stray(word))
    arguments = Arguments(given=tuple(given), java=java)
    _check(arguments)
    return arguments


def _stray(word: str) -> str:
    """Say what is wrong with a word that is neither an option nor the value of one."""
    if word == "-h":
        return "-h is not an option here, because MirrorMaker 1's options are read: ask with --help"
    if _VARIABLE.match(word):
        return f"argument {word!r} sets a variable: put it before ferry, or remove it where only Java reads it"
    option = f"--{word.lstrip(_DASHES)}"
    if word != word.lstrip(_DASHES) and option.partition("=")[0].removeprefix("--") in _BY_SPELLING:
        return f"argument {word!r} does not begin with two hyphens; write {option}"
    return (
        f"argument {word!r} belongs to no option of MirrorMaker 1: put a value that holds blanks, * or | in quotes, or"
        " remove it"
    )


def _option(word: str, left: list[str], before: Sequence[Given]) -> Given:
    written, equals, value = word.partition("=")
    option = _known(written)
    if option.takes is Takes.NOTHING and equals:
        raise BadInput(f"{written} takes no value, but {value!r} was given: remove it")
    if not equals and option.takes is not Takes.NOTHING and left and not left[0].startswith("-"):
        wants_it = option.takes is Takes.VALUE or left[0].strip().lower() in ("true", "false")
        value = left.pop(0) if wants_it else ""
    if option.takes is Takes.VALUE and not value.strip():
        raise BadInput(f"{written} has no value: write {written} and its value after it")
    if not option.repeatable and any(other.option is option for other in before):
        raise BadInput(f"{written} is given twice: MirrorMaker 1 takes it once, keep one")
    return Given(option=option, written=written, value=value)


def _known(written: str) -> Option:
    name = written.removeprefix("--")
    if name in _BY_SPELLING:
        return _BY_SPELLING[name]
    meant = {option.name for spelling, option in _BY_SPELLING.items() if name and spelling.startswith(name)}
    if len(meant) == 1:
        return _BY_SPELLING[meant.pop()]
    known = ", ".join(f"--{option}" for option in sorted(meant or {option.name for option in OPTIONS}))
    what = "fits several options" if meant else "is not an option of MirrorMaker 1 or of this command"
    raise BadInput(f"{written} {what}: write one of {known}")


def _check(arguments: Arguments) -> None:
    for name, what in (("consumer.config", "the source cluster"), ("producer.config", "the target cluster")):
        if arguments.one(name) is None:
            raise BadInput(f"--{name} is missing: add --{name} FILE, the file for {what}")
    for name in ("num.streams", "abort.on.send.failure"):
        given = arguments.one(name)
        if given is None or not given.value:
            continue
        try:
            values.integer(1)(given.value) if name == "num.streams" else values.boolean(given.value)
        except BadValue as error:
            raise BadInput(located(given.written, error.message)) from None
