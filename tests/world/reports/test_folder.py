"""Folders of reports: what is written holds, and whatever is changed afterwards is found and named."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from jsonschema import Draft202012Validator

from ferry.cli.command import Context
from ferry.cli.output import Form
from ferry.config.flow.report import KEY, PASSWORD, ReportConfig
from ferry.config.text.secrets import ClientProperties
from ferry.errors import BadInput, Refused
from ferry.features.evidence.acts.folder import Checked, ReportFolder, check_folder
from ferry.features.evidence.acts.signing import public_keys
from ferry.features.evidence.acts.store import ALONE, LocalStore, store_of
from ferry.features.evidence.cli.evidence import ended
from ferry.features.evidence.rules.chain import number_of
from ferry.model.evidence import EvidenceOutcome
from tests.commands import installed
from tests.golden import Golden
from tests.program import SCHEMAS, closed
from tests.program import warm_ferry as ferry
from tests.pure.reports.values import EVIDENCE, evidence
from tests.world.documents.commands import placed, told

KINDS = {
    "ed25519": ["-algorithm", "ed25519"],
    "ecdsa": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
}


def openssl(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([installed("openssl", "openssl"), *arguments], capture_output=True, check=False)


def made(folder: Path, kind: str) -> tuple[Path, Path]:
    """A private key and its public half, as openssl writes them."""
    private, public = folder / "private.pem", folder / "public.pem"
    assert openssl("genpkey", *KINDS[kind], "-out", private).returncode == 0
    assert openssl("pkey", "-in", private, "-pubout", "-out", public).returncode == 0
    return private, public


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our own key."""
    return made(tmp_path_factory.mktemp("keys"), "ed25519")


