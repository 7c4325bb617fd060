"""Where reports of drills and switches go, which key signs them, and the goals for their figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferry.config.text.secrets import ClientProperties, Providers

KEY = "ferry.report.private.key"
PASSWORD = "ferry.report.private.key.password"
FOLDER = "ferry.report.dir"
DIRS = "ferry.report.dirs"
PDF = "ferry.report.pdf"

NOTHING = ClientProperties(values_by_key={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportConfig:
    """Where reports go: `folder` is a path or a URL, and `is_named` whether the file sets it.

    `with_pdf` is whether each report is written as PDF, too.

    `rto_seconds` None: no goal. `dirs` are the other places that a form may name.
    """

    folder: str = "ferry-reports"
    is_named: bool = False
    dirs: tuple[str, ...] = ()
    with_pdf: bool = False
    signing: ClientProperties = NOTHING
    """The key and its password as written, unresolved."""
    rto_seconds: int | None = None
    providers: Providers = field(default_factory=Providers, repr=False, compare=False)

    def key(self) -> Mapping[str, str]:
        """Return key and password, secrets resolved. Raises BadInput when one cannot be resolved."""
        return self.providers.resolve_all(self.signing)


def local_path(place: str) -> Path | None:
    """Return the path of a place on this machine; None where it is a URL of another scheme than `file`."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return Path(place)
    return Path(rest) if scheme == "file" else None
