"""One thread for each flow whose page is open: it asks the clusters, so that no request has to.

It polls every few seconds as long as a page asks for the result, and ends when none does any more. Anything else that
needs a cluster (a plan, an old run, an offset) is a job that waits for its turn.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import FerryError
from ferry.garbage import left_uncollected
from ferry.ledger.history import PastRun, PastState
from ferry.model import OpenedRun
from ferry.plan.rules.lag import total_of
from ferry.reader.answers import WAIT_SECONDS, Answers, Ended, Key
from ferry.reader.documents import Answer, RunDigest, Trouble
from ferry.reader.lag_history import column_of, kept
from ferry.reader.lag_point import APART_MS, NOT_HELD, Held, LagPoint, followed
from ferry.reader.snapshot import Snapshot, apart_of, by_topic, digest_of, ledger_parts, moved_of, topic_rows
from ferry.reader.spells import spells_of
from ferry.reader.watch import FlowPoll, FlowWatch, may_be_login

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""The pause between two polls of a flow whose own pages are open.

If a poll takes more than a tenth of that, the pause is ten times the poll, up to GLANCE_SECONDS.
"""
GLANCE_SECONDS = 30.0
"""The pause between two polls of a flow that is only in the list of all flows; also the longest pause.

A poll that computed for longer than that is followed by a pause as long as it computed.
"""
LOOKING = threading.BoundedSemaphore(4)
"""How many flows are polled at the same time, also when the list of very many is opened."""
AT_REST_SECONDS = 300.0
"""A flow without questions is not polled any more after this time."""
RENEW_SECONDS = 60.0
"""The shortest time between two questions for a flow's logins while clusters refuse them: each asks a secrets backend.

The connections are closed at the same times: a file with a password or a certificate may be another one by now.
"""
PATIENCE_SECONDS = 5.0
MOST_RUNS = 200
"""How many of the newest runs are read, one by one, when nothing else is to do: the newest first.

It is as many as a ledger keeps: a hundred that copied something, a hundred that copied nothing.
"""
AT_ONCE = 3
"""How many of them are read at each poll; the others are read between polls."""
BACKGROUND = 4.0
"""After reading an older run, the thread pauses for this many times as long as it took."""
KEPT_JOBS = 200
MOST_WAITING = 20
"""Jobs of one flow that are not done yet; more are refused: if a cluster is down they would pile up."""
MOST_ASIDE = 8
"""Threads at the same time, of all flows, for what needs no cluster: each number in an address is another question."""

_ASIDE = threading.BoundedSemaphore(MOST_ASIDE)


@dataclass(slots=True)
class Job:
    """A task for a user on a flow's thread; `done` is set when there is an answer or an error."""

    id: str
    who: str
    what: str
    work: Callable[[FlowWatch], Any]
    done: threading.Event
    answer: Any = None
    error: str = ""
    ended: Ended | None = None


class TooMuch(Exception):
    """A flow's thread has too much to do; a sentence with what to wait for."""


