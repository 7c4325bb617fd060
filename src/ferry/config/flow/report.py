"""Where reports of drills and switches go, who signs them, and what the figures in them are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.text.secrets import ClientProperties, Providers

KEY = "ferry.report.private.key"
PASSWORD = "ferry.report.private.key.password"
FOLDER = "ferry.report.dir"

NOTHING = ClientProperties(values_by_key={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportConfig:
    """`folder` is a path or a URL, `is_named` whether the file says which. `rto_seconds` None: no goal."""

    folder: str = "ferry-reports"
    is_named: bool = False
    signing: ClientProperties = NOTHING
    """The key and its password as written, unresolved."""
    rto_seconds: int | None = None
    providers: Providers = field(default_factory=Providers, repr=False, compare=False)

    def key(self) -> Mapping[str, str]:
        """Key and password, secrets resolved; BadInput when one cannot be looked up."""
        return self.providers.resolve_all(self.signing)
