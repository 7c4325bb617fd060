"""The page's side: asks the reader, waits a moment, and returns the last answer with its age if no new one comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ferry
from ferry.clock import wall_ms
from ferry.errors import Corrupt, FerryError
from ferry.page.question import Question, answer_type
from ferry.reader.documents import Answer, Status, Trouble
from ferry.reader.process import NoReader, Slow
from ferry.reader.questions import OfStatus
from ferry.reader.typed import dump, load
from ferry.reader.wire import Ask, Logins, Message, Reply, Told, decoded, encoded

WAIT_SECONDS = 0.25
"""How long a request waits for the reader."""
BRIEF_SECONDS = 0.05
"""How long it waits if the last question was not answered in time; also how long a question waits for its turn."""
MOST_WAITING = 4
"""How many requests wait for the reader at the same time."""
ACT_SECONDS = 2.0
"""How long a request waits until an action of a user is accepted; also how long an action waits for its turn."""
KEPT_ANSWERS = 64
KEPT_SECONDS = 120.0
"""After this time an answer that is not asked for again is dropped."""
OPEN_RUNS, GLANCE_RUNS = 1_000, 30
"""How many runs the pages of a flow, and the list of flows, know of it."""

Exchange = Callable[[bytes, float], bytes]
"""Returns the reply to a message within some seconds; raises Slow and NoReader."""
Key = tuple[str, Question[Any]]
"""A flow and a question."""


class Reader:
    """Asks the reader. Thread-safe; it has no thread, and no connection to a cluster."""

    def __init__(
        self, exchange: Exchange, *, config: str = "", deployment: str = "", lookup: Callable[[str], Mapping[str, str]]
    ) -> None:
        """`lookup` returns the settings of an Airflow connection; raises BadInput for a missing or wrong one."""
        self._exchange, self._config, self._deployment, self._lookup = exchange, config, deployment, lookup
        self._turn = threading.BoundedSemaphore(MOST_WAITING)
        self._lock = threading.Lock()
        self._kept: dict[Key, Answer] = {}
        self._statuses: dict[tuple[str, int], Status] = {}
        self._is_slow = False
        self._missing_since = 0

    def ask(self, flow: str, question: Question[Any]) -> Answer:
        """Return the answer to a question; if none comes in time, the last one, with its time."""
        key = flow, question
        try:
            (given,) = self._replies_to([key], closely=True, seconds=None)
            found = _answer(question, given)
        except Slow:
            return self._last(key)
        except NoReader as error:
            return Answer(error=str(error), failed_ms=wall_ms())
        self._keep(key, found)
        return found

    def act(self, flow: str, question: Question[Any]) -> Answer:
        """Have the reader do something. Raises Slow if it is not known whether it was accepted, and NoReader."""
        (given,) = self._replies_to([(flow, question)], closely=True, seconds=ACT_SECONDS)
        return _answer(question, given)

    def statuses(self, flows: Sequence[str], *, closely: bool) -> list[Status]:
        """Return the state of flows as of their last poll.

        `closely`: for the pages of one flow, not for the list of all.
        """
        runs = OPEN_RUNS if closely else GLANCE_RUNS
        known = {flow: self._statuses.get((flow, runs)) or Status() for flow in flows}
        asks = [(flow, OfStatus(runs=runs, mark=known[flow].mark)) for flow in flows]
        try:
            replies = self._replies_to(asks, closely=closely, seconds=None) if asks else []
            answers = [_answer(ask[1], given) for ask, given in zip(asks, replies, strict=True)]
        except Slow:
            return list(known.values())
        except NoReader as error:
            return [self._missing(str(error))] * len(flows)
        self._missing_since = 0
        found = [self._newer(known[flow], answer) for flow, answer in zip(flows, answers, strict=True)]
        self._statuses |= {(flow, runs): one for flow, one in zip(flows, found, strict=True)}
        return found

    def status(self, flow: str) -> Status:
        """Return the state of the flow whose pages are open."""
        (found,) = self.statuses([flow], closely=True)
        return found

    def _newer(self, known: Status, answer: Answer) -> Status:
        """Return the status after an answer: the known one if nothing changed, or if a new reader has no poll yet."""
        if answer.error:
            return self._missing(answer.error)
        found: Status = answer.got or known
        return known if known.number and not found.number else found

    def _missing(self, why: str) -> Status:
        """Return the status of a flow of which nothing is known, because there is no reader."""
        self._missing_since = self._missing_since or wall_ms()
        return Status(hindrances=(Trouble(cluster="", why=why, since_ms=self._missing_since),))

    def _replies_to(self, asks: Sequence[Key], *, closely: bool, seconds: float | None) -> list[Told]:
        """Return the answers; if the reader needs logins, ask again and send them along."""
        found = self._reply([_ask(key, closely) for key in asks], seconds)
        needing = [at for at, given in enumerate(found) if given.needs]
        if needing:
            again = [replace(_ask(asks[at], closely), logins=self._logins(found[at].needs)) for at in needing]
            for at, given in zip(needing, self._reply(again, seconds), strict=True):
                found[at] = given
        return found

    def _logins(self, ids: Sequence[str]) -> Logins:
        try:
            return Logins(of={conn_id: dict(self._lookup(conn_id)) for conn_id in ids})
        except FerryError as error:
            return Logins(error=str(error))

    def _reply(self, asks: Sequence[Ask], seconds: float | None) -> list[Told]:
        message = Message(version=ferry.__version__, config=self._config, deployment=self._deployment, asks=tuple(asks))
        if not self._turn.acquire(timeout=seconds or BRIEF_SECONDS):
            raise Slow
        try:
            within = seconds or (BRIEF_SECONDS if self._is_slow else WAIT_SECONDS)
            content = self._exchange(encoded(Message, message), within)
            self._is_slow = False
        except Slow:
            self._is_slow = True
            raise
        finally:
            self._turn.release()
        try:
            reply: Reply = decoded(Reply, content)
        except Corrupt as error:
            raise NoReader(f"the page's reader does not answer as one: {error}") from None
        if reply.other or len(reply.told) != len(asks):
            raise NoReader(reply.other or "the page's reader has not answered each question")
        return list(reply.told)

    def _last(self, key: Key) -> Answer:
        with self._lock:
            kept = self._kept.get(key)
        return replace(kept, is_asked=True) if kept else Answer(is_asked=True)

    def _keep(self, key: Key, found: Answer) -> None:
        found.asked_at = time.monotonic()
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = found  # the last one asked for is dropped last
            while len(self._kept) > KEPT_ANSWERS or self._oldest() < found.asked_at - KEPT_SECONDS:
                self._kept.pop(next(iter(self._kept)))

    def _oldest(self) -> float:
        return next(iter(self._kept.values())).asked_at


def _ask(key: Key, closely: bool) -> Ask:
    flow, question = key
    of = type(question)
    return Ask(ask=of.__name__, flow=flow, closely=closely, about=dump(of, question), logins=None)


def _answer(question: Question[Any], given: Told) -> Answer:
    try:
        got = None if given.got is None else load(answer_type(type(question)), given.got)
    except Corrupt as error:
        return Answer(error=f"the page's reader has answered something else: {error}", failed_ms=wall_ms())
    return Answer(got=got, error=given.error, at_ms=given.at_ms, failed_ms=given.failed_ms, is_asked=given.is_asked)
