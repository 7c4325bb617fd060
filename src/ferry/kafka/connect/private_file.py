"""Secrets for libraries that read them from files only."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """Provide a path to `content` for libraries that read only files.

    On Linux the file is in memory; elsewhere it is one that only we may read.
    """
    if sys.platform == "linux":
        descriptor = os.memfd_create("ferry")
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            yield f"/proc/{os.getpid()}/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory() as folder:  # mode 0700
            path = Path(folder) / "ferry"
            path.write_bytes(content)
            yield str(path)
