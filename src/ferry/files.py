"""Files that are whole or absent, and the owner's alone; and files of others, read up to a limit.

A new file is written under a name that cannot be predicted, which exists as a new file only. It gets its own name at
the end. So no link is followed, and no other process reads half of it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ferry.errors import BadInput

PRIVATE = 0o600
MOST_BYTES = 1 << 20
"""No key, token or login configuration is longer."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class TooLong(OSError):
    """A file has more bytes than any of its kind has."""


def read_bounded(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file. A device or a pipe has no size, so at most one byte more than `most` is read.

    Raises TooLong for a file of more than `most` bytes, and OSError if it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLong(errno.EOVERFLOW, f"{path.name} has more than {most} bytes")
    return content


def is_full(error: OSError) -> bool:
    """Return whether there was no room: a full disk, a quota that is used up, a limit on the size of files."""
    return error.errno in _NO_ROOM


def write_whole(path: Path, text: str, *, mode: int = PRIVATE, durable: bool = False) -> None:
    """Write `text` to `path`, and replace what has that name; a link itself is replaced, not what it leads to.

    `mode` is narrowed by the umask, as for any new file. With `durable` the file is on the disk when this returns.
    Raises OSError when it cannot be written; then nothing of it is left.
    """
    with draft(path, mode=mode) as (file, made):
        file.write(text.encode())
        file.flush()
        if durable:
            os.fsync(file.fileno())
        made.replace(path)
        if durable:
            sync_folder(path.parent)


@contextmanager
def new_file(path: Path, *, mode: int = PRIVATE, name: str = "") -> Iterator[IO[bytes]]:
    """Provide the content of a new file. It is at `path`, and on the disk, when the block has ended without an error.

    `name` is the user's name for it. Raises BadInput if `path` is taken, by a link too, or if it cannot be written;
    also for an OSError of the block.
    """
    try:
        with draft(path, mode=mode) as (file, made):
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))  # a rename alone replaces what is there
            made.replace(path)
            sync_folder(path.parent)
    except OSError as error:
        raise _not_new(path, name, error.strerror) from None


def refuse_taken(path: Path, *, name: str = "") -> None:
    """Raise BadInput if `new_file` would, as far as that can be found out without writing."""
    if os.path.lexists(path):
        raise _not_new(path, name, os.strerror(errno.EEXIST))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _not_new(path, name, _why_closed(path.parent))


def _why_closed(folder: Path) -> str | None:
    """Return why no file may be made in a folder, in the words of the system."""
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except OSError as error:
        return error.strerror
    return os.strerror(errno.EACCES if is_folder else errno.ENOTDIR)


def _not_new(path: Path, name: str, why: str | None) -> BadInput:
    said = no_folder(path) or f"{why}; name a new file"
    return BadInput(f"{name or path}: cannot be written: {said}")


def no_folder(path: Path) -> str | None:
    """Return what is wrong, and what to do, if the folder of a file does not exist; None if it does, or may."""
    try:
        path.parent.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return f"folder {path.parent} does not exist; create it, or name another"
    except OSError:  # a folder above it is closed to this user
        pass
    return None


@contextmanager
def draft(path: Path, *, mode: int = PRIVATE) -> Iterator[tuple[IO[bytes], Path]]:
    """Provide an empty file next to `path`, open for writing, and its path; it is removed unless the block renames it.

    `mode` is narrowed by the umask. Raises OSError.
    """
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        try:
            yield file, made
        finally:
            with suppress(OSError):
                made.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Put the names in a folder on the disk, too, for files that were made or renamed in it."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
