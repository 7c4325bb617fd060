"""Virtual environments of a test's own, into which pip installs the wheel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A virtual environment without a checkout, and a home of its own."""

    home: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.home / "bin" / "python"

    @property
    def site(self) -> Path:
        """Where its libraries are."""
        names = {"base": str(self.home), "platbase": str(self.home)}
        return Path(sysconfig.get_path("purelib", "venv", names))

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment with nothing of ours but PATH."""
        return subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "AIRFLOW_HOME": str(self.home / "airflow"),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                **environment,
            },
            cwd=self.home,
        )

    def said(self, program: str, **environment: str) -> list[str]:
        """The lines that a Python program prints."""
        done = self.run(self.python, "-c", program, **environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip().splitlines()


def bare(home: Path) -> Installation:
    """An environment with no library at all."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    return Installation(home=home)


def pip_install(place: Installation, *what: str) -> None:
    """Install into an environment; nothing is compiled that nobody imports."""
    pip = [sys.executable, "-m", "pip", "--python", str(place.python), "install", "--quiet", "--no-compile"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def frozen(place: Installation) -> dict[str, str]:
    """The version of each package that is installed there."""
    pip = [sys.executable, "-m", "pip", "--python", str(place.python), "list", "--format", "json"]
    done = subprocess.run(pip, capture_output=True, text=True, check=True)
    return {one["name"]: one["version"] for one in json.loads(done.stdout)}
