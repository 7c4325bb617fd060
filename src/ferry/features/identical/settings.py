"""The settings of identical offsets."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey

TRANSLATED = "translated"
"""Records get the target's next offsets, and Ferry translates."""
KEPT = "identical"
"""Records get the offsets that they have at the source, or the partition is refused."""

OFFSETS = FerryKey(
    name="ferry.offsets",
    default=TRANSLATED,
    values="`translated` or `identical`",
    meaning="which offsets records get at the target; `identical`: those of the source, and what cannot have them is "
    "refused ([identical offsets](identical-offsets.md))",
)
MAY_LOSE = FerryKey(
    name="ferry.offsets.may.lose",
    default="false",
    values="`true` or `false`",
    meaning="with `ferry.offsets = identical`: whether the target may be able to lose acknowledged records; for tests "
    "on one broker ([identical offsets](identical-offsets.md#what-the-target-needs))",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdenticalSettings(FeatureSettings):
    """What the file says of offsets."""

    offsets: str = setting(OFFSETS, values.one_of((TRANSLATED, KEPT)))
    may_lose: bool = setting(MAY_LOSE, values.boolean)
    """Whether a target that may lose acknowledged records is taken: records can then get other offsets."""

    def digested(self) -> object | None:
        """Return what changes the copies; None at the default."""
        return None if self.offsets == TRANSLATED else self.offsets