@pytest.fixture(scope="session")
def whole(keys: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three reports that nobody has touched; to be copied."""
    folder = tmp_path_factory.mktemp("whole") / "reports"
    filled(folder, keys[0])
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "reports"))


def config(folder: object, key: object = "", password: str = "") -> ReportConfig:
    given = {KEY: str(key), PASSWORD: password}
    return ReportConfig(folder=str(folder), signing=ClientProperties(values_by_key=given))


def filled(folder: object, key: object = "", count: int = 3) -> None:
    reports = ReportFolder.of(config(folder, key))
    reports.prepare()
    for number in range(count):
        reports.write(evidence(f"drill-{number}"))


def checked(folder: object, public: Path | None = None, last: str | None = None) -> list[Checked]:
    return check_folder(store_of(str(folder)), None if public is None else public_keys([public]), last)


def problems(folder: Path, public: Path | None = None, last: str | None = None) -> dict[str, str]:
    return {one.kept.name: one.problem for one in checked(folder, public, last) if one.problem}


def without_digests(text: str) -> str:
    """A sentence without what differs with each key and each time."""
    return re.sub("[0-9a-f]{64}", "DIGEST", text)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_holds_and_openssl_agrees(tmp_path: Path, kind: str) -> None:
    (tmp_path / "keys").mkdir()
    private, public = made(tmp_path / "keys", kind)
    filled(tmp_path, private)
    assert [(one.kept.number, one.signed, one.problem) for one in checked(tmp_path, public)] == [
        (1, True, ""),
        (2, True, ""),
        (3, True, ""),
    ]
    algorithm = json.loads((tmp_path / "report-000001.json").read_bytes())["signer"]["algorithm"]
    for name in ("report-000002.json", "report-000002.html"):
        file, signature = tmp_path / name, tmp_path / f"{name}.sig"
        how = told("openssl", "pkeyutl") if algorithm == "Ed25519" else told("openssl", "dgst")
        places = {"report.pub": public, "report-000012.json": file, "report-000012.json.sig": signature}
        assert openssl(*placed(how, places)).returncode == 0
    assert not list(tmp_path.glob(".*")), "nothing half-written is left"
    index = json.loads((tmp_path / "index.json").read_text())
    Draft202012Validator(closed(json.loads((SCHEMAS / "reports-list.json").read_text()))).validate(index)
    assert [row["id"] for row in index["reports"]] == ["drill-2", "drill-1", "drill-0"]


def flip(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))


def renumber(folder: Path) -> None:
    """Take report 2 out, and close ranks."""
    for end in ("json", "html"):
        (folder / f"report-000003.{end}").replace(folder / f"report-000002.{end}")
        (folder / f"report-000003.{end}.sig").replace(folder / f"report-000002.{end}.sig")


def rewritten(folder: Path) -> None:
    """Put another history in the place of report 2, well-formed and unsigned."""
    other = folder / "other"
    filled(other, count=2)
    shutil.copy(other / "report-000002.json", folder)


def remove(at: Path, names: str) -> None:
    for file in at.glob(names):
        file.unlink()


TAMPERED: dict[str, Callable[[Path], object]] = {
    "figure": lambda at: flip(at / "report-000002.json", b'"records":94', b'"records":0'),
    "page": lambda at: flip(at / "report-000002.html", b"deviations", b"success"),
    "removed": lambda at: remove(at, "report-000002*"),
    "first removed": lambda at: remove(at, "report-000001*"),
    "renumbered": renumber,
    "history": rewritten,
    "rubbish": lambda at: (at / "report-000002.json").write_text("{}"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_what_is_changed_is_found_by_the_chain_and_by_the_signature(
    folder: Path, keys: tuple[Path, Path], how: str, golden: Golden
) -> None:
    TAMPERED[how](folder)
    for case, key in (("by the chain", None), ("by the signature", keys[1])):
        found = problems(folder, key)
        assert found
        golden(without_digests("\n".join(f"{name}: {problem}" for name, problem in sorted(found.items()))), case)


def test_whoever_signs_anew_what_he_changed_is_found_by_his_key_and_by_the_chain(
    folder: Path, keys: tuple[Path, Path], tmp_path: Path, golden: Golden
) -> None:
    (tmp_path / "keys").mkdir()
    theirs, _ = made(tmp_path / "keys", "ed25519")
    filled(tmp_path / "forged", theirs)
    for file in (tmp_path / "forged").glob("report-000003*"):
        shutil.copy(file, folder)
    (name, problem), *rest = problems(folder, keys[1]).items()
    assert (name, rest) == ("report-000003.json", [])
    golden(without_digests(problem))


def test_what_cannot_be_read_is_not_called_signed(folder: Path, keys: tuple[Path, Path]) -> None:
    (folder / "report-000002.json").write_text("{}")
    assert {one.kept.name: one.signed for one in checked(folder, keys[1])} == {
        "report-000001.json": True,
        "report-000002.json": None,
        "report-000003.json": True,
    }


def test_reports_cut_off_at_the_end_are_missed_by_the_digest_kept_elsewhere(folder: Path, golden: Golden) -> None:
    newest = checked(folder)[-1].kept.sha256
    assert problems(folder, last=newest) == {}
    for file in folder.glob("report-000003*"):
        file.unlink()
    assert problems(folder) == {}
    found = problems(folder, last=newest)
    assert found.keys() == {"report-000002.json"}
    golden(without_digests(found["report-000002.json"]))


def test_several_who_write_at_once_make_one_chain(tmp_path: Path) -> None:
    writers = [threading.Thread(target=filled, args=(tmp_path, "", 3)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = checked(tmp_path)
    assert [one.kept.number for one in found] == list(range(1, 10))
    assert [one.problem for one in found if one.problem and "html" not in one.problem] == []


def test_what_has_ended_is_told_once_by_however_many_and_what_was_unfinished_before(tmp_path: Path) -> None:
    def told(outcome: EvidenceOutcome) -> None:
        reports.write(replace(EVIDENCE, outcome=outcome), once=True)

    reports = ReportFolder.of(config(tmp_path))
    told(EvidenceOutcome.FAILED)
    writers = [threading.Thread(target=told, args=(EvidenceOutcome.SUCCESS,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [one.kept.report for one in checked(tmp_path)]
    assert [one.evidence.outcome for one in found if one] == [EvidenceOutcome.FAILED, EvidenceOutcome.SUCCESS]
    reports.write(replace(EVIDENCE, id="another"), once=True)
    assert len(checked(tmp_path)) == 3


class Overtaken(LocalStore):
    """Once it has been listed so often, somebody else tells of the same before whoever listed it goes on."""

    def __init__(self, path: Path, listings: int) -> None:
        super().__init__(path)
        self._left, self._path_of_others = listings, path

    def names(self) -> list[str]:
        found = super().names()
        self._left -= 1
        if self._left == 0:
            ReportFolder(LocalStore(self._path_of_others), None).write(EVIDENCE, once=True)
        return found


@pytest.mark.parametrize("listings", range(1, 5))
def test_whoever_is_overtaken_between_two_looks_tells_nothing_twice(tmp_path: Path, listings: int) -> None:
    filled(tmp_path, count=1)
    written = ReportFolder(Overtaken(tmp_path, listings), None).write(EVIDENCE, once=True)
    found = checked(tmp_path)
    assert [(one.kept.number, one.problem) for one in found] == [(1, ""), (2, "")]
    assert written.sha256 == found[1].kept.sha256


def test_an_object_store_keeps_reports_and_gives_no_number_twice() -> None:
    url = "memory://bucket/reports"
    filled(url, count=2)
    store = store_of(url)
    with pytest.raises(FileExistsError):
        store.create("report-000002.json", b"{}")
    filled(url, count=1)
    assert [(one.kept.number, one.problem) for one in checked(url)] == [(1, ""), (2, ""), (3, "")]


def test_the_password_of_an_object_store_is_shown_nowhere() -> None:
    url = "memory://key:secret@bucket/reports"
    filled(url, count=1)
    folder = ReportFolder(store_of(url), None)
    assert folder.where == "memory://bucket/reports"
    assert "secret" not in repr(folder.write(EVIDENCE))
    assert store_of("memory://container@account/reports").where == "memory://container@account/reports"


class Minio(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Refuses a taken name as s3fs does where the store does not name the condition: with EINVAL, as a bad request."""

    protocol = "minio"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    first: ClassVar[list[Callable[[], None]]] = []
    """What others do between our look and our write."""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: object) -> None:
        if self.first and number_of(path.rpartition("/")[2]):
            self.first.pop()()
        if mode == "create" and (path.endswith("bad.json") or self.exists(path)):
            raise OSError(errno.EINVAL, "At least one of the pre-conditions you specified did not hold")
        super().pipe_file(path, value)


