"""Pages about features: each module has the name of its feature, a `router`, and the `TABS` of a flow's pages."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ferry.registry import FEATURES


def feature_pages() -> list[ModuleType]:
    """Return the modules of the features that answer questions of the page (`ferry.registry`, `page`)."""
    return [import_module(f"{__name__}.{name}") for name, feature in FEATURES.items() if feature.page]
