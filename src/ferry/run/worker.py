"""A worker of a run: a process, or a thread, that copies one slot after the other as its parent sends them.

It imports nothing that plans or reads a file: a worker process starts sooner for it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue

from ferry.copy.slot_end import SlotEnd, end_of
from ferry.copy.task import SlotTask, run_slot
from ferry.errors import FerryError
from ferry.model import Receipt
from ferry.protocol.slot import SlotProgress

log = logging.getLogger(__name__)

STOP_SECONDS = 15.0
"""How long a worker that was asked to stop may take to end its open chunk; a healthy cluster needs about one."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that are blocked while a worker process starts, until it can handle them."""

STOP = None
"""What the parent sends, instead of a slot, to end the open chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a worker sends after each chunk."""

    receipts: list[Receipt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a worker sends when a slot has ended."""

    end: SlotEnd


def serve_apart(pipe: Connection, log_levels: dict[str, int]) -> None:
    """Run a worker process. Ctrl-C in the terminal is left to the parent; SIGTERM ends the open chunk."""
    stop, done = threading.Event(), threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    for name, level in log_levels.items():
        logging.getLogger(name).setLevel(level)

    def watch() -> None:
        stop.wait()
        if not done.wait(STOP_SECONDS):
            os._exit(1)  # the parent is gone or waits no longer; the next run fences the open transaction

    threading.Thread(target=watch, daemon=True).start()
    serve(pipe, stop)
    done.set()


def serve(pipe: Connection, stop: threading.Event) -> None:
    """Copy one slot after the other as the parent sends them, until it closes the pipe."""
    inbox: SimpleQueue[SlotTask | None] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                message = pipe.recv()
                if message is STOP:
                    stop.set()
                else:
                    inbox.put(message)
        except (EOFError, OSError):
            stop.set()
            inbox.put(None)

    threading.Thread(target=listen, daemon=True).start()
    try:
        while (spec := inbox.get()) is not None:
            pipe.send(_copied(spec, stop, pipe))
    except OSError:
        log.debug("the parent is gone")
    finally:
        pipe.close()


def _copied(spec: SlotTask, stop: threading.Event, pipe: Connection) -> Ended:
    def committed(receipts: list[Receipt]) -> None:
        try:
            pipe.send(Committed(receipts=receipts))
        except OSError:
            stop.set()  # the parent is gone; what is committed is in the ledger

    progress = SlotProgress()
    failure: FerryError | None = None
    try:
        run_slot(spec, stop.is_set, committed, progress)
    except FerryError as error:
        failure = error
    except Exception as error:
        log.exception("slot %d of run %s", spec.ref.slot, spec.ref.run)
        failure = FerryError(f"unexpected {type(error).__name__}: {error} (a bug: its trace is in the log)")
    return Ended(end=end_of(spec.ref.slot, progress, failure))
