"""Java as the judge: one JVM answers all questions of a session (`JavaOracle.java`, started from its source)."""

import atexit
import base64
import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from ferry.dev.jars import jars, java

SOURCE = Path(__file__).with_name("JavaOracle.java")
SECONDS = 120


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
    oracle = _oracle()
    # Written beside the reading: both pipes are smaller than many questions.
    writer = threading.Thread(target=_put, args=(oracle, questions), daemon=True)
    guard = threading.Timer(SECONDS, oracle.kill)
    guard.start()
    try:
        writer.start()
        answers = list(islice(_answers(oracle), len(questions)))
        assert len(answers) == len(questions), f"the oracle ended after {len(answers)} of {len(questions)} answers"
    finally:
        guard.cancel()
    return answers


@cache
def _oracle() -> subprocess.Popen[str]:
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)]
    oracle = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, oracle)
    return oracle


def _put(oracle: subprocess.Popen[str], questions: Sequence[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        oracle.stdin.write("".join(f"{question}\n" for question in questions))
        oracle.stdin.flush()


def _answers(oracle: subprocess.Popen[str]) -> Iterator[str]:
    """Lines that are answers; Kafka's log goes to standard output as well."""
    for line in iter(oracle.stdout.readline, ""):
        if line.startswith(("ok", "error", "true", "false")):
            yield line.rstrip("\n")


def _end(oracle: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        oracle.stdin.close()
    oracle.wait(SECONDS)


def as_mapping(answer: str) -> dict[str, str]:
    """The mapping of an answer `ok key value key value ...`."""
    words = [decoded(word) or "" for word in answer.split(" ")[1:]]
    return dict(zip(words[::2], words[1::2], strict=True))
