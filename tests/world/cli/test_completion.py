"""What a shell offers for a word: by its protocol, and typed at real shells."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.program import main
from tests.commands import installed
from tests.program import PROGRAM, environment
from tests.terminal import ESCAPE
from tests.tiers import PATIENCE

FILE = """
clusters = primary, backup, other
primary->backup.enabled = true
primary->backup.topics = orders, payments.settled, logs-.*
primary->backup.ferry.lane = blue
backup->primary.enabled = ${env:NOT_SET_ANYWHERE}
other->backup.enabled = false
a.mistake
"""
TYPED = {"bash": "ferry plan 'primary->backup'", "zsh": r"mary-\>backup", "fish": r"ferry plan primary-\>backup"}
"""How each writes a flow into the line, so that its > is no redirection; zsh what it adds."""
LOADS_FIRST = "zsh"
"""What Typer writes for it does no more at the first key of a session than to load itself: the bell rings."""
SECONDS = 60.0 * PATIENCE


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The answer to a bash that completes the last of the words."""

    def answer(*words: str, config: Path | None = None) -> list[str]:
        monkeypatch.setenv("_FERRY_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(("ferry", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.delenv("FERRY_CONFIG", raising=False)
        if config is not None:
            monkeypatch.setenv("FERRY_CONFIG", str(config))
        with pytest.raises(SystemExit):
            main([])
        out, err = capfd.readouterr()
        assert err == "", "nothing is said into somebody's line"
        return out.split()

    return answer


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["plan", ""], ["'primary->backup'", "'backup->primary'"]),
        (["plan", "'pri"], ["primary->backup"]),
        (["ledger", "p"], ["'primary->backup'"]),
        (["ledger", "e"], ["export"]),
        (["ledger", "--runs", "p"], ["'primary->backup'"]),
        (["groups", "--run"], []),
        (["lanes", "drop", "b"], ["'backup->primary'"]),
        (["run", "'primary->backup'", "--topic", ""], ["orders", "payments.settled"]),
        (["pause", "'backup->primary'", "--topic", ""], []),
        (["translate", "'primary->backup'", "ord"], ["orders"]),
        (["verify", "--lane", ""], ["blue", "live"]),
        (["verify", "--config", "/nowhere/f", "--lane", ""], []),
        (["config", "explain", "ferry.metrics."], ["ferry.metrics.folder", "ferry.metrics.per.partition"]),
        (["config", "explain", "'a->b.ferry.metrics.f"], ["a->b.ferry.metrics.folder"]),
    ],
)
def test_a_word_is_completed_from_the_file_and_without_a_cluster(
    words: list[str], found: list[str], config: Path, offered: Callable[..., list[str]]
) -> None:
    assert offered(*words, config=config) == found


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "pipe"])
def test_a_file_that_cannot_be_read_offers_nothing_and_says_nothing(
    kind: str, tmp_path: Path, offered: Callable[..., list[str]]
) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    elif kind == "pipe":
        os.mkfifo(path)  # whoever opened it would wait
    assert offered("plan", "p", config=path) == []
    assert offered("--config", str(path), "plan", "p") == []


@pytest.mark.parametrize("shell", TYPED)
def test_a_real_shell_writes_a_flow_so_that_it_can_be_run(shell: str, tmp_path: Path, config: Path) -> None:
    config.write_text("clusters = primary, backup\nprimary->backup.enabled = true\n")
    env = {**environment(config), "HOME": str(tmp_path), "TERM": "dumb", "PS1": "% ", "LC_ALL": "C.UTF-8"}
    env |= {"PATH": f"{PROGRAM.parent}{os.pathsep}{env['PATH']}"}
    # It asks its parent which shell it is in; with another command behind it, it has one.
    install = [installed(shell, shell), "-c", "ferry --install-completion; true"]
    done = subprocess.run(install, env=env, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert f"{shell} completion installed" in done.stdout, done.stdout + done.stderr
    if shell == "zsh":  # nobody is asked whether the folders of this machine are safe
        zshrc = tmp_path / ".zshrc"
        zshrc.write_text(zshrc.read_text().replace("; compinit", "; compinit -u"))
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(shell, [shell, "-i"], env)
    try:
        os.write(terminal, b"echo rea''dy\n")
        _until(terminal, "\nready")
        os.write(terminal, b"ferry plan pri\t")
        if shell == LOADS_FIRST:
            _until(terminal, "\a")
            os.write(terminal, b"\t")
        _until(terminal, TYPED[shell])
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def _until(terminal: int, wanted: str) -> None:
    """Read what the shell shows until it shows this."""
    shown, deadline = "", time.monotonic() + SECONDS
    while wanted not in _read(shown):
        left = deadline - time.monotonic()
        assert left > 0, repr(shown)
        if select.select([terminal], [], [], left)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")


def _read(shown: str) -> str:
    """What a person reads of it, where the shell goes back and writes over."""
    found = ""
    for sign in ESCAPE.sub("", shown).replace("\r", ""):
        found = found[:-1] if sign == "\b" else found + sign
    return found
