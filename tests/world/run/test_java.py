"""Which Java is here, by what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.jvm import java_version


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", 17),
        ("echo 'java version \"1.8.0_412\"' >&2", 8),
        ("echo 'openjdk version \"25\"'", 25),
        ("echo 'version \"17\"' >&2; exit 1", None),
        ("echo nothing", None),
    ],
)
def test_the_major_version_of_java(
    script: str, found: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() == found


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_version() is None
