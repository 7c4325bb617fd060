"""The page's side: asks the reader, waits a moment, and returns the last answer with its age if no new one comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ferry.reader.wire import MOST_ASKED, Ask, Logins, Message, Reply, Told, decoded, encoded

WAIT_SECONDS = 0.25
"""How long a request waits for the reader."""
BRIEF_SECONDS = 0.05
"""How long it waits if the last question was not answered in time, and it has an older answer to show.

Also how long a question waits for its turn.
"""
MOST_WAITING = 4
"""How many requests wait for the reader at the same time."""
ACT_SECONDS = 2.0
"""How long a request waits until an action of a user is accepted; also how long an action waits for its turn."""
KEPT_ANSWERS = 64
KEPT_SECONDS = 120.0
"""After this time an answer that is not asked for again is dropped."""
MOST_LOGINS = MOST_ASKED - (1 << 16)
"""Bytes of logins in one message; the rest is for the questions."""
MOST_AT_ONCE = 64
"""The most flows whose states are asked for at once."""
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
        self._asked_at: dict[tuple[str, int], float] = {}
        """When the state of a flow was last asked for."""
        self._is_slow = False
        self._missing_since = 0

    def ask(self, flow: str, question: Question[Any]) -> Answer:
        """Return the answer to a question; if none comes in time, the last one, with its time."""
        key = flow, question
        try:
            (given,) = self._replies_to([key], closely=True, seconds=self._wait(has_older=self._last(key).at_ms > 0))
            found = _answer(question, given)
        except Slow:
            return self._last(key)
        except NoReader as error:
            return Answer(error=str(error), failed_ms=wall_ms())
        self._keep(key, found)
        return found

    def act(self, flow: str, question: Question[Any]) -> Answer:
        """Have the reader do something. Raises Slow if it is not known whether it was accepted, and NoReader."""
        (given,) = self._replies_to([(flow, question)], closely=True, seconds=ACT_SECONDS, turn_seconds=ACT_SECONDS)
        return _answer(question, given)

    def statuses(self, flows: Sequence[str], *, closely: bool) -> list[Status]:
        """Return the state of flows as of their last poll; of those without an answer in time, the last known one.

        `closely`: for the pages of one flow, not for the list of all.
        """
        runs = OPEN_RUNS if closely else GLANCE_RUNS
        found = {flow: self._statuses.get((flow, runs)) or Status() for flow in flows}
        seconds = self._wait(has_older=all(one.number for one in found.values()))
        read: dict[str, Logins] = {}
        for some in self._a_few_each([(flow, runs) for flow in flows], seconds):
            asks = [(flow, OfStatus(runs=runs, mark=found[flow].mark)) for flow, _ in some]
            try:
                replies = self._replies_to(asks, closely=closely, seconds=seconds, read=read)
            except Slow:
                break
            except NoReader as error:
                return [self._missing(str(error))] * len(flows)
            self._missing_since = 0
            for (flow, question), given in zip(asks, replies, strict=True):
                found[flow] = self._newer(found[flow], _answer(question, given))
                self._statuses[flow, runs] = found[flow]
        return [found[flow] for flow in flows]

    def _a_few_each(self, flows: Sequence[tuple[str, int]], seconds: float) -> Iterator[list[tuple[str, int]]]:
        """Yield flows, the one first that was not asked for the longest time, until half of `seconds` is over.

        How long an answer takes is not known. So it is one flow first, then twice as many each time: the last ones take
        about as long as all before them.
        """
        until, many = time.monotonic() + seconds / 2, 1
        rest = sorted(flows, key=lambda flow: self._asked_at.get(flow, 0.0))
        while rest:
            some, rest = rest[:many], rest[many:]
            self._asked_at |= dict.fromkeys(some, time.monotonic())
            yield some
            if time.monotonic() >= until:
                return
            many = min(2 * many, MOST_AT_ONCE)

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

    def _wait(self, *, has_older: bool) -> float:
        """Return how long a question waits; `has_older`: if it has no answer, an older one is shown."""
        return BRIEF_SECONDS if self._is_slow and has_older else WAIT_SECONDS

    def _replies_to(
        self,
        asks: Sequence[Key],
        *,
        closely: bool,
        seconds: float,
        turn_seconds: float = BRIEF_SECONDS,
        read: dict[str, Logins] | None = None,
    ) -> list[Told]:
        """Return the answers; if the reader needs logins, ask again and send them along.

        `read`: the connections that were read before, by their ids.
        """
        found = self._reply([_ask(key, closely) for key in asks], seconds, turn_seconds)
        needing = [at for at, given in enumerate(found) if given.needs]
        read = {} if read is None else read
        again = [replace(_ask(asks[at], closely), logins=self._logins(found[at].needs, read)) for at in needing]
        replies = [given for some in _fitting(again) for given in self._reply(some, seconds, turn_seconds)]
        for at, given in zip(needing, replies, strict=True):
            found[at] = given
        return found

    def _logins(self, ids: Sequence[str], read: dict[str, Logins]) -> Logins:
        for conn_id in ids:
            if conn_id not in read:
                read[conn_id] = self._login(conn_id)
            if read[conn_id].error:
                return read[conn_id]
        found = Logins(of={conn_id: settings for one in ids for conn_id, settings in read[one].of.items()})
        size = len(encoded(Logins, found))
        return found if size <= MOST_LOGINS else Logins(error=_too_long(ids, size))

    def _login(self, conn_id: str) -> Logins:
        try:
            return Logins(of={conn_id: dict(self._lookup(conn_id))})
        except FerryError as error:
            return Logins(error=str(error))

    def _reply(self, asks: Sequence[Ask], seconds: float, turn_seconds: float) -> list[Told]:
        message = Message(version=ferry.__version__, config=self._config, deployment=self._deployment, asks=tuple(asks))
        if not self._turn.acquire(timeout=turn_seconds):
            raise Slow
        try:
            content = self._exchange(encoded(Message, message), seconds)
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


def _fitting(asks: Sequence[Ask]) -> Iterator[list[Ask]]:
    """Yield questions with logins, as many together as a message may have."""
    some: list[Ask] = []
    room = 0
    for one in asks:
        size = len(encoded(Ask, one))
        if some and size > room:
            yield some
            some = []
        room = (room if some else MOST_LOGINS) - size
        some.append(one)
    if some:
        yield some


def _too_long(ids: Sequence[str], size: int) -> str:
    names = " and ".join(ids)
    return (
        f"the settings of the Airflow connections {names} have {size} bytes together, and the page's reader takes at"
        f" most {MOST_LOGINS}: name their certificates and keys by their files"
    )


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
