"""`ferry ledger export` and `ferry ledger rebuild`: the ledger as a file, and restored after its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import person
from ferry.cli.output import echo
from ferry.cli.progress_bar import counted
from ferry.errors import BadInput
from ferry.features.archive.rules.sentences import from_file, in_file, replaced

if TYPE_CHECKING:
    from ferry.features.archive.acts.export import LinesWriter
    from ferry.features.archive.acts.rebuild import Rebuilt

JSON_LINES = ".jsonl"
PARQUET = ".parquet"


@command()
def export_command(
    context: Context,
    to: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FILE",
            help="The file to write. It must not exist. .jsonl is JSON lines, .parquet is Parquet.",
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count all records. Writes nothing.")] = False,
) -> int:
    """Write every committed record of the flow's ledger to a file. Runs may be active meanwhile."""
    from ferry.features.archive.acts.export import JsonLines, export_ledger  # noqa: PLC0415 - brings the Kafka clients

    make: Callable[[IO[bytes]], LinesWriter] = _parquet().ParquetLines if _is_parquet(to) else JsonLines
    chosen = context.flow()
    with counted(None, f"Reading the ledger of {chosen.flow}", quiet=context.quiet) as shown:

        def read(done: int, total: int) -> None:
            shown(done, f"{done} of {total} offsets of the ledger", total)

        records, upto = export_ledger(
            chosen, to, make, patience_s=context.patience_s, dry_run=dry_run, on_progress=read
        )
    context.answer(
        lambda: {"flow": str(chosen.flow), "file": str(to), "records": records, "upto": upto, "dry_run": dry_run},
        lambda: echo(in_file(records, upto, to, dry_run=dry_run)),
    )
    return 0


@command()
def rebuild_command(
    context: Context,
    source: Annotated[Path, typer.Option("--input", metavar="FILE", help="A file that `ferry ledger export` wrote.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything. Writes nothing.")] = False,
) -> int:
    """Rebuild a lost ledger from an export, with each record at its old offset.

    What was copied after the export is not in it. Runs refuse such partitions, because their copies hold records that
    the ledger does not know. Exit code 1 when there is such a partition.
    """
    from ferry.features.archive.acts.export import json_lines  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.archive.acts.rebuild import rebuild_ledger  # noqa: PLC0415 - as above
    from ferry.features.archive.cli.forms import rebuilt_json  # noqa: PLC0415 - as above

    lines: Callable[[Path], Iterator[bytes]] = _parquet().parquet_lines if _is_parquet(source) else json_lines
    chosen = context.flow()
    with counted(None, f"Reading {source}", quiet=context.quiet) as shown:

        def written(at: int, upto: int) -> None:
            shown(at, f"{at} of {upto} offsets of the ledger written", upto)

        done = rebuild_ledger(
            chosen, source, lines, who=person(), dry_run=dry_run, patience_s=context.patience_s, on_progress=written
        )
    context.answer(
        lambda: rebuilt_json(chosen.flow, source, done, dry_run=dry_run),
        lambda: _show_rebuilt(done, source, dry_run=dry_run),
    )
    return 1 if done.ahead else 0


def _show_rebuilt(done: Rebuilt, source: Path, *, dry_run: bool) -> None:
    echo(from_file(done.records, done.upto, source, dry_run=dry_run))
    if done.replaced:
        echo(replaced(done.replaced, done.carried, dry_run=dry_run))
    for one in done.ahead:
        has = f"has it up to {one.exported}" if one.exported else "has nothing of it"
        echo(
            f"{one.target} was copied up to source offset {one.copied}, the export {has}: it will be refused; find a "
            "newer export"
        )


def _is_parquet(path: Path) -> bool:
    """Return whether a file's name means Parquet. Raises BadInput if it has neither known ending."""
    if path.suffix not in (JSON_LINES, PARQUET):
        raise BadInput(f"the name {path} has no format: let it end in {JSON_LINES} or {PARQUET}")
    return path.suffix == PARQUET


def _parquet() -> ModuleType:
    try:
        from ferry.features.archive.acts import parquet as ledger_parquet  # noqa: PLC0415 - pyarrow comes with Spark
    except ImportError:
        raise BadInput(
            f"Parquet needs pyarrow: install ferry-replicator[spark], or let the file's name end in {JSON_LINES}"
        ) from None
    return ledger_parquet
