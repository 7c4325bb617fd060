"""What MirrorMaker 2's own classes write and read: one JVM for a session (`MirrorOracle.java`)."""

import atexit
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ferry.dev.jars import jars, java
from ferry.model import GroupCheckpoint, Heartbeat, OffsetSync, Record
from tests.commands import compile_java
from tests.oracle import Oracle

SOURCE = Path(__file__).with_name("MirrorOracle.java")
CLASS = "org.apache.kafka.connect.mirror.MirrorOracle"

Written = GroupCheckpoint | Heartbeat | OffsetSync


def encoded(text: str) -> str:
    """Text as the oracle reads it: hexadecimal UTF-8 behind an equals sign."""
    return f"={text.encode().hex()}"


def decoded(word: str) -> str:
    """The text of one word of an answer."""
    return bytes.fromhex(word.removeprefix("=")).decode()


def ask(questions: Sequence[str]) -> list[str]:
    """The answers without their `ok`, from a JVM with Kafka 4.3.0 on its class path; an error fails the test."""
    answers = _oracle().ask(questions)
    for question, answer in zip(questions, answers, strict=True):
        assert answer.startswith("ok "), f"{question}: {decoded(answer.split(' ')[1])}"
    return [answer.removeprefix("ok ") for answer in answers]


def ask_words(question: str) -> list[str]:
    """The texts of the answer to one question."""
    return [decoded(word) for word in ask([question])[0].split(" ") if word]


def written(things: Sequence[Written]) -> list[Record]:
    """The records that Kafka's classes make of them."""
    found = [answer.split(" ") for answer in ask([f"write {_fields(thing)}" for thing in things])]
    return [Record(key=bytes.fromhex(key), value=bytes.fromhex(value)) for key, value in found]


def read(kind: str, record: Record) -> str:
    """What Kafka's class says of a record that it has read; `kind` is checkpoint, heartbeat or sync."""
    return decoded(ask([f"read {kind} {record.key.hex()} {(record.value or b'').hex()}"])[0])


def translated(syncs: Sequence[OffsetSync], offsets: Sequence[int]) -> list[int | None]:
    """What a checkpoint task that has read `syncs` makes of upstream offsets; -1: too old, None: nothing to go by."""
    pairs = ",".join(f"{sync.upstream}:{sync.downstream}" for sync in syncs)
    answer = ask([f"translate {pairs} {','.join(map(str, offsets))}"])[0]
    return [None if word == "none" else int(word) for word in answer.split(",")]


def _fields(thing: Written) -> str:
    match thing:
        case GroupCheckpoint():
            where = f"{encoded(thing.target.topic)} {thing.target.partition}"
            offsets = f"{thing.upstream} {thing.downstream}"
            return f"checkpoint {encoded(thing.group)} {where} {offsets} {encoded(thing.metadata)}"
        case Heartbeat():
            return f"heartbeat {encoded(thing.source_alias)} {encoded(thing.target_alias)} {thing.at_ms}"
        case OffsetSync():
            where = f"{encoded(thing.source.topic)} {thing.source.partition}"
            return f"sync {where} {thing.upstream} {thing.downstream}"


@cache
def _oracle() -> Oracle:
    made = tempfile.TemporaryDirectory(prefix="mirror-oracle-")
    atexit.register(made.cleanup)  # after the JVM's end, which is registered later
    folder = made.name
    classes = ":".join(map(str, sorted(jars("4.3.0").glob("*.jar"))))
    # Compiled, not run from its source: only so it is of one package with Kafka's classes for the JVM.
    compile_java(SOURCE, class_path=classes, into=Path(folder))
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{classes}", CLASS])
