"""`ferry config check`: the effective configuration with its origins, and everything wrong with the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table, write_new
from ferry.commands.config.forms import check_json
from ferry.config.account import LineAccount, LineFate, account
from ferry.config.client_check import all_problems
from ferry.config.effective import GROUP_OFFSETS, Effective, effective, enabled_line, overlooked
from ferry.config.flow.cluster import ClusterConfig
from ferry.config.login.environment import from_environment
from ferry.config.reading.examine import Examined, examine
from ferry.config.reading.findings import Setting
from ferry.config.reading.fix import fix as corrected
from ferry.config.reading.typos import shown
from ferry.config.settings import STANDARD_INPUT, properties_text
from ferry.config.text.problem import Problem, Severity, in_file_order
from ferry.config.text.properties import parse_all
from ferry.files import PRIVATE, refuse_taken
from ferry.words import count_of

BAD_INPUT = 2

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="The MirrorMaker 2 file; - is standard input. Default: --config or FERRY_CONFIG.",
        readable=False,
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Fail on warnings, too, for example on an unknown key.")]
FixOption = Annotated[
    Path | None,
    typer.Option("--fix", metavar="OUT", help="Write a corrected file: mistakes fixed, all else unchanged."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show the defaults, too.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="With --fix: show the corrections. Writes no file.")]


@command(flow=False, connects=False, table=True)
def check_command(
    context: Context,
    file: FileArgument = None,
    strict: StrictOption = False,
    every: AllOption = False,
    fix: FixOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Show what the file means: every value of every flow with its line, which keys are not needed, and what is wrong.

    Problems are first and last. Exit code 2 when something is wrong; with --strict also when something is doubtful.
    """
    path = STANDARD_INPUT if file == Path("-") else file or context.config_file()
    text = properties_text(path, None if file else context.variable)
    gone: tuple[Problem, ...] = ()
    written: Path | None = None
    if fix is None:
        examined = examine(text, str(path), from_environment)
    else:
        fixed = corrected(text, str(path), str(fix), from_environment)
        gone, examined, text = fixed.corrected, fixed.left, fixed.left_text
        if not any(problem.severity is Severity.ERROR for problem in all_problems(fixed.left)):
            _write(fix, fixed.text, like=path, dry_run=dry_run)
            written, examined, text = fix, fixed.examined, fixed.text
    examined = context.limited(examined)
    problems = all_problems(examined)
    lines = account(parse_all(text)[0], examined, problems)
    # A line of which the effect is easily overlooked is used all the same.
    problems = in_file_order((*problems, *overlooked(examined)))
    failed = any(strict or problem.severity is Severity.ERROR for problem in problems)

    def show() -> None:
        _show(examined, lines, problems, quiet=context.quiet, every=every)
        _show_corrections(gone, fix, written=written is not None, dry_run=dry_run)

    context.answer(
        lambda: check_json(examined, lines, problems, gone, None if dry_run else written),
        show,
        lambda: _show_lines(lines, problems),
    )
    return BAD_INPUT if failed else 0


def _write(out: Path, text: str, *, like: Path, dry_run: bool) -> None:
    """Write a new file with the rights of the old one: it holds the same secrets.

    A dry run checks that it does not exist.
    """
    if not dry_run:
        write_new(
            out, text, mode=PRIVATE if like == STANDARD_INPUT else like.stat().st_mode & 0o777, name=f"--fix {out}"
        )
    else:
        refuse_taken(out, name=f"--fix {out}")


def _show(
    examined: Examined, lines: tuple[LineAccount, ...], problems: tuple[Problem, ...], *, quiet: bool, every: bool
) -> None:
    """Print the file's meaning between its problems: they are first, and again last, where a terminal shows them."""
    if not quiet and examined.clusters:
        if problems:
            _show_problems(problems)
            echo()
        _show_clusters(examined)
        flows = effective(examined)
        shared = _shared(flows)
        for flow in flows:
            _show_flow(flow, _origin(enabled_line(examined, flow.flow)), shared)
        for other in examined.disabled:
            line = enabled_line(examined, other)
            echo(f"\nflow {other}: not enabled{'' if line is None else f' ({_origin(line)})'}")
        _show_shared(flows, shared, every=every)
        _show_unneeded(examined)
        _show_idle(lines)
        _show_notes(flows)
        echo()
    _show_problems(problems)
    _show_counts(problems)


def _show_lines(lines: tuple[LineAccount, ...], problems: tuple[Problem, ...]) -> None:
    """Print one table of all lines of the file, and the problems."""
    print_table(["line", "key", "what becomes of it", "why"], ([one.line, one.key, one.fate, one.why] for one in lines))
    _show_problems(problems)
    _show_counts(problems)