class Watcher:
    """A flow's thread, and its last snapshot."""

    def __init__(
        self,
        connected: Callable[[], FlowConfig],
        source: str,
        target: str,
        *,
        settings: Callable[[], Settings] | None = None,
        at_rest: Callable[[], None] = lambda: None,
        doubt: Callable[[], None] = lambda: None,
        measures: Hashable = None,
    ) -> None:
        """`connected` returns the flow with its logins; it is called whenever the connections are made again.

        `settings` is for FlowWatch. `at_rest` is called when the thread ends, because no page of the flow is open.
        `doubt` is called after an error that other logins may end, RENEW_SECONDS apart.
        `measures` identifies the lane and the clusters whose lag it measures; None: nothing is the same.
        """
        self.measures = measures
        self.name = secrets.token_urlsafe(9)
        """A different name for each watcher: each numbers its snapshots from 1."""
        self._at_rest, self._doubt = at_rest, doubt
        self._connected, self._settings = connected, settings
        self._source, self._target = source, target
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked_at = 0.0
        self._close_at = -GLANCE_SECONDS
        self._seen = Snapshot()
        self._digests: dict[int, RunDigest] = {}
        self._end = -1
        self._newest = -1
        """The generation that was the newest when the runs were last read."""
        self._unread: list[OpenedRun] = []
        """Runs that are still to be read, the next one first."""
        self._jobs: dict[str, Job] = {}
        self._answers = Answers()
        self._closed = False
        self._is_stale = False
        """Whether the connections are to be made again."""
        self._renew_at = 0.0

    @property
    def last(self) -> Snapshot:
        """The last snapshot; reading it does not keep the thread running."""
        return self._seen

    @property
    def is_at_work(self) -> bool:
        """Whether its thread lives."""
        return self._thread is not None and self._thread.is_alive()

    def seen(self, *, closely: bool = True) -> Snapshot:
        """Return the last snapshot at once. It keeps the thread running; with `closely` it polls often."""
        now = time.monotonic()
        if closely and now > self._close_at + GLANCE_SECONDS and self._seen.number:
            self.nudge()
        self._asked_at = now
        self._close_at = now if closely else self._close_at
        self._start()
        return self._seen

    def ask(self, who: str, what: str, work: Callable[[FlowWatch], Any], ended: Ended | None = None) -> Job:
        """Have the thread do something; `done` is set when it has.

        Raises TooMuch if MOST_WAITING jobs are not done, or one of the same kind of the same user.
        """
        job = Job(id=secrets.token_urlsafe(9), who=who, what=what, work=work, done=threading.Event(), ended=ended)
        with self._lock:
            waiting = [one for one in self._jobs.values() if not one.done.is_set()]
            if who and any((one.who, one.what) == (who, what) for one in waiting):
                raise TooMuch("Your earlier request for this flow is still running: wait until it has ended")
            if len(waiting) >= MOST_WAITING:
                raise TooMuch(
                    f"{len(waiting)} requests wait for this flow's clusters, and no more are taken: try again when they"
                    " have ended; the flow's page says whether a cluster does not answer"
                )
            while len(self._jobs) >= KEPT_JOBS:
                self._jobs.pop(next(iter(self._jobs)))
            self._jobs[job.id] = job
        self._asked_at = time.monotonic()
        self._inbox.put(job)
        self._start()
        return job

    def job(self, number: str) -> Job | None:
        """Return a job by its id, as long as it is kept."""
        return self._jobs.get(number)

    def answer(self, key: Key, work: Callable[[FlowWatch], Any], *, fresh_seconds: float, waits: bool = True) -> Answer:
        """Return the last answer to a question about the clusters; an old one is returned while a new one is fetched.

        If it `waits`, that is for a moment, because most answers are there at once. `key` names the question.
        """
        self._start()  # the job may have been given to a thread that was about to end

        def begin(ended: Ended) -> threading.Event:
            try:
                return self.ask("", str(key[0]), work, ended).done
            except TooMuch as error:
                ended(None, str(error))
                done = threading.Event()
                done.set()
                return done

        return self._answers.answer(key, begin, fresh_seconds=fresh_seconds, waits=waits)

    def answer_aside(self, key: Key, work: Callable[[], Any], *, fresh_seconds: float) -> Answer:
        """Return the last answer to a question without a cluster; an old one is returned while a new one is fetched.

        A thread of its own fetches it, so a cluster that is down does not delay it.
        """

        def begin(ended: Ended) -> threading.Event:
            job = Job(id="", who="", what=str(key[0]), work=lambda _: work(), done=threading.Event(), ended=ended)
            if not _ASIDE.acquire(blocking=False):
                ended(
                    None,
                    f"{MOST_ASIDE} requests for files are running, and no more are accepted: try again in a moment",
                )
                job.done.set()
                return job.done

            def aside() -> None:
                try:
                    self._do(job, work)
                finally:
                    _ASIDE.release()

            threading.Thread(target=aside, name="ferry page, aside", daemon=True).start()
            return job.done

        return self._answers.answer(key, begin, fresh_seconds=fresh_seconds)

    def keep_measured(self, before: Watcher) -> None:
        """Take over the measured lag, outages and pauses of an earlier watcher, if it measured the same lane."""
        if self.measures is not None and self.measures == before.measures:
            last = before.last
            self._seen = replace(self._seen, history=last.history, columns=last.columns, spells=last.spells)

    def nudge(self) -> None:
        """Poll now rather than in a few seconds."""
        self._inbox.put(None)

    def renew(self) -> None:
        """Make the connections again and poll, because the logins are others now."""
        self._is_stale = True
        self.nudge()

    def close(self) -> None:
        """End the thread after its present work."""
        self._closed = True
        self._inbox.put(None)

    def _start(self) -> None:
        with self._lock:
            if not self._closed and (not self.is_at_work):
                name = f"ferry page {self._source}->{self._target}"
                self._thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._thread.start()

    def _watch(self) -> FlowWatch:
        return FlowWatch(self._connected(), patience_s=PATIENCE_SECONDS, settings=self._settings)

    def _work(self) -> None:
        watch: FlowWatch | None = None
        try:
            while not self._closed and (time.monotonic() - self._asked_at < AT_REST_SECONDS or not self._inbox.empty()):
                began, computed = time.monotonic(), time.thread_time()
                try:
                    if self._is_stale and watch is not None:
                        watch.close()
                        watch = None
                    self._is_stale = False
                    watch = watch or self._watch()
                    with self._turn(watch), left_uncollected():
                        began = time.monotonic()
                        if not self._closed:
                            self._look(watch)
                except FerryError as error:  # a missing secret or connection
                    self._poll_ended(FlowPoll.hindered(None, {"": error}), (), "")
                except Exception as error:
                    why = self._unforeseen(error, "the page cannot look")
                    self._take(FlowPoll(view=None, lags=None, troubles={}, hindrances=[why]), (), "")
                closely = time.monotonic() < self._close_at + GLANCE_SECONDS
                rest = rest_after(time.monotonic() - began, time.thread_time() - computed, closely=closely)
                self._serve(watch, until=time.monotonic() + rest)
        finally:
            if watch is not None:
                watch.close()
            self._at_rest()

    @contextmanager
    def _turn(self, watch: FlowWatch) -> Iterator[None]:
        """Wait for one of the polls that run at the same time; jobs of this flow do not wait for other flows' polls."""
        while not LOOKING.acquire(timeout=WAIT_SECONDS):
            self._serve(watch, until=0.0)  # does nothing when closed
        try:
            yield
        finally:
            LOOKING.release()

    def _serve(self, watch: FlowWatch | None, until: float) -> None:
        """Do jobs until the next poll is due, or `nudge` asks for one; read older runs meanwhile."""
        resting = 0.0
        while not self._closed:
            now = time.monotonic()
            reading = watch is not None and bool(self._unread) and resting < until
            wake = resting if reading else until
            try:
                job = self._inbox.get(timeout=max(0.0, wake - now))
            except Empty:
                if not reading or watch is None:
                    return
                began = time.monotonic()
                with left_uncollected():
                    self._read_older(watch)
                ended = time.monotonic()
                resting = ended + BACKGROUND * (ended - began)
                continue
            if job is None:
                return
            self._do(job, partial(self._do_with, watch, job))

    def _do_with(self, watch: FlowWatch | None, job: Job) -> Any:
        with_flow = watch or self._watch()
        try:
            with left_uncollected():
                return job.work(with_flow)
        except FerryError as error:  # also while polls succeed: their connections were made with a login that was right
            if may_be_login(error):
                self._in_doubt()
            raise
        finally:
            if watch is None:
                with_flow.close()

    def _do(self, job: Job, work: Callable[[], Any]) -> None:
        try:
            job.answer = work()
        except FerryError as error:
            job.error = str(error)
        except Exception as error:
            job.error = self._unforeseen(error, f"{job.what} for {job.who or 'a page'}")
        finally:
            if job.ended:
                job.ended(job.answer, job.error)
            job.done.set()

    def _unforeseen(self, error: Exception, what: str) -> str:
        """Return the page's text for an unforeseen error that is being handled; the log gets its trace."""
        log.exception("%s, flow %s->%s", what, self._source, self._target)
        return f"unexpected {type(error).__name__} (a bug: its trace is in the API server's log)"

    def _look(self, watch: FlowWatch) -> None:
        poll = watch.look()
        known: tuple[RunDigest, ...] = self._seen.runs
        if poll.view is not None:
            known = self._runs(watch, poll)
        self._poll_ended(poll, known, watch.flow.lane)

    def _poll_ended(self, poll: FlowPoll, runs: tuple[RunDigest, ...], lane: str) -> None:
        self._take(poll, runs, lane)
        if poll.doubts and self._in_doubt():
            self._is_stale = True

    def _in_doubt(self) -> bool:
        """Have the logins brought again; return False if that was done less than RENEW_SECONDS ago."""
        now = time.monotonic()
        if now < self._renew_at:
            return False
        self._renew_at = now + RENEW_SECONDS
        self._doubt()
        return True

    def _runs(self, watch: FlowWatch, poll: FlowPoll) -> tuple[RunDigest, ...]:
        """Return digests of the newest runs.

        Those that this poll leaves out are read before the next, one at a time.
        """
        assert poll.view is not None
        own = poll.view.remembered(watch.flow.lane)[::-1]
        moved, self._end = poll.view.end != self._end, poll.view.end
        # A ledger that was rebuilt, or begun again, gives a generation to another run.
        there = {(run.generation, run.record.run) for run in own}
        self._digests = {at: digest for at, digest in self._digests.items() if (at, digest.run) in there}
        before, self._newest = self._newest, own[0].generation if own else -1
        # The newest run may continue even after it has ended: an operator can resume it. It may also have continued to
        # its end before the next one was opened.
        missing = [
            run
            for run in own[:MOST_RUNS]
            if (known := self._digests.get(run.generation)) is None
            or (moved and (run == own[0] or _may_have_gone_on(known, before)))
        ]
        try:
            for run in [run for run in missing if run in own[:AT_ONCE]]:
                self._read(watch, run)
                missing.remove(run)
            newest = self._digests.get(self._newest)
            if not moved and newest is not None and newest.state is PastState.OPEN:
                self._digests[self._newest] = replace(newest, progress=watch.progress(own[0]))
        except FerryError as error:
            poll.blame(self._target, error)
            self._end, self._newest = -1, before  # what was to be read again still is
        self._unread = missing
        return self._known_runs()

    def _known_runs(self) -> tuple[RunDigest, ...]:
        return tuple(self._digests[at] for at in sorted(self._digests, reverse=True))

    def _read(self, watch: FlowWatch, run: OpenedRun) -> None:
        """Read only one at a time, and keep only a digest: a run may have a million receipts."""
        past = watch.past(run)
        if isinstance(past, PastRun):  # else it was pruned since it was named: the next poll shows that
            self._digests[run.generation] = digest_of(past)

    def _read_older(self, watch: FlowWatch) -> None:
        """Read one more of the unknown runs; the next poll reports troubles."""
        run = self._unread.pop(0)
        try:
            self._read(watch, run)
        except FerryError:
            self._unread.clear()
        except Exception as error:
            self._unforeseen(error, f"the page cannot read run {run.record.run}")
        self._seen = replace(self._seen, number=self._seen.number + 1, runs=self._known_runs())

    def _take(self, poll: FlowPoll, runs: tuple[RunDigest, ...], lane: str) -> None:
        """Make the next snapshot; what could not be read keeps its old value, with its age. `lane`: the flow's own."""
        now, before = wall_ms(), self._seen
        is_same = now - before.looked_ms <= APART_MS  # else whether a cluster answered meanwhile is not known
        since = {one.cluster: one.since_ms for one in before.troubles if is_same}
        hindered = min((one.since_ms for one in before.hindrances), default=now)
        seen = replace(
            before,
            number=before.number + 1,
            looked_ms=now,
            troubles=tuple(
                Trouble(cluster=alias, why=why, since_ms=since.get(alias, now)) for alias, why in poll.troubles.items()
            ),
            hindrances=tuple(Trouble(cluster="", why=why, since_ms=hindered) for why in poll.hindrances),
        )
        if poll.view is not None:
            held, lanes = ledger_parts(poll.view, now)
            own = poll.view.remembered(lane)
            seen = replace(
                seen,
                ledger_ms=now,
                never_ran=not own,
                records_in_ledger=poll.view.end,
                runs=runs,
                known_runs=len(own),
                lanes=lanes,
                pauses=held,
                moved=moved_of(poll.view),
                topics=topic_rows(before.lags, held),
            )
        if poll.lags is not None:
            total, lags = total_of(poll.lags), by_topic(poll.lags)
            rows = topic_rows(lags, seen.pauses)
            apart = apart_of(lags, seen.pauses)
            active, paused = apart if apart else (total, None)
            new = LagPoint(
                at_ms=now,
                records=active.records,
                bytes=active.bytes,
                seconds=active.seconds,
                held=Held(records=paused.records, bytes=paused.bytes, seconds=paused.seconds) if paused else NOT_HELD,
            )
            is_known = active.behind or not active.unknown  # else a chart would show a lag of 0
            seen = replace(
                seen,
                lag_ms=now,
                lags=lags,
                total=total,
                topics=rows,
                history=followed(before.history, new) if is_known else before.history,
                columns=kept(before.columns, column_of(now, lags, before.columns)),
            )
        answered = {self._source: seen.lag_ms, self._target: max(seen.lag_ms, seen.ledger_ms)}
        spells = spells_of(
            before.spells, seen.troubles, seen.pauses, now, looked_ms=before.looked_ms, answered=answered
        )
        self._seen = replace(seen, spells=spells)


