"""Java as the judge: one JVM answers all questions of a test (`JavaOracle.java`, started from its source)."""

import base64
import subprocess
from collections.abc import Sequence
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
    """One answer per question, from one JVM with Kafka 4.3.0 on its class path."""
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)]
    done = subprocess.run(
        command, input="\n".join(questions) + "\n", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = [line for line in done.stdout.splitlines() if line.startswith(("ok", "error", "true", "false"))]
    assert len(answers) == len(questions)
    return answers


def as_mapping(answer: str) -> dict[str, str]:
    """The mapping of an answer `ok key value key value ...`."""
    words = [decoded(word) or "" for word in answer.split(" ")[1:]]
    return dict(zip(words[::2], words[1::2], strict=True))
