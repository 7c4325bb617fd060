"""A folder of reports, in which each report names the one before it; they are written, read and checked."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ferry.config.flow.report import FOLDER, ReportConfig
from ferry.errors import BadInput, Corrupt, OutcomeUnknown, Refused
from ferry.features.evidence.acts.html import check_pdf_renderer, check_renderer, rendered
from ferry.features.evidence.acts.signing import Public, SigningKey, holds
from ferry.features.evidence.acts.store import Store, check_writable, reason, remedy, store_of
from ferry.features.evidence.rules.chain import (
    SIGNATURE,
    Kept,
    broken_links,
    index_json,
    is_index,
    kept_report_of,
    number_of,
    page_name,
    pdf_name,
    report_name,
    sha256,
)
from ferry.features.evidence.rules.codec import SealedReport, decode_report, encode_report
from ferry.model.evidence import EvidenceReport

log = logging.getLogger(__name__)

INDEX = "index.json"

_TRIES = 20
"""How many times a report's number may be taken by another process that writes to the same folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where a report was written, and the SHA-256 of its JSON.

    Kept elsewhere, the digest shows that nothing was cut off.
    """

    number: int
    where: str
    page: str
    json: str
    sha256: str
    is_signed: bool

    @property
    def sentence(self) -> str:
        """The place of the report, as a sentence."""
        signed = "signed" if self.is_signed else "not signed"
        return f"report: {self.page} ({signed}, SHA-256 of its JSON {self.sha256})"

    @property
    def document(self) -> dict[str, Any]:
        """The place of the report, as a JSON object."""
        return {
            "number": self.number,
            "page": self.page,
            "json": self.json,
            "sha256": self.sha256,
            "signed": self.is_signed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One report of a folder after a check; `problem` is empty if all is well.

    `signed` is None if it was not checked, or the report could not be read.
    """

    kept: Kept
    signed: bool | None
    problem: str


class ReportFolder:
    """The folder for a flow's reports. Call `prepare` before anything begins, and `write` at the end."""

    def __init__(self, store: Store, key: SigningKey | None, *, with_pdf: bool = False) -> None:
        self._store = store
        self._key = key
        self._with_pdf = with_pdf

    @classmethod
    def of(cls, config: ReportConfig, folder: str | None = None) -> Self:
        """Open `folder`, or else the one of the configuration. Raises BadInput if the key cannot be read."""
        return cls(store_of(folder or config.folder), SigningKey.of(config.key()), with_pdf=config.with_pdf)

    @property
    def where(self) -> str:
        """The folder's path or URL."""
        return self._store.where

    def prepare(self) -> None:
        """Check that a report can be written. Raises Refused or BadInput, with the remedy, if not."""
        check_renderer()
        if self._with_pdf:
            check_pdf_renderer()
        check_writable(self._store)
        try:
            self._newest()
            is_own = self._is_own_index()
        except OSError as error:
            raise Refused(
                f"reports in {self._store.where} cannot be read ({reason(error)}), so nothing was begun: make them "
                f"readable, or name another folder as {FOLDER}"
            ) from error
        if not is_own:
            raise Refused(
                f"{self._store.where} has an {INDEX} that is none of Ferry's, and reports replace nothing: name another"
                f" folder as {FOLDER}, or move it away"
            )

    def write(self, evidence: EvidenceReport, *, once: bool = False) -> Written:
        """Write a report after the last one. Raises OSError if the folder does not take it.

        Raises OutcomeUnknown if other processes take its number _TRIES times. `once`: if a report of the same end
        exists, written by any process, nothing new is written, and that report is returned. If it was left incomplete,
        it is completed.
        """
        for _ in range(_TRIES):
            before = self._newest()  # first: later reports are found below, or take the number
            known = kept_report_of(read_folder(self._store), evidence) if once else None
            if known is not None and known.report is not None:
                return self._made_whole(known, known.report)
            report = SealedReport(
                number=1 if before is None else before.number + 1,
                evidence=evidence,
                previous=None if before is None else before.link,
                signer=None if self._key is None else self._key.signer,
            )
            content = encode_report(report)
            name = report_name(report.number)
            try:
                self._store.create(name, content, self._beside(report, name, content))
            except FileExistsError:
                log.debug("%s was written by another process in the meantime", name)
                continue
            self._list()
            return self._written(report, name, sha256(content))
        raise OutcomeUnknown(
            f"{self._store.where} takes no report: its next number was taken {_TRIES} times by others; write it again"
        )

    def _is_own_index(self) -> bool:
        """Return whether the folder's index is one of reports; True if there is none."""
        try:
            return is_index(self._store.read(INDEX))
        except FileNotFoundError:
            return True

    def _made_whole(self, kept: Kept, report: SealedReport) -> Written:
        """Return a report that exists.

        If it is the last one, write the page and signatures that a killed process left out.
        """
        names = set(self._store.names())
        page = page_name(kept.name)
        files = {kept.name, page} | ({pdf_name(kept.name)} if self._with_pdf else set())
        wanted = {*files, INDEX} | ({f"{name}{SIGNATURE}" for name in files} if report.signer else set())
        newest = self._newest()
        is_last = newest is not None and newest.name == kept.name
        if is_last and not wanted <= names and report.signer == (None if self._key is None else self._key.signer):
            for name, content in self._beside(report, kept.name, self._store.read(kept.name)).items():
                self._store.replace(name, content)
            self._list()
        return self._written(report, kept.name, kept.sha256)

    def _beside(self, report: SealedReport, name: str, content: bytes) -> dict[str, bytes]:
        """Return the page of a report, its PDF if it is wanted and, if there is a key, the signatures of all."""
        shown = {page_name(name): rendered(report, sha256(content)).encode()}
        if self._with_pdf:
            check_pdf_renderer()
            shown[pdf_name(name)] = drawn_pdf(report, name, content)
        if self._key is None:
            return shown
        files = {name: content, **shown}
        return {**shown, **{f"{each}{SIGNATURE}": self._key.sign(body) for each, body in files.items()}}

    def _list(self) -> None:
        """Write the index again. If that fails, the report still counts, and a warning is logged."""
        try:
            if self._is_own_index():
                self._store.replace(INDEX, json.dumps(index_json(read_folder(self._store)), indent=1).encode())
            else:
                log.warning("%s in %s is none of Ferry's: it was left as it is", INDEX, self._store.where)
        except BadInput as error:
            log.warning("the report is written, but not %s, the list of them: %s", INDEX, error)
        except OSError as error:
            log.warning(
                "the report is written, but not %s in %s (%s), the list of them: %s, then the next report writes it",
                *(INDEX, self._store.where, reason(error), remedy(error)),
            )

    def _written(self, report: SealedReport, name: str, digest: str) -> Written:
        return Written(
            number=report.number,
            where=self._store.where,
            page=f"{self._store.where.rstrip('/')}/{page_name(name)}",
            json=f"{self._store.where.rstrip('/')}/{name}",
            sha256=digest,
            is_signed=report.signer is not None,
        )

    def _newest(self) -> Kept | None:
        """Return the last report, readable or not: a changed one is found by a check of the folder."""
        names = self._store.names()
        numbers = [number for name in names if (number := number_of(name)) is not None]
        return _kept(self._store, report_name(max(numbers)), names) if numbers else None