def _may_have_gone_on(known: RunDigest, newest: int) -> bool:
    """Return whether a run may have changed since it was read, when `newest` was the newest one."""
    was_at_work = known.generation == newest and known.state is not PastState.SUCCESS
    return was_at_work or known.state is PastState.OPEN


def rest_after(took: float, computed: float, *, closely: bool) -> float:
    """Return the seconds until the next poll, after one that took `took` seconds and computed for `computed`; pure."""
    most = max(GLANCE_SECONDS, computed)
    return min(most, max(LOOK_SECONDS, 10 * took)) if closely else most


class Watchers:
    """The threads of all flows that are polled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[object, ...], Watcher] = {}

    def of(self, key: tuple[object, ...], make: Callable[[], Watcher]) -> Watcher:
        """Return the watcher of a flow.

        `key` begins with the flow's name; one of another configuration file is ended. What it measured stays.
        """
        with self._lock:
            found = self._known.get(key)
            if found is None:
                ended = [self._known.pop(other) for other in [*self._known] if other[0] == key[0]]
                found = self._known[key] = make()
                for other in ended:
                    other.close()
                    found.keep_measured(other)
            return found

    def job(self, number: str) -> Job | None:
        """Return a job of any flow."""
        with self._lock:
            watchers = list(self._known.values())
        return next((job for watcher in watchers if (job := watcher.job(number)) is not None), None)
