"""What Kafka's own classes make of files and names: one JVM for a session (`JavaOracle.java`, from its source)."""

import base64
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ferry.dev.jars import jars, java
from tests.oracle import Oracle

SOURCE = Path(__file__).with_name("JavaOracle.java")


def encoded(text: str) -> str:
    """Text as the oracle reads it: base64 of UTF-16, so that lone surrogates and line ends survive."""
    return base64.b64encode(text.encode("utf-16-le", "surrogatepass")).decode()


def decoded(word: str) -> str | None:
    """The text of one word of an answer; None for Java's null."""
    if word == "null":
        return None
    return base64.b64decode(word.removeprefix("=")).decode("utf-16-le", "surrogatepass")


def ask(questions: Sequence[str]) -> list[str]:
    """One answer per question, from a JVM with Kafka 4.3.0 on its class path."""
    return _oracle().ask(questions)


@cache
def _oracle() -> Oracle:
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)])


def as_mapping(answer: str) -> dict[str, str]:
    """The mapping of an answer `ok key value key value ...`."""
    words = [decoded(word) or "" for word in answer.split(" ")[1:]]
    return dict(zip(words[::2], words[1::2], strict=True))
