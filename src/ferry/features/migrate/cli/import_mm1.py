"""`ferry migrate import-mm1`: from MirrorMaker 1's command line and files to one MirrorMaker 2 file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table, print_warning, write_output
from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import enum, filled, many
from ferry.config.keys import values
from ferry.config.login.jaas import jaas_file
from ferry.config.settings import read_text
from ferry.config.text.problem import BadValue
from ferry.config.text.properties import parse
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.arguments import Arguments, read_arguments
from ferry.features.migrate.acts.mm1.convert import Conversion, FlowTopics, Request, convert, zookeeper_of
from ferry.features.migrate.acts.mm1.keys import PRODUCER_KEYS
from ferry.features.migrate.acts.mm1.login import Login, read_login
from ferry.features.migrate.acts.mm1.offsets import read_offsets
from ferry.features.migrate.acts.mm1.outcome import Fate, Outcome
from ferry.features.migrate.acts.mm1.side import SideFile
from ferry.model import located
from ferry.words import count_of

TO_DECIDE = 1
"""The exit code with --strict if the new file cannot express all of the old set-up."""


@command(flow=False, connects=False, config=False, table=True)
def import_mm1_command(
    context: Context,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write a new file here instead of to standard output."),
    ] = None,
    source_servers: Annotated[
        list[str] | None,
        typer.Option(
            "--source.bootstrap.servers",
            metavar="HOST:PORT,...",
            help="Bootstrap servers for a consumer file that names only ZooKeeper. Repeat it for several files, in "
            "their order.",
        ),
    ] = None,
    target_servers: Annotated[
        str | None,
        typer.Option(
            "--target.bootstrap.servers",
            metavar="HOST:PORT,...",
            help="Bootstrap servers for a producer file that names only ZooKeeper.",
        ),
    ] = None,
    source_aliases: Annotated[
        list[str] | None,
        typer.Option("--source.alias", metavar="NAME", help="Alias of a source cluster. Repeat it for several."),
    ] = None,
    target_alias: Annotated[
        str, typer.Option("--target.alias", metavar="NAME", help="Alias of the target cluster.")
    ] = "target",
    offsets: Annotated[
        list[Path] | None,
        typer.Option(
            "--offsets",
            metavar="CSV",
            help="Offsets of MirrorMaker 1's group (kafka-consumer-groups.sh --export). Repeat it for several.",
        ),
    ] = None,
    copy_secrets: Annotated[
        bool,
        typer.Option(
            "--copy-secrets",
            help="Write passwords into the new file. Without it, the new file refers to the old files.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if something is left for you to decide: exit code 1.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would become of each option. Writes no file.")
    ] = False,
) -> int:
    """Convert a MirrorMaker 1 setup to a MirrorMaker 2 file, and report what became of each option.

    Put MirrorMaker 1's own options after the command's: --consumer.config FILE (once for each source),
    --producer.config FILE, --whitelist REGEX, --blacklist REGEX, --num.streams N and all others. All spellings of its
    versions are known. The whole command line may be pasted, from kafka-mirror-maker.sh on.

    The report marks what you must decide with `look`. With --strict these make the exit code 1.
    """
    arguments = read_arguments(context.rest)
    consumers = tuple(_side_file(given.value) for given in arguments.all("consumer.config"))
    producer = _side_file(arguments.all("producer.config")[0].value)
    _look_at_output(output, copy_secrets=copy_secrets)
    ask = not context.for_programs and sys.stdin.isatty()
    conversion = convert(
        Request(
            arguments=arguments,
            consumers=consumers,
            producer=producer,
            login=_login(arguments),
            source_aliases=_aliases(source_aliases, len(consumers), target_alias),
            target_alias=target_alias,
            source_servers=_source_servers(consumers, source_servers or [], ask=ask),
            target_servers=target_servers or _asked_servers(producer, "target", ask=ask),
            source_offsets=_one_each(
                [read_offsets(read_text(path), str(path)) for path in offsets or ()], len(consumers), "--offsets"
            ),
            copy_secrets=copy_secrets,
        )
    )
    if output is None and not dry_run:
        context.refuse_csv("the new file, which --output would write,")
    if output is not None and not dry_run:
        # It may hold passwords, or show where they are.
        write_output(output, conversion.text)
    if context.for_programs:
        context.answer(lambda: {**_json(conversion, output), "dry_run": dry_run}, lambda: _show_rows(conversion))
    elif not context.quiet:
        _print(conversion, output, dry_run=dry_run)
    else:
        if output is None:
            echo(conversion.text, end="", flush=True)
        for outcome in conversion.to_decide():
            print_warning(_sentence(outcome))
    return TO_DECIDE if strict and conversion.to_decide() else 0


def _side_file(name: str) -> SideFile:

    path = Path(name)
    return SideFile(name=name, path=path.resolve(), entries=parse(read_text(path), name))


def _login(arguments: Arguments) -> Login | None:
    """Read the JAAS file of the pasted command line, or the one of KAFKA_OPTS, which Kafka's scripts use."""

    path = Path(arguments.jaas_file) if arguments.jaas_file is not None else jaas_file()
    if path is None:
        return None
    try:
        return read_login(read_text(path), str(path), path.resolve())
    except BadValue as error:
        raise BadInput(located(str(path), error.message)) from None


