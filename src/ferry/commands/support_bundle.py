"""`ferry support-bundle`: an archive for those who help with a problem."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.clock import wall_ms
from ferry.codec.form import Json
from ferry.commands.config.forms import check_json
from ferry.commands.forms import lag_json, past_runs_json, plan_json, report_json
from ferry.config.account import account
from ferry.config.client_check import all_problems
from ferry.config.effective import overlooked
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import Role, Side
from ferry.config.login.environment import from_environment
from ferry.config.reading.examine import examine
from ferry.config.settings import properties_text
from ferry.config.text.problem import in_file_order
from ferry.config.text.properties import parse_all
from ferry.config.text.secrets import HIDDEN, is_secret
from ferry.errors import BadInput, FerryError
from ferry.features.doctor.cli.doctor import doctor_json, examination
from ferry.files import PRIVATE, new_file, refuse_taken
from ferry.ledger.history import PastRun, PastState, past_runs
from ferry.words import in_name, to_the_second

RUNS = 20
"""How many of the newest runs of a flow are in it."""
SHORTEST = 4
"""The shortest secret that is searched for: a shorter one occurs by chance."""

README = """What `ferry support-bundle` found at {time}.

Each file holds what a command answers with --json (docs/json.md):
  doctor.json                 ferry doctor: versions, clusters, permissions
  config.json                 ferry config check: every value with its line; secrets are {hidden}
  FLOW/plan.json              ferry plan: what a run would copy, change and refuse
  FLOW/runs.json              ferry ledger --runs: the newest {runs} runs
  FLOW/run-RUN.json           the report of each of these runs that was not a success: refusals and notes
  FLOW/lag.json               ferry lag
  missing.json                what could not be got, and why

There are names of topics, groups, hosts and users in it, and counts. There are no records: no keys, values or headers.
"""


@command(all_flows=True)
def bundle_command(
    context: Context,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="The new archive, a .tar.gz. Default: ferry-support-TIME.tar.gz here."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be in it. Writes no file.")] = False,
) -> int:
    """Write an archive for those who help: versions, the file without secrets, plans, runs. Holds no records.

    With FLOW it has that flow only. What cannot be got is named in the archive, and the rest is written. Exit code 0
    when the archive was written.
    """
    now_ms = wall_ms()
    stamp = in_name(now_ms)
    path = output or Path(f"ferry-support-{stamp}.tar.gz")
    refuse_taken(path, name=f"--output {path}")
    secrets, parts, missing = _gathered(context)
    readme = README.format(time=to_the_second(now_ms), hidden=HIDDEN, runs=RUNS)
    parts["missing.json"] = _text({"missing": missing})
    clean = {"README.txt": readme, **{name: without(text, secrets) for name, text in parts.items()}}
    if not dry_run:
        _write(path, f"ferry-support-{stamp}", clean, now_ms)
    context.answer(
        lambda: {"written": None if dry_run else str(path), "files": sorted(clean), "missing": missing},
        lambda: _show(None if dry_run else path, clean, missing),
    )
    return 0


def _gathered(context: Context) -> tuple[frozenset[str], dict[str, str], list[Json]]:
    """Return the secrets of the file, the texts by file name, and what could not be got."""

    file = context.config_file()
    text = properties_text(file, context.variable)
    examined = context.limited(examine(text, str(file), from_environment))
    problems = all_problems(examined)
    parts: dict[str, str] = {}
    missing: list[Json] = []

    def take(name: str, made: Callable[[], object]) -> None:
        try:
            parts[name] = _text(made())
        except (FerryError, OSError) as error:
            missing.append({"file": name, "why": str(error)})

    lines = account(parse_all(text)[0], examined, problems)
    shown = in_file_order((*problems, *overlooked(examined)))
    take("config.json", lambda: check_json(examined, lines, shown))
    take("doctor.json", lambda: doctor_json(examination(context)))
    flows: tuple[FlowConfig, ...] = ()
    try:
        settings = context.settings()
        flows = settings.flows if context.named is None else (context.flow_of(settings),)
    except (BadInput, OSError) as error:
        missing.append({"file": "flows", "why": str(error)})
    for flow in flows:
        _of_flow(flow, context.patience_s, take)
    return frozenset(_secrets(text, flows)), parts, missing


def _of_flow(flow: FlowConfig, patience_s: float, take: Callable[[str, Callable[[], object]], None]) -> None:
    from ferry.plan.lag import measure_lag  # noqa: PLC0415 - brings the Kafka clients
    from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    folder = f"{flow.flow.source}-to-{flow.flow.target}"

    def plan() -> Json:
        with MicroRuns(flow, patience_s=patience_s) as runs:
            return plan_json(runs.preview())

    def runs() -> Json:
        with LedgerAccess(flow, patience_s=patience_s) as access:
            past: list[PastRun] = past_runs(access.view_with_newest(flow.lane, RUNS), flow.lane, RUNS)
        for one in past:
            report = one.report
            if report is not None and one.state is not PastState.SUCCESS:
                take(f"{folder}/run-{quote(one.opened.record.run, safe='')}.json", partial(report_json, report))
        return past_runs_json(past)

    take(f"{folder}/plan.json", plan)
    take(f"{folder}/runs.json", runs)
    take(f"{folder}/lag.json", lambda: lag_json(measure_lag(flow, patience_s=patience_s)))


def _secrets(text: str, flows: Iterable[FlowConfig]) -> Iterator[str]:
    """Yield every value of the file that is a secret, as written and as resolved, and the parts of logins."""
    written = ((entry.key, entry.value) for entry in parse_all(text)[0])
    resolved = (
        item for flow in flows for side, role in flow.clients.properties for item in _resolved(flow, side, role)
    )
    for key, value in (*written, *resolved):
        if key.endswith(".command"):
            yield value  # a header with a token, a password for env
        if is_secret(key):
            yield value
            yield from re.findall(r"""=\s*["']([^"']+)["']""", value)  # passwords within a JAAS line


def _resolved(flow: FlowConfig, side: Side, role: Role) -> list[tuple[str, str]]:
    """Return the properties of a client with references resolved; none when one cannot be."""
    try:
        return list(flow.client(side, role).items())
    except FerryError:
        return []


def without(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every occurrence of a secret hidden, also as JSON writes it.

    Answers hide secrets themselves; this is for those that came in by another way, such as a broker's message.
    """
    for secret in sorted({one for one in secrets if len(one) >= SHORTEST}, key=len, reverse=True):
        for spelling in {secret, json.dumps(secret)[1:-1]}:
            text = text.replace(spelling, HIDDEN)
    return text


def _text(body: object) -> str:
    return f"{json.dumps(body, indent=1)}\n"


def _write(path: Path, root: str, files: dict[str, str], now_ms: int) -> None:
    """Write the archive for its owner alone; BadInput when it exists or cannot be written."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), now_ms // 1000, PRIVATE
            archive.addfile(entry, io.BytesIO(content))
    with new_file(path, name=f"--output {path}") as file:
        file.write(packed.getvalue())


def _show(path: Path | None, files: Iterable[str], missing: list[Json]) -> None:
    echo(f"{'would be written' if path is None else f'written: {path}'} ({', '.join(sorted(files))})")
    if missing:
        echo("\nnot in it")
        print_table(["file", "why"], ([one["file"], one["why"]] for one in missing))
    if path is not None:
        echo("Read it before you send it: it has names of topics, groups, hosts and users.")
