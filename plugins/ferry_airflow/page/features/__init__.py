"""What the page has of features: each module has the name of its feature and a `router`, and may have `TABS`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def feature_pages() -> list[ModuleType]:
    """Return the modules in this folder, by name."""
    return [import_module(f"{__name__}.{name}") for name in sorted(one.name for one in iter_modules(__path__))]
