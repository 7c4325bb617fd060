"""`ferry config check`: the effective configuration with its origins, and everything wrong with the file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.desk import Desk, JsonOption, QuietOption, VerboseOption
from ferry.cli.output import count_of, print_json, print_table

if TYPE_CHECKING:  # the command line starts light
    from ferry.config.cluster import ClusterConfig
    from ferry.config.effective import Effective
    from ferry.config.examine import Examined
    from ferry.config.findings import Setting
    from ferry.config.problem import Problem

BAD_INPUT = 2

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The MirrorMaker 2 file; also --config and FERRY_CONFIG.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="A warning, such as an unknown key, fails as well.")]


def check_command(
    ctx: typer.Context,
    file: FileArgument = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Show what the file means: every value of every flow with its line, what is not needed, what is wrong.

    Exit code 2 when something is wrong; with --strict also when something is doubtful.
    """
    # Imported here: the command line starts light.
    from ferry.config.examine import examine
    from ferry.config.problem import Severity
    from ferry.config.settings import read_text

    desk = Desk.of(ctx, config=file, as_json=as_json, quiet=quiet, verbose=verbose)
    path = desk.config_file()
    examined = examine(read_text(path), str(path))
    failed = any(strict or problem.severity is Severity.ERROR for problem in examined.problems)
    if desk.as_json:
        from ferry.cli.config_shapes import check_json

        print_json(check_json(examined))
    else:
        _show(examined, quiet=desk.quiet)
    return BAD_INPUT if failed else 0


def _show(examined: Examined, *, quiet: bool) -> None:
    from ferry.config.effective import effective

    if not quiet:
        _show_clusters(examined)
        for flow in effective(examined):
            _show_flow(flow)
        for other in examined.disabled:
            print(f"\nflow {other}: not enabled")
        _show_unneeded(examined)
    _show_problems(examined.problems)


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


def _show_flow(flow: Effective) -> None:
    print(f"\nflow {flow.flow}")
    # What the file says first, in file order; then the defaults.
    ranked = sorted((*flow.settings, *flow.clients), key=lambda setting: setting.line or sys.maxsize)
    print_table(["from", "setting", "value"], (_row(setting) for setting in ranked))
    for departure in flow.departures:
        print(f"not MirrorMaker 2's default: {departure}")


def _row(setting: Setting) -> list[str]:
    return [_origin(setting.line), setting.name, setting.value]


def _origin(line: int | None) -> str:
    return "default" if line is None else f"line {line}"


def _show_unneeded(examined: Examined) -> None:
    if not examined.unneeded:
        return
    print("\nknown, but not needed by Ferry")
    print_table(["line", "key", "why"], ([one.line, one.key, one.why] for one in examined.unneeded), right=["line"])


def _show_problems(problems: tuple[Problem, ...]) -> None:
    from ferry.config.problem import Severity

    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if problems:
        print()
    for problem in problems:
        print(f"{problem.severity.value}: {problem}")
    warnings = len(problems) - len(errors)
    print(f"{count_of(len(errors), 'error')}, {count_of(warnings, 'warning')}")
