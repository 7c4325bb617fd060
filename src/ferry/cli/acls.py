"""`ferry acls required`: what the brokers must permit, as commands."""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.acls_diff import diff_command
from ferry.cli.desk import ConfigOption, Desk, FlowArgument, JsonOption, QuietOption, VerboseOption
from ferry.cli.output import print_json

if TYPE_CHECKING:  # the command line starts light
    from ferry.config.flow import FlowConfig
    from ferry.run.permissions import Acl, Resource

acls_app = typer.Typer(help="Permissions that the clusters must grant.", no_args_is_help=True)


acls_app.command("diff")(diff_command)


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
    """Print the ACLs that a flow needs, as kafka-acls commands for both clusters. No cluster is asked.

    Apart from them, as comments: what writing MirrorMaker 2's topics to the source would take, which Ferry does not do.
    """
    # Imported here: the command line starts light.
    from ferry.cli.desk import only_topics
    from ferry.run.permissions import acls_of_source_writes, required_acls

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    chosen = desk.flow(flow)
    only_topics(chosen, topic)
    found = required_acls(chosen, topic or ())
    not_yet = acls_of_source_writes(chosen)
    principals = {"source": source_principal, "target": target_principal}
    if desk.as_json:
        body = {"flow": str(chosen.flow)}
        lists = {"acls": found, "not_needed_yet": not_yet}
        print_json(body | {name: [_json(acl, principals[acl.side]) for acl in acls] for name, acls in lists.items()})
        return 0
    source, target = chosen.flow.source, chosen.flow.target
    print(f"# On source {source}, to which nothing is written:")
    _print(chosen, [acl for acl in found if acl.side == "source"], source_principal)
    print(f"# On target {target}:")
    _print(chosen, [acl for acl in found if acl.side == "target"], target_principal)
    if not_yet:
        print(f"# Not needed yet: Ferry writes nothing to {source}; by this file MirrorMaker 2 writes there")
    _print(chosen, not_yet, source_principal, lead="")
    return 0


def _print(flow: FlowConfig, acls: list[Acl], principal: str, *, lead: str = "optional, ") -> None:
    """Commands; those that a flow works without as comments that say what for."""
    for (resource, optional), same in groupby(acls, key=lambda acl: (acl.resource, acl.optional and acl.why)):
        several = list(same)
        line = _command(_servers(flow, several[0]), principal, resource, several)
        print(f"# {lead}{several[0].why}:\n# {line}" if optional else line)


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
