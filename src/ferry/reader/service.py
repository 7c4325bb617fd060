"""Answers a message of questions: finds the flow and its thread, and bounds the size of the reply."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ferry
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings, load
from ferry.config.text.secrets import ClientProperties
from ferry.errors import BadInput, Corrupt, FerryError
from ferry.model import Flow
from ferry.page.question import Question, answer_type
from ferry.reader.answering import handlers, job_story
from ferry.reader.documents import Answer, JobStory
from ferry.reader.flows import Configured, Flows
from ferry.reader.questions import OfJob
from ferry.reader.typed import dump
from ferry.reader.typed import load as loaded
from ferry.reader.watcher import LOOK_SECONDS, Watcher, Watchers
from ferry.reader.wire import MOST_TOLD, Ask, Logins, Message, Reply, Told, decoded, encoded

log = logging.getLogger(__name__)
Key = tuple[str, Path, tuple[int, int]]
"""A flow of one state of a file."""


class Service:
    """The state of a reader. `stays`: it serves any Airflow, not only the one that has started it."""

    def __init__(self, flows: Flows, watchers: Watchers, *, stays: bool = False) -> None:
        self.is_outdated = False
        """Whether a process of another version, or with another file, has asked: it starts a reader of its own."""
        self._flows, self._watchers, self._stays = flows, watchers, stays
        self._handlers = handlers()
        self._questions: Mapping[str, type[Question[Any]]] = {of.__name__: of for of in (*self._handlers, OfJob)}
        """The class of each question, by the name under which it is sent."""
        self._lock = threading.Lock()
        self._handed: dict[Key, tuple[float, Logins]] = {}
        """The logins of the polled flows, and when they came."""
        self._doubted: set[Key] = set()
        """Flows whose logins are to be brought again, because a cluster refuses them."""
        self._deployment = ""

    def reply(self, content: bytes) -> bytes:
        """Return the reply to a message; if it is not a message, the reply is why."""
        try:
            message: Message = decoded(Message, content)
        except Corrupt:  # its text may have a part of a login
            return encoded(Reply, Reply(other="what came is not a message of the page"))
        configured = self._flows.now()
        other = self._other(message, configured)
        if other:
            self.is_outdated = True
            return encoded(Reply, Reply(other=other))
        self._deployment = message.deployment
        answers, room = [], MOST_TOLD - 1024
        for ask in message.asks:
            one = self._answer_of(configured, ask)
            size = len(encoded(Told, one))
            if size > room:
                one = _failed(f"the answer is {size} bytes long, but a reply has at most {MOST_TOLD}")
                size = len(encoded(Told, one))
            room -= size
            answers.append(one)
        return encoded(Reply, Reply(told=tuple(answers)))

    def _other(self, message: Message, configured: Configured) -> str:
        if message.version != ferry.__version__:
            return (
                f"the page's reader is of Ferry {ferry.__version__}, and the page of Ferry {message.version}: start the"
                " reader again with the page's version"
            )
        if not self._stays and message.config != str(configured.path):
            return f"the page's reader is for {configured.path}, and the page for {message.config}"
        return ""

    def _answer_of(self, configured: Configured, ask: Ask) -> Told:
        of = self._questions.get(ask.ask)
        if of is None:
            return _failed(f"the page's reader knows no question {ask.ask!r:.40}")
        try:
            question = loaded(of, ask.about)
            if isinstance(question, OfJob):
                return _written(question, self._job(question))
            config = self._config(configured, ask.flow)
            assert configured.path is not None
            key: Key = (ask.flow, configured.path, configured.stamp)
            watcher = self._watchers.of(key, partial(self._watcher, key, config))
            if config.clients.connections:
                if ask.logins is not None:
                    self._hand(key, ask.logins, watcher)
                elif self._lacks_logins(key):
                    return Told(needs=tuple(sorted(set(config.clients.connections.values()))))
            watcher.seen(closely=ask.closely)
            return _written(question, self._handlers[type(question)](config, watcher, question))
        except FerryError as error:
            return _failed(str(error))
        except Exception as error:
            log.exception("question %s about flow %s", ask.ask, ask.flow)
            return _failed(f"unexpected {type(error).__name__} (a bug: its trace is in the API server's log)")

    def _config(self, configured: Configured, flow: str) -> FlowConfig:
        found = next((one for one in configured.flows if str(one.flow) == flow), None)
        if found is None:
            raise BadInput(configured.lacks(Flow.parse(flow)))
        return found

    def _hand(self, key: Key, given: Logins, watcher: Watcher) -> None:
        """Keep the logins of a flow; if they are others than before, its connections are made again."""
        with self._lock:
            _, before = self._handed.get(key, (0.0, given))
            self._handed[key] = time.monotonic(), given
            self._doubted.discard(key)
        if given != before:
            watcher.renew()

    def _lacks_logins(self, key: Key) -> bool:
        """Return whether the logins of a flow have to be sent."""
        with self._lock:
            at, kept = self._handed.get(key, (0.0, None))
            is_doubted = key in self._doubted
        return kept is None or is_doubted or bool(kept.error and time.monotonic() - at > LOOK_SECONDS)

    def _watcher(self, key: Key, config: FlowConfig) -> Watcher:
        flow = config.flow
        return Watcher(
            partial(self._connected, key, config),
            flow.source,
            flow.target,
            settings=partial(self._settings, key, config),
            at_rest=partial(self._forget, key),
            doubt=partial(self._doubt, key),
            measures=measured_by(config),
        )

    def _connected(self, key: Key, config: FlowConfig) -> FlowConfig:
        """Return the flow with its logins; raises BadInput if one is missing or wrong."""
        return self._settings(key, config).flow(key[0])

    def _settings(self, key: Key, config: FlowConfig) -> Settings:
        """Return the file with the logins of the flow's two clusters; raises BadInput if one is missing or wrong."""
        _, path, _ = key
        with self._lock:
            _, handed = self._handed.get(key, (0.0, None))
        if not config.clients.connections:
            handed = Logins()
        if handed is None:
            raise BadInput("the page's reader does not have the flow's logins yet: it tries again in a moment")
        if handed.error:
            raise BadInput(handed.error)
        of = handed.of

        def lookup(conn_id: str) -> ClientProperties | None:
            return ClientProperties(values_by_key=dict(of[conn_id])) if conn_id in of else None

        return load(path, lookup, deployment=self._deployment)

    def _doubt(self, key: Key) -> None:
        with self._lock:
            self._doubted.add(key)

    def _forget(self, key: Key) -> None:
        with self._lock:
            self._handed.pop(key, None)
            self._doubted.discard(key)

    def _job(self, asked: OfJob) -> Answer:
        found = self._watchers.job(asked.job)
        return Answer(got=job_story(found) if found else JobStory(), at_ms=wall_ms())


def measured_by(config: FlowConfig) -> Hashable:
    """Return what identifies the lane of a flow and its two clusters, as far as the file shows them.

    Lag that was measured before the file changed is of the same records if this is the same.
    """
    named = sorted(config.clients.connections.items())
    servers = sorted((*of, client.get("bootstrap.servers", "")) for of, client in config.clients.properties.items())
    return (str(config.flow), config.lane, tuple(named), tuple(servers))


def _written(question: Question[Any], found: Answer) -> Told:
    got = None if found.got is None else dump(answer_type(type(question)), found.got)
    return Told(got=got, error=found.error, at_ms=found.at_ms, failed_ms=found.failed_ms, is_asked=found.is_asked)


def _failed(why: str) -> Told:
    return Told(error=why, failed_ms=wall_ms())
