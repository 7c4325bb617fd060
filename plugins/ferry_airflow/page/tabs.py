"""The tabs of a flow's pages. A module with routes names its own as `TABS`, next to its `router`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A tab; `shown_page` gets its name. Tabs are in the order of their places."""

    place: int
    name: str
    path: str = ""
    """Its path within the flow's; empty: its name."""

    @property
    def link(self) -> str:
        """The path, with the slash at its beginning."""
        return self.path or f"/{self.name}"


def tabs_of(modules: Iterable[ModuleType]) -> tuple[Tab, ...]:
    """Return the tabs of all modules, in their order on the page."""
    return tuple(sorted((tab for one in modules for tab in getattr(one, "TABS", ())), key=lambda tab: tab.place))