def _look_at_output(output: Path | None, *, copy_secrets: bool) -> None:
    if output is not None and os.path.lexists(output):
        raise BadInput(f"--output {output} exists: name another file")
    if output is None and copy_secrets:
        raise BadInput("--copy-secrets would show passwords on standard output: add --output FILE")


def _aliases(given: list[str] | None, count: int, target: str) -> tuple[str, ...]:

    aliases = given or (["source"] if count == 1 else [f"source{number}" for number in range(1, count + 1)])
    if len(aliases) != count:
        raise BadInput(f"{_too_few('--source.alias', len(aliases), count)}: name each")
    for option, alias in (*(("--source.alias", alias) for alias in aliases), ("--target.alias", target)):
        try:
            values.name(alias)
        except BadValue as error:
            raise BadInput(located(option, error.message)) from None
    if len({*aliases, target}) != count + 1:
        raise BadInput(f"aliases {', '.join([*aliases, target])}: two clusters have one name; give each its own")
    return tuple(aliases)


def _one_each(given: Sequence[str], count: int, option: str) -> tuple[str | None, ...]:
    if given and len(given) != count:
        raise BadInput(f"{_too_few(option, len(given), count)}: give one for each")
    return tuple(given) or (None,) * count


def _too_few(option: str, given: int, files: int) -> str:
    return f"{option} is given {count_of(given, 'time')} for {count_of(files, 'consumer file')}"


def _source_servers(consumers: Sequence[SideFile], given: list[str], *, ask: bool) -> tuple[str | None, ...]:
    """Return the servers for each consumer file: those given for all, or for those without any, or from the prompt."""
    lacking = [file for file in consumers if _lacks_servers(file)]
    if given and len(given) == len(lacking):
        left = iter(given)
        return tuple(next(left) if file in lacking else None for file in consumers)
    if given:
        return _one_each(given, len(consumers), "--source.bootstrap.servers")
    return tuple(_asked_servers(file, "source", ask=ask) for file in consumers)


def _lacks_servers(file: SideFile) -> bool:

    names = PRODUCER_KEYS[0].names
    return not any(entry.key in names for entry in file.entries)


def _asked_servers(file: SideFile, what: str, *, ask: bool) -> str | None:

    if not ask or not _lacks_servers(file):
        return None
    zookeeper = zookeeper_of(file)
    names = f"names ZooKeeper only ({zookeeper.value})" if zookeeper is not None else "names none"
    answer: str = typer.prompt(
        f"Bootstrap servers of the {what} cluster (host:port, ...); {file.name} {names}", err=True
    )
    return answer


FLOW_TOPICS = Form(
    FlowTopics,
    F("source", "flow.source"),
    F("target", "flow.target"),
    F("topics", kind=many()),
    F("topics_exclude", kind=many()),
)

OPTION = Form(
    Outcome,
    F("file", "place.file", says="null: the command line"),
    F("line", "place.line", least=1, says="null: the command line, or something the file does not contain"),
    F("option"),
    F("value", says="as written; a secret's is hidden"),
    F("fate", kind=enum(Fate), says="look: it is left for you to decide; with --strict the exit code is 1 then"),
    F("became", kind=filled(""), says="the line of the new file; null: none"),
    F("why"),
    name="option",
)


def _json(conversion: Conversion, output: Path | None) -> Json:
    return {
        "file": str(output) if output is not None else None,
        "properties": conversion.text if output is None else None,
        "flows": [FLOW_TOPICS.dump(flow) for flow in conversion.flows],
        "options": [OPTION.dump(outcome) for outcome in conversion.outcomes],
    }


def _show_rows(conversion: Conversion) -> None:
    """Print one row for each option, as the list `options` of the JSON."""
    columns = ("file", "line", "option", "value", "fate", "became", "why")
    rows = (OPTION.dump(outcome) for outcome in conversion.outcomes)
    print_table(columns, ([row[name] for name in columns] for row in rows), right=["line"])


def _print(conversion: Conversion, output: Path | None, *, dry_run: bool) -> None:
    """Print the account, and again at its end what is left to decide.

    If the file goes to standard output, the account goes to standard error.
    """
    if output is None:
        echo(conversion.text, end="", flush=True)
    account = sys.stderr if output is None else sys.stdout
    for outcome in conversion.outcomes:
        echo(_sentence(outcome), file=account)
    left = conversion.to_decide()
    if left:
        echo(f"To decide ({len(left)}):", file=account)
        for outcome in left:
            echo(f"  {_sentence(outcome)}", file=account)
    after = "nothing is written" if dry_run else f"next: ferry config check {output or 'FILE'}"
    echo(
        f"{count_of(len(conversion.flows), 'flow')}, {count_of(len(conversion.outcomes), 'option')} accounted for,"
        f" {len(left)} left for you to decide; {after}",
        file=account,
    )


def _sentence(outcome: Outcome) -> str:
    """Write an outcome as `where: option = value: fate: new line; why`."""
    given = f"{outcome.option} = {outcome.value}" if outcome.value else outcome.option
    became = f"{outcome.became}; " if outcome.became else ""
    return f"{outcome.place}: {given}: {outcome.fate.value}: {became}{outcome.why}"
