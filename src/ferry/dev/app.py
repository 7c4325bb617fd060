"""The commands `ferry dev up`, `status` and `down`."""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ferry.cli.global_options import FormOption, JsonOption, form_of
from ferry.cli.measures import lasting
from ferry.cli.output import Form, echo, print_answer, print_table
from ferry.cli.plain import PlainCommand, PlainGroup, command_class, shown_examples
from ferry.dev.broker import START_SECONDS
from ferry.dev.cluster import ClusterStatus, down, status, up_all
from ferry.dev.preview import Would, preview_down, preview_up
from ferry.dev.spec import ClusterSpec
from ferry.errors import BadInput
from ferry.words import count_of

HOME_VARIABLE = "FERRY_DEV_HOME"
DEFAULT_HOME = Path(".ferry/dev")

app = typer.Typer(
    name="dev",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Home = Annotated[
    Path,
    typer.Option(
        envvar=HOME_VARIABLE,
        metavar="DIR",
        readable=False,  # the code that reads the folder reports it better
        help="Folder with the records, data and logs of the clusters, below the working directory unless absolute.",
        show_default=True,
    ),
]
_OLD = {"--clusters": "--names"}
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress on standard error.")]
_WOULD = {
    Would.MAKE: "would be made and started",
    Would.START: "would be started on its data",
    Would.LEAVE: "runs already: left as it is",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How a command is to answer."""

    form: Form = Form.TABLE
    quiet: bool = False


@app.callback()
def dev(ctx: typer.Context, form: FormOption = None, as_json: JsonOption = False, quiet: Quiet = False) -> None:
    """Real Kafka clusters on this machine."""
    before = ctx.obj or Answering()  # `ferry` passes on the options before `dev`
    ctx.obj = Answering(form=form_of(form, as_json=as_json) or before.form, quiet=quiet or before.quiet)


@app.command("up", cls=command_class(_OLD, {}), epilog=shown_examples("dev up --names source,target --brokers 3"))
def up_command(
    ctx: typer.Context,
    names: Annotated[
        str, typer.Option("--names", metavar="A,B", help="Names of the clusters, separated by commas.")
    ] = "source,target",
    brokers: Annotated[int, typer.Option(metavar="N", help="Brokers of each cluster: 1 or 3.")] = 1,
    kafka: Annotated[
        str, typer.Option(metavar="VERSION", help="Kafka version: one that `make setup` fetched.")
    ] = "4.3.0",
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="NAME=VALUE", help="A broker setting NAME=VALUE. May be repeated."),
    ] = None,
    seconds: Annotated[
        float,
        lasting("--seconds", "How long to wait until the clusters serve.", default=START_SECONDS),
    ] = START_SECONDS,
    home: Home = DEFAULT_HOME,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be started. Starts nothing.")] = False,
    form: FormOption = None,
    as_json: JsonOption = False,
    quiet: Quiet = False,
) -> None:
    """Start clusters, or continue with those of the home folder, and wait until they serve."""
    settings = _settings(properties or [])
    specs = [ClusterSpec(name=name, brokers=brokers, version=kafka, properties=settings) for name in _names(names)]
    if dry_run:
        _show_preview(specs, home, form=_form(ctx, form, as_json=as_json))
        return
    with _waiting(f"Starting {', '.join(spec.name for spec in specs)}", quiet=quiet or ctx.obj.quiet):
        up_all(specs, home=home, seconds=seconds)
    chosen = {spec.name for spec in specs}
    _show(
        [cluster for cluster in status(home) if cluster.name in chosen],
        form=_form(ctx, form, as_json=as_json),
    )


@app.command("status", cls=PlainCommand, epilog=shown_examples("dev status"))
def status_command(
    ctx: typer.Context,
    home: Home = DEFAULT_HOME,
    form: FormOption = None,
    as_json: JsonOption = False,
    quiet: Quiet = False,
) -> None:
    """Show the clusters of the home folder and whether their processes live."""
    del quiet  # nothing is printed but the answer
    _refuse_mistyped(home)
    _show(status(home), form=_form(ctx, form, as_json=as_json))


@app.command("down", cls=command_class(_OLD, {}), epilog=shown_examples("dev down", "dev down --names source --delete"))
def down_command(
    ctx: typer.Context,
    names: Annotated[
        str | None,
        typer.Option("--names", metavar="A,B", help="Names of the clusters, separated by commas. Default: all."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete data and logs, too.")] = False,
    home: Home = DEFAULT_HOME,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be stopped. Stops nothing.")] = False,
    form: FormOption = None,
    as_json: JsonOption = False,
    quiet: Quiet = False,
) -> None:
    """Stop exactly what `up` started; the data stays, unless `delete` is given."""
    wanted = None if names is None else _names(names)
    _refuse_mistyped(home)
    if dry_run:
        stopped = preview_down(home, wanted)
    else:
        with _waiting("Stopping clusters", quiet=quiet or ctx.obj.quiet):
            stopped = down(home, wanted, delete=delete)
    if not stopped:
        sentence = f"no cluster is below {home}"
    elif dry_run:
        also = ", and their data and logs deleted" if delete else ""
        sentence = f"would be stopped: {', '.join(stopped)}{also}"
    else:
        sentence = f"stopped {', '.join(stopped)}"
    print_answer(
        lambda: {"stopped": stopped, "deleted": delete, "dry_run": dry_run},
        lambda: echo(sentence),
        form=_form(ctx, form, as_json=as_json),
        table=lambda: print_table(["cluster"], [[name] for name in stopped]),
    )


def _form(ctx: typer.Context, form: Form | None, *, as_json: bool) -> Form:
    named: Form = form_of(form, as_json=as_json) or ctx.obj.form
    return named


def _refuse_mistyped(home: Path) -> None:
    """Raise BadInput for a folder that does not exist. The default folder may be missing: there is no cluster yet."""
    if home != DEFAULT_HOME and not os.path.isdir(home):  # noqa: PTH112 - Path.is_dir raises without the right to read
        raise BadInput(f"--home {home} is not a folder: name the one that ferry dev up was given")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise BadInput(f"--names {text!r} must name at least one cluster, and each once")
    return names


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise BadInput(
                f"--property {pair!r} is not NAME=VALUE: write one setting of the broker, such as num.partitions=3"
            )
        settings[name] = value
    return settings


def _waiting(sentence: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Show at a terminal that work is in progress; a pipe gets nothing."""
    return nullcontext() if quiet or not sys.stderr.isatty() else Console(stderr=True).status(sentence)


def _show_preview(specs: Sequence[ClusterSpec], home: Path, *, form: Form) -> None:
    found = preview_up(specs, home)
    lines = [
        f"{one.name} (Kafka {one.version}, {count_of(one.brokers, 'broker')}) {_WOULD[one.would]}" for one in found
    ]
    columns = ["cluster", "kafka", "brokers", "would"]
    print_answer(
        lambda: {"dry_run": True, "clusters": [asdict(one) for one in found]},
        lambda: echo(*lines, sep="\n"),
        form=form,
        table=lambda: print_table(columns, [[one.name, one.version, one.brokers, one.would.value] for one in found]),
    )


def _show(clusters: Sequence[ClusterStatus], *, form: Form) -> None:
    columns = ["cluster", "kafka", "state", "bootstrap", "brokers (pid)"]
    rows = [
        (cluster.name, cluster.version, cluster.state, cluster.bootstrap, brokers)
        for cluster in clusters
        for brokers in (", ".join(f"{one.node_id} {one.state} ({one.pid or '-'})" for one in cluster.brokers),)
    ]
    print_answer(
        lambda: {"clusters": [asdict(cluster) for cluster in clusters]},
        lambda: print_table(columns, rows),
        form=form,
    )
