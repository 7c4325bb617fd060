"""`ferry reports`: list the reports in a folder, write those of switches, and verify them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import Figure, echo, print_table, print_warning
from ferry.config.flow.report import FOLDER
from ferry.errors import BadInput
from ferry.features.evidence.acts.store import store_of
from ferry.features.evidence.cli.evidence import ended, prepared
from ferry.features.evidence.cli.report_place import ReportOption
from ferry.features.evidence.rules.chain import Kept, index_json
from ferry.features.switch.cli.options import IdArgument
from ferry.words import count_of, to_the_second

if TYPE_CHECKING:
    from ferry.features.evidence.acts.folder import Checked

BROKEN = 1

FolderArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="DIR", help="The folder, or its URL. May be omitted if all flows of the file name the same one."
    ),
]


@command(flow=False, connects=False, table=True)
def list_command(
    context: Context,
    folder: FolderArgument = None,
) -> int:
    """List the reports of a folder, newest first.

    Exit code 1 when one is damaged; it is named, and the others are listed. Exit code 2 when the folder that DIR or
    the file names does not exist.
    """
    from ferry.features.evidence.acts.folder import read_folder  # noqa: PLC0415 - brings cryptography

    place, is_of_file = _named(folder, context)
    store = store_of(place)
    is_there = store.exists()
    if not is_there and folder is not None:
        raise BadInput(f"{folder} is not a folder of reports: correct the name")
    if not is_there and is_of_file:
        raise BadInput(
            f"{FOLDER} {store.where} does not exist: correct the key if it is mistyped; the first report creates the "
            "folder"
        )
    kept = read_folder(store) if is_there else []
    if folder is not None and not kept:
        raise BadInput(f"{folder} holds no report: correct DIR, or omit it for the folder of the file")
    if not kept:
        why = "has no report" if is_there else f"does not exist, and no line sets {FOLDER}"
        print_warning(f"{store.where} {why}: the first drill or switch writes one")
    damaged = [one.name for one in kept if one.report is None]
    for name in damaged:
        print_warning(
            f"{name} cannot be read as a report and is not listed: `ferry reports verify` shows what is wrong"
        )
    context.answer(lambda: index_json(kept), lambda: _show_list(kept))
    return BROKEN if damaged else 0


def _show_list(kept: Sequence[Kept]) -> None:
    rows = [(one, one.report.evidence) for one in reversed(kept) if one.report is not None]
    print_table(
        ["#", "began", "kind", "flow", "outcome", "RPO records", "RTO s", "summary"],
        (
            [
                *(one.number, to_the_second(evidence.began_ms), evidence.kind, evidence.flow, evidence.outcome),
                Figure(None, "per way") if evidence.ways else evidence.lost_records,
                *(evidence.rto_s, evidence.summary, len(evidence.ways)),
            ]
            for one, evidence in rows
        ),
        right=["#", "RPO records", "RTO s"],
        only_csv="ways",
    )


@command()
def switch_command(
    context: Context,
    switch: IdArgument,
    report: ReportOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the report. Writes nothing.")] = False,
) -> int:
    """Write the report of a switchover, failover or failback from the ledger's records of it."""
    from ferry.features.switch.acts.history import one_switch  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.switch.acts.report import report_of_switch  # noqa: PLC0415 - as above

    both, chosen = context.both_ways()
    state = one_switch(both, chosen, switch, patience_s=context.patience_s)
    found = report_of_switch(both, chosen, state, patience_s=context.patience_s)
    folder = None if dry_run else prepared(chosen.report, report)  # makes it, so not for a switch that is not there
    return ended(context, found, folder, None)


@command(flow=False, connects=False, table=True)
def verify_command(
    context: Context,
    folder: FolderArgument = None,
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="A public key or certificate in PEM. May be repeated."),
    ] = None,
    chain_only: Annotated[bool, typer.Option("--chain-only", help="Check only the chain, not the signatures.")] = False,
    last: Annotated[
        str | None,
        typer.Option(
            "--newest",
            metavar="SHA256",
            help="SHA-256 of the newest report, to prove that none was removed at the end.",
        ),
    ] = None,
) -> int:
    """Check that no report was changed, removed or inserted: each report's signature, and its link to the previous one.

    Exit code 1 when something is broken; the first place is named.
    """
    from ferry.features.evidence.acts.folder import check_folder  # noqa: PLC0415 - brings cryptography
    from ferry.features.evidence.acts.signing import public_keys  # noqa: PLC0415 - as above

    if chain_only == bool(key):
        raise BadInput("name the trusted public keys with --key FILE, or add --chain-only")
    store = store_of(_named(folder, context)[0])
    checked = check_folder(store, None if chain_only else public_keys(key or ()), last)
    if not checked:
        raise BadInput(f"{store.where} holds no report: correct the folder")
    context.answer(
        lambda: _verified_json(store.where, checked),
        lambda: _show_verified(store.where, checked, chain_only=chain_only),
        lambda: _show_rows(store.where, checked, chain_only=chain_only),
    )
    return BROKEN if _first_broken(checked) else 0


def _first_broken(checked: Sequence[Checked]) -> Checked | None:
    return next((one for one in checked if one.problem), None)


def _show_verified(where: str, checked: Sequence[Checked], *, chain_only: bool) -> None:
    for one in checked:
        if one.problem:
            echo(f"broken: {one.problem}")
    what = f"{where}: {count_of(len(checked), 'report')}"
    signed = "signatures were not checked" if chain_only else "every signature is valid"
    broken = _first_broken(checked)
    if broken is None:
        echo(f"{what}, none changed or missing; {signed}; the newest has SHA-256 {checked[-1].kept.sha256}")
    else:
        echo(f"{what}; the first broken one is {broken.kept.name}")


def _show_rows(where: str, checked: Sequence[Checked], *, chain_only: bool) -> None:
    """Print a row for each report, and the sentences."""
    signed = {True: "signed", False: "not signed", None: "not checked"}
    print_table(
        ["#", "name", "sha256", "signature", "problem"],
        ((one.kept.number, one.kept.name, one.kept.sha256, signed[one.signed], one.problem or None) for one in checked),
    )
    _show_verified(where, checked, chain_only=chain_only)


def _verified_json(where: str, checked: Sequence[Checked]) -> dict[str, Any]:
    from ferry.features.drill.cli.forms import CHECKED  # noqa: PLC0415 - brings cryptography

    broken = _first_broken(checked)
    return {
        "intact": broken is None,
        "folder": where,
        "first_broken": None if broken is None else broken.kept.name,
        "reports": [CHECKED.dump(one) for one in checked],
    }


def _named(folder: str | None, context: Context) -> tuple[str, bool]:
    """Return the folder that is meant, and whether a line of the file names it.

    Raises BadInput for an empty name, which does not mean the folder of the file. Raises it, too, if none is given, and
    the flows of the file have none, or more than one.
    """
    if folder == "":
        raise BadInput("DIR is empty: name a folder, or omit it for the folder of the file")
    if folder is not None:
        return folder, False
    reports = [flow.report for flow in context.settings().flows]
    folders = {report.folder for report in reports}
    if len(folders) != 1:
        named = ", ".join(sorted(folders)) or "none"
        raise BadInput(
            f"the flows of {context.config_file()} do not all name one folder of reports ({named}): name the folder"
        )
    return folders.pop(), any(report.is_named for report in reports)
