"""The text of a transform's function: its module, and the modules of the same place that this one imports.

A change of any of them makes another transform. Modules that are installed for all programs are not followed: the
standard library, PySpark, packages of others. Only modules of the function's own package are followed, and those of the
folder or zip that it was found in. That folder does not count if Python's packages are installed in it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from ferry.errors import BadInput

_FOR_ALL = frozenset(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
"""The folders of Python's own modules and of installed packages."""


def text_digest(path: str, call: Callable[..., Any]) -> str:
    """Return the SHA-256 (hexadecimal) of the texts of all modules of a function; `path` is `package.module:function`.

    The texts are sorted by module name. Imports inside functions are followed, too; imports whose name is built at run
    time are not. Raises BadInput if one of the texts cannot be read.
    """
    own = {path.partition(":")[0], _written_in(call)}
    tops = {name.partition(".")[0] for name in own}
    places = {place for place in map(_place_of, tops) if place is not None}
    texts: dict[str, str] = {}
    left = sorted(own)
    while left:
        name = left.pop()
        top = name.partition(".")[0]
        if name in texts or not (top in tops or _place_of(top) in places):
            continue
        spec = _spec_of(name)
        if name not in own and (spec is None or spec.origin is None):  # a function, or a folder without __init__.py
            continue
        text = None if spec is None else _bytes_of(spec)
        if spec is None or text is None:
            raise _unreadable(path, name)
        texts[name] = hashlib.sha256(text).hexdigest()
        left += _parents(name)
        left += _imports(text, spec)
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def _written_in(call: Callable[..., Any]) -> str:
    """Return the module that has the function's text, also for a function wrapped by a decorator or a `partial`."""
    while isinstance(call, partial):
        call = call.func
    return str(getattr(inspect.unwrap(call), "__module__", "") or getattr(call, "__module__", ""))


def _spec_of(name: str) -> ModuleSpec | None:
    """Return how Python finds a module; None if it does not. This imports the module's parents."""
    found = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(found, ModuleSpec):
        return found
    try:
        return importlib.util.find_spec(name)
    except Exception:  # a package may raise anything when it is imported: the function does without it
        return None


def _place_of(top: str) -> Path | None:
    """Return the folder or zip that a module was found in; None if it is for all programs, or was not found."""
    spec = _spec_of(top)
    if spec is None:
        return None
    inside = list(spec.submodule_search_locations or ())
    if not inside and not spec.has_location:
        return None
    place = Path(inside[0] if inside else str(spec.origin)).parent.resolve()
    return None if place in _FOR_ALL or place.name in ("site-packages", "dist-packages") else place


def _bytes_of(spec: ModuleSpec) -> bytes | None:
    if spec.origin is None or not spec.has_location:
        return None
    read = getattr(spec.loader, "get_data", None)  # loaders of folders and of zips have it, as --py-files uses them
    try:
        return None if read is None else bytes(read(spec.origin))
    except OSError:
        return None


def _parents(name: str) -> Iterator[str]:
    """Yield the packages around a module: Python executes them before the module."""
    while name := name.rpartition(".")[0]:
        yield name


def _imports(text: bytes, spec: ModuleSpec) -> Iterator[str]:
    """Yield the names in a module's imports that may be modules; nothing if the text is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    package = spec.name if spec.submodule_search_locations is not None else spec.parent
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:
                continue
            yield base
            yield from (f"{base}.{one.name}" for one in node.names)


def _unreadable(path: str, module: str) -> BadInput:
    return BadInput(
        f"the text of {path} cannot be read (module {module}), and is a part of the transform, so that a change of it "
        "is seen: put the function into a module of its own, in a folder or a zip"
    )
