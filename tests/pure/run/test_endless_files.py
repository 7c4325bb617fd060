"""A file of others that has no end, as a device or a pipe, is read up to a limit, and refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from ferry.config.flow.report import KEY
from ferry.config.login.jaas import read_jaas_file
from ferry.config.settings import read_text
from ferry.config.text.lookups import look_up
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import Providers
from ferry.errors import BadInput
from ferry.features.evidence.acts.folder import read_folder
from ferry.features.evidence.acts.signing import SigningKey, public_keys
from ferry.features.evidence.acts.store import LocalStore
from ferry.files import TooLong, read_bounded
from ferry.kafka.connect.oauth import Tokens
from ferry.kafka.connect.refusal import LoginFailed
from tests.golden import Golden
from tests.pure.net.test_oauth import LOGIN
from tests.tiers import PATIENCE

PROVIDERS = Providers(look_up=look_up)
CHUNK = bytes(1 << 16)
MOST = 4096
"""How many chunks the pipe has, so that a reader without a limit takes 256 MiB and not all memory."""


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[Path, list[int]]]:
    """A pipe, whose size is 0, with far more than its readers may take; and how much they took."""
    path, taken = tmp_path / "endless", [0]
    os.mkfifo(path)

    def feed() -> None:
        opened = os.open(path, os.O_WRONLY)
        try:
            while taken[0] < MOST * len(CHUNK):
                taken[0] += os.write(opened, CHUNK)
        except BrokenPipeError:
            pass
        finally:
            os.close(opened)

    feeder = Thread(target=feed, daemon=True)
    feeder.start()
    yield path, taken
    feeder.join(10 * PATIENCE)
    assert not feeder.is_alive(), "nothing has read the pipe"


READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "configuration": (read_text, BadInput),
    "JAAS": (read_jaas_file, BadValue),
    "token": (lambda path: Tokens(replace(LOGIN, token_file=str(path)), None).token(), LoginFailed),
    "private key": (lambda path: SigningKey.of({KEY: str(path)}), BadInput),
    "public key": (lambda path: public_keys([path]), BadInput),
    "folder of values": (lambda path: PROVIDERS.resolved("a", f"${{dir:{path.parent}:{path.name}}}"), BadInput),
    "file of values": (lambda path: PROVIDERS.resolved("a", f"${{file:{path}:b}}"), BadInput),
    "any": (read_bounded, TooLong),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_file_without_an_end_is_refused(endless: tuple[Path, list[int]], reader: str, golden: Golden) -> None:
    path, taken = endless
    read, error = READERS[reader]
    with pytest.raises(error) as caught:
        read(path)
    golden(caught.value)
    assert taken[0] < 8 << 20


def test_a_report_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr("ferry.features.evidence.acts.store.MAX_REPORT_BYTES", 10)
    (tmp_path / "report-000001.json").write_bytes(bytes(11))
    with pytest.raises(BadInput) as wrong:
        read_folder(LocalStore(tmp_path))
    golden(wrong.value)
