"""Files that are whole or absent."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_full(error: OSError) -> bool:
    """Return whether there was no room: a full disk, a quota that is used up, a limit on the size of files."""
    return error.errno in _NO_ROOM


def write_whole(path: Path, text: str, *, mode: int = 0o666, durable: bool = False) -> None:
    """Write `text` to `path` through a rename, so that a reader never sees half of it.

    `mode` is narrowed by the umask, as for any new file. With `durable` the file is on the disk when this returns.
    Raises OSError when it cannot be written; then nothing of it is left.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def new_draft(path: Path, what: str) -> Path:
    """Make an empty file next to `path`, with a name that cannot be predicted, readable by its owner alone.

    Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=f".{what}", dir=path.absolute().parent)
    os.close(descriptor)
    return Path(name)


def sync_folder(path: Path) -> None:
    """Put the names in a folder on the disk, too, for files that were made or renamed in it."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
