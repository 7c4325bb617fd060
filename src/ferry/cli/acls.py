"""`ferry acls required`: what the brokers must permit, as commands."""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.desk import ConfigOption, Desk, FlowArgument, JsonOption, QuietOption, VerboseOption
from ferry.cli.output import print_json

if TYPE_CHECKING:  # the command line starts light
    from ferry.config.flow import FlowConfig
    from ferry.run.permissions import Acl, Resource

acls_app = typer.Typer(help="Permissions that the clusters must grant.", no_args_is_help=True)


@acls_app.callback()
def acls() -> None:
    """Permissions that the clusters must grant."""


@acls_app.command("required")
def required_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    source_principal: Annotated[
        str, typer.Option("--source-principal", metavar="PRINCIPAL", help="Whom the source's brokers know Ferry as.")
    ] = "User:ferry",
    target_principal: Annotated[
        str, typer.Option("--target-principal", metavar="PRINCIPAL", help="Whom the target's brokers know Ferry as.")
    ] = "User:ferry",
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Only this source topic, by its name; may be repeated."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Print the ACLs that a flow needs, as kafka-acls commands for both clusters. No cluster is asked."""
    # Imported here: the command line starts light.
    from ferry.cli.desk import only_topics
    from ferry.run.permissions import required_acls

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    chosen = desk.flow(flow)
    only_topics(chosen, topic)
    found = required_acls(chosen, topic or ())
    principals = {"source": source_principal, "target": target_principal}
    if desk.as_json:
        print_json({"flow": str(chosen.flow), "acls": [_json(acl, principals[acl.side]) for acl in found]})
        return 0
    for side, alias in (("source", chosen.flow.source), ("target", chosen.flow.target)):
        print(f"# On {side} {alias}:")
        own = [acl for acl in found if acl.side == side]
        for (resource, optional), acls in groupby(own, key=lambda acl: (acl.resource, acl.optional)):
            several = list(acls)
            line = _command(_servers(chosen, several[0]), principals[side], resource, several)
            print(f"# optional, {several[0].why}:\n# {line}" if optional else line)
    return 0


def _json(acl: Acl, principal: str) -> dict[str, object]:
    return {
        "side": acl.side,
        "principal": principal,
        "resource_type": acl.resource.kind,
        "resource_name": acl.resource.name,
        "pattern_type": "prefixed" if acl.resource.prefixed else "literal",
        "operation": acl.operation,
        "optional": acl.optional,
        "why": acl.why,
    }


def _command(servers: str, principal: str, resource: Resource, acls: list[Acl]) -> str:
    about = ["--cluster"] if resource.kind == "cluster" else [f"--{resource.kind}", resource.name]
    if resource.prefixed:
        about += ["--resource-pattern-type", "prefixed"]
    words = ["kafka-acls.sh", "--bootstrap-server", servers, "--add", "--allow-principal", principal]
    operations = [word for acl in acls for word in ("--operation", acl.operation)]
    return shlex.join([*words, *operations, *about])


def _servers(flow: FlowConfig, acl: Acl) -> str:
    clients = flow.clients["source", "consumer"] if acl.side == "source" else flow.clients["target", "producer"]
    return "".join(clients.get("bootstrap.servers", "").split())
