"""`ferry config new`: a first file, from options or from questions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_json, print_warning, write_new
from ferry.config.client_check import all_problems
from ferry.config.first_file import FirstCluster, first_file
from ferry.config.reading.examine import examine
from ferry.config.text.problem import Severity
from ferry.errors import BadInput
from ferry.files import refuse_taken

OWNER_ONLY = 0o600
"""The file will hold passwords sooner or later."""


@command(flow=False, connects=False, config=False)
def new_command(
    context: Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write. It must not exist.")],
    source: Annotated[str, typer.Option("--source", metavar="ALIAS", help="Alias of the source cluster.")] = "primary",
    target: Annotated[str, typer.Option("--target", metavar="ALIAS", help="Alias of the target cluster.")] = "backup",
    source_servers: Annotated[
        str | None, typer.Option("--source-servers", metavar="HOST:PORT,...", help="Bootstrap servers of the source.")
    ] = None,
    target_servers: Annotated[
        str | None, typer.Option("--target-servers", metavar="HOST:PORT,...", help="Bootstrap servers of the target.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--topics", metavar="LIST", help="Topics to copy, as Java regular expressions.")
    ] = None,
    source_tls: Annotated[
        bool | None, typer.Option("--source-tls/--source-plain", help="Use TLS to the source, or not.")
    ] = None,
    target_tls: Annotated[
        bool | None, typer.Option("--target-tls/--target-plain", help="Use TLS to the target, or not.")
    ] = None,
    source_ca: Annotated[
        str | None,
        typer.Option("--source-ca", metavar="PEM", help="File of the source's certificate authorities. Turns TLS on."),
    ] = None,
    target_ca: Annotated[
        str | None,
        typer.Option("--target-ca", metavar="PEM", help="File of the target's certificate authorities. Turns TLS on."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and show the file. Writes nothing.")] = False,
) -> int:
    """Write a first file and check it. At a terminal, ask for each value that no option gives."""
    there = FirstCluster(
        alias=source,
        servers=_asked(source_servers, "--source-servers", f"Brokers of {source} (host:port, ...)"),
        tls=_agreed(source_tls, ca=source_ca, question=f"TLS to {source}?"),
        ca=source_ca,
    )
    here = FirstCluster(
        alias=target,
        servers=_asked(target_servers, "--target-servers", f"Brokers of {target} (host:port, ...)"),
        tls=_agreed(target_tls, ca=target_ca, question=f"TLS to {target}?"),
        ca=target_ca,
    )
    text = first_file(there, here, _asked(topics, "--topics", "Topics to copy (Java regular expressions)", ".*"))
    examined = examine(text, str(out))
    problems = all_problems(examined)
    for problem in problems:
        if problem.severity is Severity.ERROR:
            option = _option(problem.key, there, here)
            raise BadInput(f"{option}: {problem.message}; nothing is written")
    refuse_taken(out) if dry_run else write_new(out, text, mode=OWNER_ONLY)
    flow = str(examined.flows[0].flow)
    warnings = [str(problem) for problem in problems]
    for side, tls, ca in (("source", source_tls, source_ca), ("target", target_tls, target_ca)):
        if tls is None and ca is None and not sys.stdin.isatty():
            warnings.append(
                f"connections to the {side} are not encrypted: give --{side}-tls to encrypt them, or --{side}-plain to "
                "accept it"
            )
    if context.as_json:
        body = {"file": str(out), "flow": flow, "warnings": warnings, "dry_run": dry_run}
        print_json({**body, "properties": text} if dry_run else body)
        return 0
    for warning in warnings:
        print_warning(warning)
    if dry_run:
        echo(text, end="")
        return 0
    echo(f"{out} is written; next: ferry plan --config {out} '{flow}'")
    return 0


def _option(key: str, source: FirstCluster, target: FirstCluster) -> str:
    """Return the option that a key of the new file comes from."""
    for cluster, name in ((source, "source"), (target, "target")):
        if key.startswith(f"{cluster.alias}.ssl."):
            return f"--{name}-ca"
        if key == f"{cluster.alias}.bootstrap.servers":
            return f"--{name}-servers"
    return "--source, --target" if key == "clusters" else "--topics" if key.endswith(".topics") else key


def _asked(value: str | None, option: str, question: str, default: str | None = None) -> str:
    if value is not None:
        return value
    if not sys.stdin.isatty():
        if default is not None:
            return default
        raise BadInput(f"{option} is missing, and there is no terminal to ask at; give {option}")
    return str(typer.prompt(question, default=default))


def _agreed(value: bool | None, *, ca: str | None, question: str) -> bool:
    if value is False and ca is not None:
        raise BadInput(f"authorities {ca} are given for a connection without TLS; omit one of the two")
    if value is not None or ca is not None:
        return True if ca is not None else bool(value)
    return sys.stdin.isatty() and typer.confirm(question, default=True)