def test_a_number_that_was_taken_meanwhile_is_taken_also_where_the_store_does_not_name_the_condition() -> None:
    fsspec.register_implementation("minio", Minio)
    url = "minio://bucket/reports"
    filled(url, count=1)
    Minio.first.append(lambda: filled(url, count=1))
    filled(url, count=1)
    assert Minio.first == []
    assert [(one.kept.number, one.problem) for one in checked(url)] == [(1, ""), (2, ""), (3, "")]
    with pytest.raises(OSError, match="pre-conditions") as refused:
        store_of(url).create("bad.json", b"{}")
    assert not isinstance(refused.value, FileExistsError), "nothing is there: the request was bad"


def test_a_folder_that_cannot_be_written_refuses_before_anything_begins(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below", "/proc/ferry"):
        with pytest.raises(Refused, match=f"{folder}.*ferry\\.report"):
            ReportFolder.of(config(folder)).prepare()
    with pytest.raises(BadInput, match=r"ferry\.report\.dir gopher://x"):
        ReportFolder.of(config("gopher://x"))


@pytest.mark.parametrize(
    "index",
    [b"", b"{}", b"[]", b'{"reports": [{"name": "x", "number": 1}]}', b"[" * 100_000, b"\xff"],
    ids=["empty", "object", "list", "reports of another form", "lists in lists", "not UTF-8"],
)
def test_an_index_of_somebody_else_is_never_replaced(tmp_path: Path, index: bytes, golden: Golden) -> None:
    (tmp_path / "index.json").write_bytes(index)
    folder = ReportFolder(store_of(str(tmp_path)), None)
    with pytest.raises(Refused) as refused:
        folder.prepare()
    golden(refused.value)
    folder.write(EVIDENCE)
    assert (tmp_path / "index.json").read_bytes() == index


def test_a_store_that_is_asked_at_once_and_does_not_answer_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^ferry\.report\.dir ftp://127\.0\.0\.1:1/x: .*refused"):
        store_of("ftp://127.0.0.1:1/x")


def test_an_own_index_is_written_again(tmp_path: Path) -> None:
    folder = ReportFolder(store_of(str(tmp_path)), None)
    for count in (1, 2):
        folder.prepare()
        folder.write(replace(EVIDENCE, id=f"drill-{count}"))
        assert len(json.loads((tmp_path / "index.json").read_bytes())["reports"]) == count


def test_a_folder_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    answer = ferry("reports", "list", file)
    assert (answer.code, "cannot be read" in answer.err) == (2, True)


class FullDisk(LocalStore):
    """Takes no report any more."""

    def create(self, name: str, content: bytes, beside: Mapping[str, bytes] = ALONE) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_meanwhile_loses_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = Context(config=None, clusters=(), quiet=True, verbose=False, form=Form.JSON)
    fine = replace(EVIDENCE, outcome=EvidenceOutcome.SUCCESS)
    assert ended(context, fine, ReportFolder(FullDisk(tmp_path), None), None) == 1
    said = capsys.readouterr()
    assert (json.loads(said.out)["id"], json.loads(said.out)["report"]) == (fine.id, None)
    assert f"{tmp_path} (No space " in said.err


def test_a_key_that_cannot_sign_is_refused_with_the_remedy(
    tmp_path: Path, keys: tuple[Path, Path], golden: Golden
) -> None:
    private, public = keys
    locked, short, other = (tmp_path / name for name in ("locked.pem", "short.pem", "x25519.pem"))
    openssl("pkey", "-in", private, "-aes256", "-passout", "pass:geheim", "-out", locked)
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024", "-out", short)
    openssl("genpkey", "-algorithm", "x25519", "-out", other)
    for case, given in (
        ("no file", config(tmp_path, tmp_path / "none.pem")),
        ("a public key", config(tmp_path, public)),
        ("no password", config(tmp_path, locked)),
        ("another password", config(tmp_path, locked, "wrong")),
        ("a needless password", config(tmp_path, private, "needless")),
        ("too short", config(tmp_path, short)),
        ("another kind", config(tmp_path, other)),
    ):
        with pytest.raises(BadInput) as refused:
            ReportFolder.of(given)
        golden(str(refused.value).replace(str(public.parent), "KEYS"), case)
    ReportFolder.of(config(tmp_path / "reports", locked, "geheim")).write(evidence("one"))
    ReportFolder.of(config(tmp_path / "reports", private.read_text())).write(evidence("two"))
    assert [one.signed for one in checked(tmp_path / "reports", public)] == [True, True]


def test_the_program_lists_verifies_and_names_the_first_broken_report(
    folder: Path, tmp_path: Path, keys: tuple[Path, Path], golden: Golden
) -> None:
    public = keys[1]
    listed = ferry("reports", "list", folder, "--json").json("reports-list")["reports"]
    assert [(row["number"], row["signed"]) for row in listed] == [(3, True), (2, True), (1, True)]
    answer = ferry("reports", "verify", folder, "--key", public, "--json")
    assert (answer.code, answer.json("reports-verify")["intact"]) == (0, True)
    assert ferry("reports", "verify", folder).code == 2
    flip(folder / "report-000002.json", b'"records":94', b'"records":0')
    answer = ferry("reports", "verify", folder, "--key", public)
    assert answer.code == 1
    golden(answer.out.splitlines()[-1], "the first broken one")
    body = ferry("reports", "verify", folder, "--chain-only", "--json").json("reports-verify")
    assert (body["first_broken"], body["reports"][0]["signed"]) == ("report-000003.json", None)
    golden(without_digests(body["reports"][2]["problem"]), "by the chain")
    empty = ferry("reports", "verify", tmp_path / "nothing", "--chain-only")
    assert (empty.code, "holds no report" in empty.err) == (2, True)


def test_files_are_not_for_everybody(whole: Path) -> None:
    assert {file.stat().st_mode & 0o007 for file in whole.iterdir()} == {0}
