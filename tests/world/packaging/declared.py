"""The libraries that a wheel declares, lent by this environment: those, what they need in turn, and no others."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name


def requirements(wheel: Path, *extras: str) -> list[Requirement]:
    """What the wheel requires by its metadata, with these extras."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = {name for name in archive.namelist() if name.endswith(".dist-info/METADATA")}
        folder = zipfile.Path(archive, metadata.removesuffix("METADATA"))
        return _wanted(PathDistribution(folder), ("", *extras))


def closure(wanted: Iterable[Requirement]) -> list[Distribution]:
    """The installed distributions that the requirements name, and all that these require."""
    found: dict[NormalizedName, Distribution] = {}
    seen: set[tuple[NormalizedName, str]] = set()
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = [extra for extra in ("", *requirement.extras) if (name, extra) not in seen]
        if extras:
            seen.update((name, extra) for extra in extras)
            found[name] = distribution(name)
            waiting += _wanted(found[name], extras)
    return list(found.values())


def lend(lent: Iterable[Distribution], site: Path) -> None:
    """Link every file of the distributions, but their commands, into the site-packages of another environment."""
    for library in lent:
        for file in library.files or ():
            place = site / file
            if ".." in file.parts or place.is_symlink():  # pyspark and pyspark-client have files in common
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(str(library.locate_file(file)))


def _wanted(library: Distribution, extras: Iterable[str]) -> list[Requirement]:
    texts = [Requirement(text) for text in library.requires or ()]
    return [
        requirement
        for requirement in texts
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
    ]
