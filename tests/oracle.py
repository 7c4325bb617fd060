"""Java as the judge: a JVM that answers each line of its input with one line."""

import atexit
import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from itertools import islice

from tests.tiers import PATIENCE

SECONDS = 120 * PATIENCE
_ANSWERS = ("ok", "error", "true", "false")
"""How answers begin: Kafka's log goes to standard output as well."""


class Oracle:
    """A JVM that answers all questions of a session, and ends with it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asks, self._tells = self._process.stdin, self._process.stdout
        atexit.register(self._end)

    def ask(self, questions: Sequence[str]) -> list[str]:
        """One answer per question."""
        # Written beside the reading: both pipes are smaller than many questions.
        writer = threading.Thread(target=self._put, args=(questions,), daemon=True)
        guard = threading.Timer(SECONDS, self._process.kill)
        guard.start()
        try:
            writer.start()
            answers = list(islice(self._answers(), len(questions)))
            assert len(answers) == len(questions), f"the oracle ended after {len(answers)} of {len(questions)} answers"
        finally:
            guard.cancel()
        return answers

    def _put(self, questions: Sequence[str]) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._asks.write("".join(f"{question}\n" for question in questions))
            self._asks.flush()

    def _answers(self) -> Iterator[str]:
        for line in iter(self._tells.readline, ""):
            if line.startswith(_ANSWERS):
                yield line.rstrip("\n")

    def _end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._asks.close()
        self._process.wait(SECONDS)
