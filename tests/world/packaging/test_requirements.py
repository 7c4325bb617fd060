"""What is declared leaves an installation its own versions; what is tested is pinned in constraints.txt alone."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

CHECKOUT = Path(__file__).parents[3]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[Requirement]] = {
    name: [Requirement(text) for text in texts]
    for name, texts in {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}.items()
}
PINNED = {"pyspark", "pyspark-client"}
"""pyproject.toml says of each why."""


def versions() -> dict[str, Version]:
    """The versions of constraints.txt."""
    lines = (line.partition("#")[0].strip() for line in (CHECKOUT / "constraints.txt").read_text().splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {canonicalize_name(name): Version(version) for name, version in pairs}


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_is_tested_is_allowed_and_exact_versions_have_a_reason(extra: str) -> None:
    for wanted in EXTRAS[extra]:
        name = canonicalize_name(wanted.name)
        if name == canonicalize_name(PROJECT["name"]):
            continue
        assert versions()[name] in wanted.specifier, f"{wanted} of [{extra}] is not what constraints.txt has"
        exact = any(part.operator in {"==", "===", "~="} for part in wanted.specifier)
        assert exact == (name in PINNED), f"{wanted} of [{extra}]"


def test_an_existing_airflow_stays() -> None:
    for wanted in EXTRAS["airflow"]:
        version = versions()[canonicalize_name(wanted.name)]
        assert f"{version.major}.{version.minor}.{version.micro + 1}" in wanted.specifier
        assert f"{version.major}.{version.minor + 1}.0" in wanted.specifier
        assert f"{version.major + 1}.0.0" not in wanted.specifier
        assert f"{version.major}.{version.minor - 1}.0" not in wanted.specifier, "older than what is tested"


def test_what_is_vendored_is_what_was_looked_at() -> None:
    """Idiomorph 0.8.0, dist/idiomorph.min.js; NOTICE names it."""
    file = CHECKOUT / "plugins/ferry_airflow/page/static/idiomorph.min.js"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert digest == "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96"
    assert digest in (CHECKOUT / "NOTICE").read_text()
