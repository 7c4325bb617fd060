"""A program that a test needs and this machine lacks is named, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import commands


def test_a_missing_promtool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.fail.Exception, match=r"promtool is missing: .*make prerequisites"):
        commands.promtool("check", "metrics")


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.fail.Exception, match=r"No java command found: .*make prerequisites"):
        commands.compile_java(tmp_path / "A.java", class_path="", into=tmp_path)


def test_a_java_without_a_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What Java itself says of a module that it lacks."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    said = "java.lang.module.FindException: Module jdk.compiler not found"
    java.write_text(f"#!/bin/sh\necho '{said}'; exit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="has no compiler: install a JDK"):
        commands.compile_java(tmp_path / "A.java", class_path="", into=tmp_path)
