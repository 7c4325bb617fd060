"""Programs that tests need beside Python: a missing one is named, with the remedy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ferry.dev.jars import java
from ferry.errors import BadInput

JAVAC = "jdk.compiler/com.sun.tools.javac.Main"
"""The compiler as a module, because Debian's headless Java has no command `javac`."""


def installed(name: str, package: str, *, path: str | None = None) -> str:
    """The path of a program of a Debian package, in PATH or in `path`."""
    found = shutil.which(name, path=path)
    if found is None:
        pytest.fail(f"{name} is missing: install the Debian package {package}, or run `make prerequisites`")
    return found


def gssapi() -> None:
    """Fail the test where Python's library for Kerberos is not built, because a compiler or a header was missing."""
    if importlib.util.find_spec("gssapi") is None:
        pytest.fail(
            "Python's package gssapi is missing: install the Debian packages gcc, libc6-dev, python3-dev and "
            "libkrb5-dev, or run `make prerequisites`; `make test` then builds it"
        )


def promtool(*arguments: str, folder: Path | None = None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Prometheus's own tool in a folder, with a text as its standard input."""
    command = [installed("promtool", "prometheus"), *arguments]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)


def keytool(*arguments: str) -> None:
    """Run the JDK's keytool, that of JAVA_HOME first: it makes the stores that Java's users have."""
    home, path = os.environ.get("JAVA_HOME"), os.environ.get("PATH", os.defpath)
    program = installed("keytool", "default-jre-headless", path=f"{home}/bin{os.pathsep}{path}" if home else path)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def compile_java(source: Path, *, class_path: str, into: Path) -> None:
    """Compile one Java file against a class path."""
    try:
        program = java()
    except BadInput as error:
        pytest.fail(f"{error}. On Debian, run `make prerequisites`.")
    command = [program, "-m", JAVAC, "-proc:none", "-cp", class_path, "-d", str(into), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if "Module jdk.compiler not found" in said:
        pytest.fail(f"{program} has no compiler: install a JDK, on Debian the package default-jdk-headless")
    assert done.returncode == 0, said
