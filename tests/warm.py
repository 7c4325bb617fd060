"""A process that has Ferry imported and forks for every command: one costs a tenth of what a new interpreter does.

It reads requests from the Unix socket whose descriptor is its argument, and ends with the one who asks. Each brings
the command's arguments, environment and folder, the module that is the program, and descriptors: for standard output,
for standard error, and a socket that gets the number of the command's process and, when that has ended, its exit code,
a line each.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import time
from typing import Any

import ferry.program

MESSAGE = 1 << 20
APART = (
    "ferry.spark",
    "ferry.run.spark",
    "ferry.features.records.spark",
    "ferry.features.sink.spark",
    "ferry.features.verify.spark",
    "ferry.dev",
    "ferry.testing",
    "ferry.features.archive.acts.parquet",
    "ferry.features.evidence.acts.charts",
)
"""What is not imported beforehand: few commands need it, and pyarrow and numpy start threads, which do not fork."""


def main(requests: socket.socket) -> int:
    """Serve until nobody asks any more; in a command's process, be the command."""
    for module in pkgutil.walk_packages(ferry.__path__, "ferry."):
        if not module.name.startswith(APART) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ferry.program.program()
    gc.freeze()  # no command's end need look through all this
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, MESSAGE, 3)
        while _has_ended():
            pass
        if not message:
            return 0
        if os.fork():
            for one in descriptors:
                os.close(one)
            continue
        requests.close()
        out, err, answers = descriptors
        child = os.fork()
        if child:
            _report(socket.socket(fileno=answers), child)
            os._exit(0)
        os.close(answers)
        request = json.loads(message)
        _become(request, out, err)
        importlib.import_module(request["program"]).main()


def _has_ended() -> bool:
    """Whether one of those that reported has, which is then forgotten."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _report(answers: socket.socket, child: int) -> None:
    answers.sendall(b"%d\n" % child)
    _, status = os.waitpid(child, 0)
    answers.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(request: dict[str, Any], out: int, err: int) -> None:
    """Take on what a new process would have had from the one that starts it, in a session of its own."""
    os.setsid()
    for ours, theirs in ((out, 1), (err, 2)):
        os.dup2(ours, theirs)
        os.close(ours)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()
    sys.argv = ["ferry", *request["arguments"]]


if __name__ == "__main__":
    sys.exit(main(socket.socket(fileno=int(sys.argv[1]))))
