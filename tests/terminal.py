"""Run a program at a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path

from tests.program import environment
from tests.tiers import ANSWER_S

WIDTH = 80
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def at_a_terminal(command: Sequence[str | Path], **variables: str) -> str:
    """What the command writes to a terminal of 80 columns, as one stream."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    env = {**environment(), "TERM": "xterm-256color", **variables}
    env.pop("COLUMNS", None)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=other, stderr=other, env=env)
    os.close(other)
    found = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # Linux says so when the last writer has left
            break
        if not part:
            break
        found += part
    os.close(main)
    process.wait(timeout=2 * ANSWER_S)
    return found.decode().replace("\r\n", "\n")
