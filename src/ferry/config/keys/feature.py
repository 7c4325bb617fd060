"""The settings of a feature: keys of the properties file with their types, declared in the feature's folder.

`ferry.registry` has the place of each class. `FlowConfig.of` returns its values for a flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import Any, Self, TypeVar

from ferry.config.keys.key import FerryKey
from ferry.registry import parts_of

T = TypeVar("T")

Read = Callable[[str, Callable[[str], Any]], Any]
"""Takes the name of a key and what converts its text; returns the value for a flow, or the default after an error."""

_KEY, _CONVERT = "key", "convert"


def setting(key: FerryKey, convert: Callable[[str], T], *, shown: bool = True) -> T:
    """Declare a field of FeatureSettings: `convert` makes its value from the text of a line, or raises BadValue.

    `shown`: whether the repr has the value, which may hold a secret.
    """
    made: T = field(default_factory=partial(convert, key.default), metadata={_KEY: key, _CONVERT: convert}, repr=shown)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSettings:
    """The base of a feature's settings. Each field is declared with `setting`."""

    @classmethod
    def own_keys(cls) -> tuple[FerryKey, ...]:
        """Return the keys, in the order of the fields."""
        return tuple(one.metadata[_KEY] for one in fields(cls) if _KEY in one.metadata)

    @classmethod
    def read(cls, value: Read) -> Self:
        """Return the settings of a flow."""
        own = (one for one in fields(cls) if _KEY in one.metadata)
        return cls(**{one.name: value(one.metadata[_KEY].name, one.metadata[_CONVERT]) for one in own})

    def digested(self) -> object | None:
        """Return what the digest of the flow has of them, as JSON; None: nothing.

        It is what changes the copies. At its defaults it is None, so that files without the keys keep their digest.
        """
        return None

    @property
    def least_slots(self) -> int:
        """How many slots a run needs at least, however small `tasks.max` is."""
        return 1

    def without_effect(self, flow: Any) -> Mapping[str, str]:
        """Return, by the names of keys, why their lines have no effect in a flow with these settings, a FlowConfig."""
        return {}

    def refused(self, flow: Any) -> Mapping[str, str]:
        """Return, by the names of keys, why their lines are wrong in a flow with these settings, a FlowConfig."""
        return {}

    def placed(self, where: Callable[[str], str]) -> Self:
        """Return the settings with the places of their lines: `where` returns file, line and key of a key's name."""
        return self

    def reads_target_settings(self) -> str:
        """Return for what a run must read the settings of the target's topics and brokers; empty: it need not."""
        return ""

    def deletes_target_records(self) -> str:
        """Return for what a run deletes records of the target's topics (DeleteRecords); empty: it does not."""
        return ""

    def writes_markers(self) -> str:
        """Return for what a run writes markers to the target's topics (WriteTxnMarkers); empty: it does not."""
        return ""


@cache
def feature_settings() -> dict[str, type[FeatureSettings]]:
    """Return the settings of all features, by feature."""
    return parts_of("settings")


def feature_keys() -> tuple[FerryKey, ...]:
    """Return the keys of all features."""
    return tuple(key for kind in feature_settings().values() for key in kind.own_keys())
