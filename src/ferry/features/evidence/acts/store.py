"""The stores for reports: a folder of this machine, or an object store through fsspec.

A file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import urlsplit

from ferry.config.flow.report import FOLDER
from ferry.config.text.secrets import shown_address
from ferry.errors import BadInput, Refused
from ferry.files import draft, is_full, read_bounded, sync_folder

MAX_REPORT_BYTES = 128 * 1024 * 1024
"""No report of 100,000 partitions is that long; other processes may write to the folder, too."""
ALONE: Mapping[str, bytes] = MappingProxyType({})
"""For a file without others that belong to it."""


class Store(Protocol):
    """A flat folder of small files. Each method raises OSError as the file system does."""

    where: str

    def exists(self) -> bool:
        """Return whether the folder exists."""

    def names(self) -> list[str]:
        """Return the names of the files; empty if the folder does not exist."""

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError if there is none."""

    def create(self, name: str, content: bytes, beside: Mapping[str, bytes] = ALONE) -> None:
        """Write a new file and those that belong to it (`beside`), durably. Raises FileExistsError if it exists.

        In that case, and if a disk of this machine is full, none of the files is written.
        """

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, and replace the one that may exist."""

    def delete(self, name: str) -> None:
        """Remove a file."""


def store_of(folder: str) -> Store:
    """Return the store of a path or URL. Raises BadInput if this installation does not have the URL's scheme."""
    scheme, separator, rest = folder.partition("://")
    if not separator:
        return LocalStore(Path(folder))
    if scheme == "file":
        return LocalStore(Path(rest))
    return _ObjectStore(folder)


def check_writable(store: Store) -> None:
    """Write a small file and remove it again. Raises Refused, with the remedy, if that fails."""
    probe = f".probe-{secrets.token_hex(8)}"
    try:
        store.names()
        store.create(probe, b"a report may be written here\n")
        store.delete(probe)
    except OSError as error:
        raise Refused(
            f"reports cannot be written to {store.where} ({reason(error)}), so nothing was begun: {remedy(error)}, or"
            f" name another folder as {FOLDER}"
        ) from error


def reason(error: OSError) -> str:
    """Return why a store failed, in a few words."""
    return error.strerror or str(error) or type(error).__name__


def remedy(error: OSError) -> str:
    """Return the remedy for a store that takes no file."""
    return "make room there" if is_full(error) else "make it writable"


def why_unwritten(error: OSError) -> str:
    """Return why a report was not written, with the remedy."""
    return f"{reason(error)}; {remedy(error)}, or name another folder"


class LocalStore:
    """A folder, created with the first write. Its files are readable by its group, not by all users."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)

    def exists(self) -> bool:
        """Return whether the folder exists; True if that is not known."""
        try:
            self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # not known to be absent: reading it raises the reason
            return True
        return True

    def names(self) -> list[str]:
        """Return the names of the files; empty if the folder does not exist."""
        try:
            return sorted(entry.name for entry in self._path.iterdir() if entry.is_file())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError if there is none, and TooLong for no report."""
        return read_bounded(self._path / name, MAX_REPORT_BYTES)

    def create(self, name: str, content: bytes, beside: Mapping[str, bytes] = ALONE) -> None:
        """Write a new file and those that belong to it, with fsync. Raises FileExistsError if it exists."""
        with contextlib.ExitStack() as drafts:
            made = drafts.enter_context(self._written(content))
            others = {each: drafts.enter_context(self._written(body)) for each, body in beside.items()}
            os.link(made, self._path / name)  # a rename would replace an existing file
            for each, draft in others.items():
                draft.replace(self._path / each)
        sync_folder(self._path)

    def replace(self, name: str, content: bytes) -> None:
        """Write a file with fsync, and replace the one that may exist."""
        with self._written(content) as made:
            made.replace(self._path / name)
        sync_folder(self._path)

    def delete(self, name: str) -> None:
        """Remove a file."""
        (self._path / name).unlink()

    @contextlib.contextmanager
    def _written(self, content: bytes) -> Any:
        self._path.mkdir(parents=True, exist_ok=True)
        with draft(self._path / "report", mode=0o640) as (file, made):
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            yield made


class _ObjectStore:
    """Objects under a URL. One put makes an object whole, and the store refuses a second one of the same name."""

    def __init__(self, url: str) -> None:
        # A user without a password may be a container of Azure.
        self.where = shown_address(url) if urlsplit(url).password else url
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra: only who keeps reports in an object store has it
        except ImportError:
            raise BadInput(
                f"{FOLDER} {self.where} needs the package fsspec, and the one for its scheme: install"
                " ferry-replicator[reports], or name a folder of this machine"
            ) from None
        try:
            self._fs, self._path = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise BadInput(f"{FOLDER} {self.where}: {error}; install that package, or name another folder") from None
        except OSError as error:  # some file systems connect at once
            raise BadInput(f"{FOLDER} {self.where}: {reason(error)}; correct it, or name another folder") from None

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return bool(_asked(lambda: self._fs.exists(self._path)))

    def names(self) -> list[str]:
        """Return the names of the objects; empty if the folder does not exist."""
        try:
            found = _asked(lambda: self._fs.ls(self._path, detail=False))
        except FileNotFoundError:
            return []
        return sorted(str(path).rpartition("/")[2] for path in found)

    def read(self, name: str) -> bytes:
        """Return the content of an object. Raises FileNotFoundError if there is none."""
        return bytes(_asked(lambda: self._fs.cat_file(self._at(name))))

    def create(self, name: str, content: bytes, beside: Mapping[str, bytes] = ALONE) -> None:
        """Write a new object, and after it those that belong to it. Raises FileExistsError if it exists."""
        path = self._at(name)
        try:
            _asked(lambda: self._fs.pipe_file(path, content, mode="create"))
        except OSError as error:
            # s3fs recognises a failed condition only if the store names it (AWS). With MinIO it is an EINVAL like
            # others.
            if error.errno == errno.EINVAL and _asked(lambda: self._fs.exists(path)):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
            raise
        for each, body in beside.items():
            self.replace(each, body)

    def replace(self, name: str, content: bytes) -> None:
        """Write an object, and replace the one that may exist."""
        _asked(lambda: self._fs.pipe_file(self._at(name), content))

    def delete(self, name: str) -> None:
        """Remove an object."""
        _asked(lambda: self._fs.rm_file(self._at(name)))

    def _at(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


def _asked(action: Callable[[], Any]) -> Any:
    """Return the answer of an object store, and raise its own errors, of any class, as OSError."""
    try:
        return action()
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
