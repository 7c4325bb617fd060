"""A program that a test needs and this machine lacks is named, with the remedy; `make test` runs the other tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import commands
from tests.golden import Golden

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "system_packages.sh"


def program(folder: Path, name: str, text: str) -> None:
    """A command of a shell's text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("user", "apt"), [(1000, "exit 0"), (0, None), (0, "exit 100")], ids=["user", "other", "fails"]
)
def test_what_cannot_be_installed_is_named_and_the_tests_run(tmp_path: Path, user: int, apt: str | None) -> None:
    """As no root, on a system without apt-get, and without a network."""
    program(tmp_path, "id", f"echo {user}")
    if apt is not None:
        program(tmp_path, "apt-get", apt)
    ls = shutil.which("ls")
    assert ls is not None
    (tmp_path / "ls").symlink_to(ls)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, SCRIPT, sys.executable], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    named = done.stderr.partition(":")[2].split()
    assert {"prometheus", "fish", "zsh", "docker-compose", "chromium"} <= {*named}


def test_without_the_library_for_kerberos_make_goes_on_and_tries_again(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", ".venv/.installed"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    program(tmp_path, "tools/system_packages.sh", "exit 0")
    program(tmp_path, ".venv/bin/python", "exit 1")
    make = [commands.installed("make", "make"), ".venv/.kerberos"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(make, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gssapi" in done.stderr
    assert not (tmp_path / ".venv" / ".kerberos").exists()
    program(tmp_path, ".venv/bin/python", "exit 0")
    subprocess.run(make, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / ".venv" / ".kerberos").exists()


def test_a_missing_library_for_kerberos_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(pytest.fail.Exception) as caught:
        commands.gssapi()
    golden(str(caught.value))


def test_a_missing_promtool_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.fail.Exception) as caught:
        commands.promtool("check", "metrics")
    golden(str(caught.value))


def test_a_missing_keytool_is_named(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.fail.Exception) as caught:
        commands.keytool("-list")
    golden(str(caught.value))


def test_the_keytool_of_java_home_is_the_first_and_that_of_the_path_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, path = tmp_path / "home", tmp_path / "path"
    program(home / "bin", "keytool", f"echo home >> {tmp_path}/said")
    program(path, "keytool", f"echo path >> {tmp_path}/said")
    monkeypatch.setenv("PATH", f"{path}")
    monkeypatch.setenv("JAVA_HOME", str(home))
    commands.keytool("-list")
    (home / "bin" / "keytool").unlink()
    commands.keytool("-list")
    assert (tmp_path / "said").read_text().split() == ["home", "path"]


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.fail.Exception) as caught:
        commands.compile_java(tmp_path / "A.java", class_path="", into=tmp_path)
    golden(str(caught.value))


def test_a_java_without_a_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden: Golden) -> None:
    """What Java itself says of a module that it lacks."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    said = "java.lang.module.FindException: Module jdk.compiler not found"
    java.write_text(f"#!/bin/sh\necho '{said}'; exit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.fail.Exception) as caught:
        commands.compile_java(tmp_path / "A.java", class_path="", into=tmp_path)
    golden(str(caught.value))