def _show_clusters(examined: Examined) -> None:
    print_table(
        ["from", "cluster", "bootstrap servers"],
        (
            [_origin(examined.servers_line(alias)), alias, _servers(cluster)]
            for alias, cluster in examined.clusters.items()
        ),
    )


def _servers(cluster: ClusterConfig) -> str:
    return cluster.bootstrap_servers if cluster.connection is None else f"Airflow connection {cluster.connection}"


def _shared(flows: tuple[Effective, ...]) -> list[Setting]:
    """Return the defaults that all flows share, to be shown once."""
    if not flows:
        return []
    common = set(flows[0].settings).intersection(*(flow.settings for flow in flows[1:]))
    return [setting for setting in flows[0].settings if setting.line is None and setting in common]


def _show_flow(flow: Effective, enabled: str, shared: list[Setting]) -> None:
    echo(f"\nflow {flow.flow} (enabled on {enabled})")
    # First the settings of the file, in file order; then the defaults.
    own = [one for one in flow.settings if one not in shared and (one.line is not None or one.is_acted_on)]
    ranked = sorted((*own, *flow.clients), key=lambda setting: setting.line or sys.maxsize)
    print_table(["from", "setting", "value"], (_row(setting) for setting in ranked))


def _show_shared(flows: tuple[Effective, ...], shared: list[Setting], *, every: bool) -> None:
    whose = "all flows" if len(flows) > 1 else "the flow"
    acted_on = [setting for setting in shared if setting.is_acted_on]
    if flows and not every:
        echo(f"\n{count_of(len(acted_on), 'setting')} of {whose} are at their defaults: --all shows them")
    elif flows:
        echo(f"\ndefaults of {whose}")
        print_table(["from", "setting", "value"], (_row(setting) for setting in acted_on if setting.value))
        echo(f"not set: {', '.join(setting.name for setting in acted_on if not setting.value)}")
        idle = {one.name: one for flow in flows for one in flow.settings if one.line is None and not one.is_acted_on}
        if idle:
            echo(f"accepted but not implemented, at their defaults: {', '.join(idle)}")


def _show_notes(flows: tuple[Effective, ...]) -> None:
    """Print the defaults that differ from MirrorMaker 2's; those that are warnings are printed with the problems."""
    notes = dict.fromkeys(note for flow in flows for note in flow.departures if not note.startswith(GROUP_OFFSETS))
    if notes:
        echo()
    for note in notes:
        where = [str(flow.flow) for flow in flows if note in flow.departures]
        which = "" if len(where) == len(flows) else f" ({', '.join(where)})"
        echo(f"note: {note}{which}")


def _row(setting: Setting) -> list[str]:
    by = ""
    if setting.name == "ferry.start" and setting.key is not None and not setting.key.endswith(setting.name):
        by = f" (by {setting.key})"
    elif not setting.is_acted_on:
        by = " (not acted on)"
    nothing = "(not set)" if setting.line is None else "(empty)"
    return [_origin(setting.line), f"{setting.name}{by}", setting.value or nothing]


def _origin(line: int | None) -> str:
    return "default" if line is None else f"line {line}"


def _show_unneeded(examined: Examined) -> None:
    if not examined.unneeded:
        return
    echo("\nknown, but not needed by Ferry")
    print_table(["line", "key", "why"], ([one.line, one.key, one.why] for one in examined.unneeded), right=["line"])


def _show_idle(lines: tuple[LineAccount, ...]) -> None:

    idle = [one for one in lines if one.fate in (LineFate.OVERRIDDEN, LineFate.WITHOUT_EFFECT)]
    if idle:
        echo("\nwithout effect")
        print_table(["line", "key", "why"], ([one.line, one.key, one.why] for one in idle), right=["line"])


def _show_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        echo(f"{problem.severity.value}: {problem}")


def _show_counts(problems: tuple[Problem, ...]) -> None:
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    echo(f"{count_of(errors, 'error')}, {count_of(len(problems) - errors, 'warning')}")


def _show_corrections(gone: tuple[Problem, ...], out: Path | None, *, written: bool, dry_run: bool) -> None:

    for problem in gone:
        place = f"{problem.file}: added" if problem.line is None else f"{problem.file}:{problem.line}"
        echo(f"corrected: {place}: {shown(problem.correction or ()) or 'removed'}")
    if out is not None:
        done = "would be written" if dry_run else "written"
        echo(f"{done}: {out}" if written else f"not written: {out}; the errors above are yours to correct")
