"""The program `ferry`: its commands, and how errors leave it."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from ferry import __version__
from ferry.cli.global_options import (
    FormOption,
    GlobalOptions,
    JsonOption,
    NothingNamed,
    QuietOption,
    VerboseOption,
    form_of,
)
from ferry.cli.lazy import HELP, Rows, Spellings, group_class
from ferry.cli.output import NO_DATA, Unwritten, echo, print_error, take_outlets
from ferry.cli.plain import spelled, usage_of
from ferry.cli.stopping import COPYING, Stopped, are_held, release_signals
from ferry.errors import KINDS, BadInput, FerryError, kind_of
from ferry.words import has_utf8

_MORE = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
"""Typer's sentence about words that no parameter takes."""

STOPPED = 1
UNWRITTEN = 1
HINDERED = 1
BAD_INPUT = 2
INTERRUPTED = 130


def _show_version(asked: bool) -> None:
    if asked:
        echo(f"ferry {__version__}")
        raise typer.Exit


def ferry(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="FERRY_CONFIG",
            help="The MirrorMaker 2 file with clusters and flows.",
            readable=False,  # the code that reads the file reports it better
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            envvar="FERRY_CLUSTERS",
            metavar="A B ...",
            help="The local clusters: use only flows into these, like MirrorMaker 2. May be anywhere on the command "
            "line.",
        ),
    ] = None,
    form: FormOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options that every command also takes after its name."""
    del version  # its callback has ended the program
    if ctx.invoked_subcommand not in COPYING:
        release_signals()
    ctx.obj = GlobalOptions(
        config=config,
        variable="FERRY_CONFIG" if str(ctx.get_parameter_source("config")).endswith("ENVIRONMENT") else None,
        clusters=clusters,
        form=form_of(form, as_json=as_json),
        quiet=quiet,
        verbose=verbose,
    )


def built(rows: Rows, old: Spellings) -> Any:
    """Return the program of these commands, as Typer's group; `old` are spellings that it takes, too."""
    app = typer.Typer(
        name="ferry",
        cls=group_class(rows, old=old),
        help="Copy Kafka topics between clusters in bounded, audited, exactly-once micro-runs.",
        epilog="Exit codes: 0 done; 1 partial, failed, or the lag is over a limit; 2 bad input, or refused before "
        "start; 3 a cluster is unreachable; 4 a switch has begun, and stopped at a step.",
        context_settings=dict(HELP),
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(ferry)
    return get_command(app)


def run(program: Callable[[], Any], arguments: Sequence[str]) -> None:
    """Run a command line of the program and exit.

    An error is one sentence on standard error; with --json also an object.
    """
    given = list(arguments)
    # Ctrl-C ends a command without a traceback; `ferry run` handles it itself while it copies.
    if not are_held():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    take_outlets()
    code = 0
    try:
        code = _run(program, given)
        sys.stdout.flush()
    except Unwritten as error:
        print_error(f"the answer could not be written ({error}): free disk space, or write it elsewhere")
        code = code or UNWRITTEN
    sys.exit(code)


def _clusters_first(arguments: list[str], commands: set[str]) -> list[str]:
    """Return the line with `--clusters A B` first: as in MirrorMaker 2 it may be anywhere and takes all words after it.

    After `dev` it is that command's own option, and names local clusters to start or stop.
    """
    found: list[str] = []
    others: list[str] = []
    asked = taking = False
    for at, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if word == "dev" and not commands.intersection(others) and others[-1:] != ["--config"]:
            others += arguments[at:]
            break
        if option == "--clusters":
            asked, taking = True, not equals
            found += value.replace(",", " ").split()
        elif (
            taking
            and not word.startswith("-")
            and "->" not in word
            and (word not in commands or commands.intersection(others))
        ):
            found += word.replace(",", " ").split()
        else:
            taking = False
            others += [word]
    if asked and not found:
        raise BadInput("--clusters names no cluster: write --clusters A B, or omit it for all clusters")
    return [f"--clusters={' '.join(found)}", *others] if found else others


def _refuse_no_utf8(arguments: list[str]) -> None:
    """Raise BadInput for the first word that UTF-8 cannot write: no ledger and no report would take it."""
    for before, word in pairwise(["", *arguments]):
        if has_utf8(word):
            continue
        option, equals, value = word.partition("=")
        if not (word.startswith("-") and equals):
            option, value = before if before.startswith("-") else "the word", word
        raise BadInput(
            f"{option} {value!r} has bytes that are not UTF-8: write it in a terminal with a UTF-8 locale, or with "
            "other letters"
        )


def _taken(given: list[str], ordered: list[str]) -> str:
    """Return what to add to an error if `--clusters` may have taken a file or a command for an alias."""
    words = [alias for word in ordered[:1] if word.startswith("--clusters=") for alias in word[11:].split()]
    if "--clusters" not in given or not words:
        return ""
    return f" (--clusters took {', '.join(words)} as its aliases: put it at the end, or write --clusters=A,B)"


def _wants_json(arguments: list[str]) -> bool:
    """Return whether the answer is to be JSON, so that errors are, too."""
    named = {"--json", "-ojson", "--format=json"}.intersection(arguments)
    return bool(named) or any(one in ("-o", "--format") and value == "json" for one, value in pairwise(arguments))


def _as_data(error: FerryError) -> Mapping[str, object]:
    """Return the code and the facts of the error's sentence; nothing if it is a plain text."""
    # Only an error in JSON needs these.
    from ferry.ledger.sentence_codec import sentence_fields  # noqa: PLC0415
    from ferry.model.sentence import sentence_of  # noqa: PLC0415

    return sentence_fields(sentence_of(error))


def _run(program: Callable[[], Any], arguments: list[str]) -> int:
    as_json = _wants_json(arguments)
    ordered = arguments
    try:
        _refuse_no_utf8(arguments)
        whole = program()
        ordered = _clusters_first(arguments, {*whole.commands, *(words[0] for words in whole.old)})
        return int(whole(args=ordered, prog_name="ferry", standalone_mode=False) or 0)
    except NothingNamed as error:
        print_error(f"{error}{_taken(arguments, ordered)}", kind=KINDS[BadInput] if as_json else None)
        return error.exit_code
    except FerryError as error:
        print_error(str(error), kind=kind_of(error) if as_json else None, data=_as_data(error) if as_json else NO_DATA)
        return error.exit_code
    except TyperException as error:
        # Without a command the help is the message: to ask for it is not an error.
        message = _sentence(error)
        if message:
            print_error(f"{message}{_taken(arguments, ordered)}", kind=KINDS[BadInput] if as_json else None)
        return BAD_INPUT
    except OSError as error:
        if "--verbose" in arguments:
            traceback.print_exc()
        place = f"{error.filename}: " if isinstance(error.filename, str | os.PathLike) else ""
        why = f"{place}{error.strerror or str(error) or type(error).__name__}"
        remedy = "correct the path, its permissions or the disk; --verbose shows where it happened"
        print_error(f"this machine refuses something ({why}): {remedy}", kind="machine" if as_json else None)
        return HINDERED
    except (Stopped, KeyboardInterrupt) as error:
        message, code = "interrupted; what was committed stays, and the next run continues there", INTERRUPTED
        if isinstance(error, Stopped):
            message, code = f"{error} arrived before anything began: nothing was written", STOPPED
        print_error(message, kind="interrupted" if as_json else None)
        return code


def _sentence(error: TyperException) -> str:
    """Return what is wrong with a command line, and the usage or what would fit."""
    found: Any = error.__cause__
    ctx: Any = getattr(error, "ctx", None)
    message = str(error.format_message()).strip()
    param = error.param if isinstance(error, typer.BadParameter) else None
    if ctx is not None and param is not None and message.startswith("Missing "):
        return f"{ctx.command_path} needs {spelled(param)}: write {usage_of(ctx.command_path, ctx.command)}"
    more = None if ctx is None else _MORE.fullmatch(message)
    if more is not None:
        usage = usage_of(ctx.command_path, ctx.command)
        return f"{ctx.command_path} takes no further word {more[1]!r}: write {usage}, and omit the rest"
    if param is None or not hasattr(found, "errors"):
        return message
    problem = found.errors()[0]
    kind, value = str(problem["type"]), problem["input"]
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    bounds = f" from {low:.12g} to {high:.12g}" if low is not None and high is not None else ""
    if low is not None and high is None:
        bounds = f" of at least {low:.12g}"
    noun = "whole number" if "int" in str(getattr(param.type_descriptor, "annotation", "")) else "number"
    name = param.opts[-1] if param.opts[-1].startswith("-") else str(param.name).upper()
    if kind.endswith("_parsing"):
        return f"{name} {value!r} is not a {noun}: write one{bounds}, without a unit"
    if kind.endswith("_equal"):
        return f"{name} {value} is out of range: write a {noun}{bounds}"
    return f"{message} ({name} {value!r})"