def drawn_pdf(report: SealedReport, name: str, content: bytes) -> bytes:
    """Return the PDF of a report, and log a warning if a character of the report is not shown there.

    `name` and `content` are those of its JSON. The libraries of the extra `pdf` must be installed.
    """
    from ferry.features.evidence.acts.pdf import pdf_of  # noqa: PLC0415 - an extra: only who wants PDFs has it

    made = pdf_of(report, sha256(content))
    if made.unshown:
        log.warning(
            "%s shows %s as code points, because its font does not have these characters: read them in %s",
            *(pdf_name(name), ", ".join(made.unshown), name),
        )
    return made.content


def read_folder(store: Store) -> list[Kept]:
    """Read all reports of a folder, in order. Raises BadInput if it cannot be read."""
    try:
        names = store.names()
        found = sorted((number, name) for name in names if (number := number_of(name)) is not None)
        return [_kept(store, name, names) for _, name in found]
    except OSError as error:
        raise BadInput(f"reports in {store.where} cannot be read ({reason(error)}): correct the folder") from error


def _kept(store: Store, name: str, names: list[str]) -> Kept:
    content = store.read(name)
    report, trouble = None, ""
    try:
        report = decode_report(content, name)
    except Corrupt as error:
        trouble = str(error)
    page = page_name(name)
    return Kept(
        number=number_of(name) or 0,
        name=name,
        sha256=sha256(content),
        page_sha256=sha256(store.read(page)) if page in names else None,
        report=report,
        trouble=trouble,
        has_pdf=pdf_name(name) in names,
    )


def check_folder(store: Store, keys: Mapping[str, Public] | None, last: str | None = None) -> list[Checked]:
    """Return each report with what is wrong with it, in order; a missing one is named at the next one that exists.

    `keys` are the keys that may have signed, by SHA-256; None: signatures are not checked. `last` is the SHA-256 that
    the newest report must have. Raises BadInput if the folder cannot be read.
    """
    kept = read_folder(store)
    names = set(store.names())
    broken = broken_links(kept, last)
    checked = []
    for one in kept:
        problem = "" if keys is None else "; ".join(_signature_problems(store, one, keys, names))
        chain = "; ".join(broken.pop(name) for name in list(broken) if (number_of(name) or 0) <= one.number)
        checked.append(
            Checked(
                kept=one,
                signed=None if keys is None or one.report is None else not problem,
                problem="; ".join(sentence for sentence in (chain, problem) if sentence),
            )
        )
    return checked


def _signature_problems(store: Store, one: Kept, keys: Mapping[str, Public], names: set[str]) -> Iterator[str]:
    if one.report is None:
        return  # the chain's check has reported it
    signer = one.report.signer
    public = None if signer is None else keys.get(signer.key_sha256)
    if signer is None:
        yield f"{one.name} is not signed"
    elif public is None:
        yield f"{one.name} is signed by another key, {signer.key_sha256} ({signer.algorithm}): add it by --key"
    else:
        pdf = pdf_name(one.name)
        has_pdf = not names.isdisjoint((pdf, f"{pdf}{SIGNATURE}"))
        for name in (one.name, page_name(one.name), *((pdf,) if has_pdf else ())):
            lost = next((each for each in (name, f"{name}{SIGNATURE}") if each not in names), None)
            if lost is not None:
                yield f"{lost} is gone"
            elif not holds(public, store.read(name), store.read(f"{name}{SIGNATURE}")):
                yield f"the signature of {name} does not hold: the file was changed, or another key signed it"
