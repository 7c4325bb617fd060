"""New files are whole or absent, the owner's alone, and neither replace nor follow what has their name."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import IO, Any, Self

import pytest

from ferry.cli.output import write_new, write_output
from ferry.errors import BadInput
from ferry.features.archive.acts import export
from ferry.features.archive.acts.export import JsonLines, LinesWriter, export_ledger, json_lines
from ferry.features.archive.acts.parquet import ParquetLines, parquet_lines
from ferry.features.archive.rules.export import Exported
from ferry.files import PRIVATE, new_file, refuse_taken, write_whole
from ferry.model import Record
from tests.golden import Golden

OURS = b'["meta"]'


class Target:
    """A connection to a ledger without a broker."""

    target = SimpleNamespace(cluster_id="c")

    def __init__(self) -> None:
        self.ledger = self
        self.place = SimpleNamespace(topic="ferry-ledger.a.internal")

    @classmethod
    def of(cls, _: object, *, patience_s: float) -> Self:
        return cls()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def run(self, work: Callable[[], Any]) -> Any:
        try:
            work().send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError("it waits")

    async def find(self) -> None:
        pass

    async def start(self) -> int:
        return 0

    async def end(self) -> int:
        return 2


@pytest.fixture(autouse=True)
def everybody_may_read() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def lost() -> OSError | None:
    return None


@pytest.fixture
def ledger(lost: OSError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def committed(_: object, end: int) -> Any:
        if lost is not None:
            raise lost
        yield Exported(offset=0, record=Record(key=OURS, value=b"{}"))
        yield end

    monkeypatch.setattr(export, "TargetConnection", Target)
    monkeypatch.setattr(export, "committed", committed)


def exported(path: Path, make: Callable[[IO[bytes]], LinesWriter]) -> None:
    flow: Any = SimpleNamespace(flow="a->b")
    assert export_ledger(flow, path, make) == (1, 2)


formats = pytest.mark.parametrize(("make", "lines"), [(JsonLines, json_lines), (ParquetLines, parquet_lines)])


@formats
@pytest.mark.usefixtures("ledger")
def test_an_export_is_whole_and_its_owner_s_alone(tmp_path: Path, make: Any, lines: Any) -> None:
    exported(tmp_path / "ledger", make)
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == PRIVATE
    assert len(list(lines(tmp_path / "ledger"))) == 3
    assert [one.name for one in tmp_path.iterdir()] == ["ledger"]


@formats
@pytest.mark.usefixtures("ledger")
def test_an_export_is_written_to_the_file_that_was_made_though_its_name_leads_elsewhere(
    tmp_path: Path, make: Any, lines: Any
) -> None:
    """Others may rename in the folder: what they put at the draft's name is never opened."""
    victim = tmp_path / "victim"
    victim.write_text("mine")

    def swapped(file: IO[bytes]) -> LinesWriter:
        (made,) = tmp_path.glob(".*")
        made.unlink()
        made.symlink_to(victim)
        writer: LinesWriter = make(file)
        return writer

    exported(tmp_path / "ledger", swapped)
    assert victim.read_text() == "mine"


@formats
@pytest.mark.parametrize("lost", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))], ids=["full"])
@pytest.mark.usefixtures("ledger")
def test_an_export_that_fails_leaves_nothing(tmp_path: Path, make: Any, lines: Any) -> None:
    with pytest.raises(BadInput, match=os.strerror(errno.ENOSPC)):
        exported(tmp_path / "ledger", make)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["file", "link", "loose"])
def test_a_name_that_is_taken_is_refused_by_all_in_the_same_words(tmp_path: Path, taken: str) -> None:
    path, victim = tmp_path / "new", tmp_path / "victim"
    if taken != "loose":
        victim.write_text("mine")
    if taken == "file":
        path.write_text("mine")
    else:
        path.symlink_to(victim)

    def opened() -> None:
        with new_file(path) as file:
            file.write(b"yours")

    said = set()
    for write in (
        opened,
        lambda: refuse_taken(path),
        lambda: write_new(path, "yours", mode=PRIVATE),
        lambda: exported(path, JsonLines),
    ):
        with pytest.raises(BadInput) as refused:
            write()
        said.add(str(refused.value))
    assert len(said) == 1
    assert victim.exists() is (taken != "loose")
    assert taken == "loose" or victim.read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_what_is_replaced_is_the_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    path, victim = tmp_path / "new", tmp_path / "victim"
    victim.write_text("mine")
    path.symlink_to(victim)
    write_whole(path, "yours")
    assert (victim.read_text(), path.read_text(), path.is_symlink()) == ("mine", "yours", False)
    assert path.stat().st_mode & 0o777 == PRIVATE


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_file(tmp_path / "new") as file:
        file.write(b"%d" % (1 // 0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["none", "none/deeper"])
def test_a_folder_that_does_not_exist_is_named_and_not_created(below: str, tmp_path: Path, golden: Golden) -> None:
    folder = tmp_path / below
    writers: dict[str, Callable[[], object]] = {
        "refuse_taken": lambda: refuse_taken(folder / "x"),
        "write_new": lambda: write_new(folder / "x", "", mode=PRIVATE),
        "write_output": lambda: write_output(folder / "x", ""),
        "exported": lambda: exported(folder / "x", JsonLines),
    }
    for name, write in writers.items():
        with pytest.raises(BadInput) as wrong:
            write()
        golden(wrong.value, name)
    assert not (tmp_path / "none").exists()


def test_a_folder_below_a_closed_one_is_not_called_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    closed = tmp_path / "closed"

    def denied(path: Any, *given: Any, real: Callable[..., Any], **more: Any) -> Any:
        if str(path).startswith(f"{closed}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *given, **more)

    for name in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, name, partial(denied, real=getattr(os, name)))
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(f"{closed}/"))
    path = closed / "folder" / "x"
    with pytest.raises(BadInput) as refused:
        refuse_taken(path)
    golden(refused.value)
    with pytest.raises(BadInput) as unwritten:
        write_new(path, "", mode=PRIVATE)
    assert str(unwritten.value) == str(refused.value)
