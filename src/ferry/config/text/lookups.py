"""What references to config providers are on this machine: variables and files.

Sources: Kafka's `EnvVarConfigProvider`, `FileConfigProvider`, `DirectoryConfigProvider` (KIP-297, 421).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ferry.config.text.properties import parse
from ferry.config.text.secrets import Limits, ProviderKind, wrong_reference
from ferry.files import read_bounded
from ferry.words import has_utf8


def look_up(key: str, kind: ProviderKind, limits: Limits, reference: re.Match[str]) -> str:
    """Return the text of a reference on this machine: a variable, a line of a file, or a whole file.

    Raises BadInput, naming `key` and the reference, when it is missing or not allowed.
    """
    path, name = reference.group(2) or "", reference.group(3)
    if not name:
        example = "${env:NAME}" if kind is ProviderKind.ENV else f"${{{reference.group(1)}:{path or '/path'}:name}}"
        raise wrong_reference(key, f"{reference.group()} names nothing to look up; write {example}")
    if kind is ProviderKind.ENV:
        if path:
            why = f"{reference.group()} has more than a variable's name, and defaults are not known"
            raise wrong_reference(key, f"{why}; write ${{env:{path}}}")
        if limits.allowlist is not None and not limits.allowlist.fullmatch(name):
            raise wrong_reference(
                key,
                f"{reference.group()} is outside of the provider's allowlist.pattern; widen it or rename the variable",
            )
        value = os.environ.get(name)
        if value is None:
            raise wrong_reference(key, f"{reference.group()} names an environment variable that is not set; set {name}")
        if not has_utf8(value):
            raise wrong_reference(key, f"{reference.group()} has bytes that are not UTF-8; set {name} in UTF-8")
        return value
    if limits.allowed_paths is not None and not _is_allowed(path, limits.allowed_paths):
        why = f"{reference.group()} is outside of the provider's allowed.paths; add the folder there"
        raise wrong_reference(key, why)
    try:
        if kind is ProviderKind.DIRECTORY:
            if Path(name).name != name:
                raise wrong_reference(key, f"{reference.group()} leaves the directory {path}; write a plain file name")
            return _content(Path(path) / name)
        text = _content(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise wrong_reference(
            key, f"{reference.group()} cannot be read: {reason}; correct the path or its permissions"
        ) from None
    found = {entry.key: entry.value for entry in parse(text, path)}
    if name not in found:
        raise wrong_reference(key, f"{reference.group()} names no entry of {path}; add {name} = ... to that file")
    return found[name]


def _content(path: Path) -> str:
    """Return the text of a file, with each end of a line as a newline. Raises OSError or UnicodeDecodeError."""
    return read_bounded(path).decode().replace("\r\n", "\n").replace("\r", "\n")


def _is_allowed(path: str, allowed: tuple[Path, ...]) -> bool:
    """Return whether a path is one of the allowed ones or below one, by its name and where its links lead.

    Kafka's `AllowedPaths` checks names alone, so that a link within a folder leads out of it.
    """
    plain, real = Path(os.path.normpath(path)), Path(os.path.realpath(path))
    return any(plain.is_relative_to(one) and real.is_relative_to(os.path.realpath(one)) for one in allowed)
