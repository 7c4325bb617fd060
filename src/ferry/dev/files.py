"""Small JSON files that are whole or absent, and the lock on a folder."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ferry.errors import BadInput
from ferry.files import write_whole


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` to `path` by a rename, so that a reader never gets half of it."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object at `path`, or None when there is no such file.

    Raises:
        BadInput: the file is not a JSON object.
    """
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read ({error.strerror}): correct --home, or the rights of its files"
        ) from error
    except ValueError as error:
        raise BadInput(f"{path} is damaged ({error}): delete it once no broker of it runs") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} does not hold a JSON object: delete it once no broker of it runs")
    return content


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` (created when missing), so that two commands do not start or stop the same brokers."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        why = f"--home {folder} cannot be used as a folder ({error.strerror}): correct it, or its rights"
        raise BadInput(why) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
