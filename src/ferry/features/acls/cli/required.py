"""`ferry acls required`: the permissions that brokers must grant, as commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import typer

from ferry.cli import output
from ferry.cli.command import Context, command, only_topics
from ferry.cli.completion import offered_topics
from ferry.cli.output import echo, print_json, print_table
from ferry.codec.form import F, Form
from ferry.codec.kinds import typed
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import ROLE_AT, Side
from ferry.errors import BadInput
from ferry.features.acls.cli.required_forms import REQUIRED, RequiredAcl
from ferry.plan.rules.permissions import Acl, Resource, required_acls

ANYBODY = "User:ferry"
"""In place of a principal that is not named."""
_PRINCIPAL = re.compile(r"[A-Za-z]+:.+")


@command(connects=False, table=True)
def required_command(
    context: Context,
    source_principal: Annotated[
        str | None,
        typer.Option(
            "--source-principal",
            metavar="PRINCIPAL",
            help="Ferry's principal on the source. Needed if the login does not show it.",
        ),
    ] = None,
    target_principal: Annotated[
        str | None,
        typer.Option(
            "--target-principal",
            metavar="PRINCIPAL",
            help="Ferry's principal on the target. Needed if the login does not show it.",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only this source topic, by its name. May be repeated.",
            autocompletion=offered_topics,
        ),
    ] = None,
) -> int:
    """Print the ACLs that a flow needs, as kafka-acls commands for both clusters. Asks no cluster."""

    chosen = context.flow()
    only_topics(chosen, topic)
    found = required_acls(chosen, topic or ())
    source = _OnSide.of(chosen, "source", source_principal)
    target = _OnSide.of(chosen, "target", target_principal)
    sides = {"source": source, "target": target}
    rows = [REQUIRED.dump(RequiredAcl(acl=acl, principal=sides[acl.side].principal)) for acl in found]
    if context.as_json:
        principals = {side: PRINCIPAL.dump(one) for side, one in sides.items()}
        print_json({"flow": str(chosen.flow), "principals": principals, "acls": rows})
        return 0
    if context.form is output.Form.CSV:
        context.answer(dict, lambda: print_table(list(rows[0]), (list(row.values()) for row in rows)))
        return 0
    written = sorted({acl.resource.name for acl in found if acl.side == "source" and acl.operation == "Write"})
    source.head(f"# On source {source.alias}, to which {_listed(written)} is written:")
    _print(source, [acl for acl in found if acl.side == "source"])
    target.head(f"# On target {target.alias}:")
    _print(target, [acl for acl in found if acl.side == "target"])
    return 0


def _listed(topics: list[str]) -> str:
    return f"nothing but {' and '.join(topics)}" if topics else "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnSide:
    """What the commands of one side share."""

    alias: str
    servers: str
    protocol: str
    principal: str
    why: str | None
    """Why the principal is not known, so that another name is printed in its place."""

    @classmethod
    def of(cls, flow: FlowConfig, side: Side, given: str | None) -> _OnSide:
        from ferry.config.flow.principal import principal_of, security_protocol  # noqa: PLC0415 - brings cryptography

        if given is not None and not _PRINCIPAL.fullmatch(given):
            raise BadInput(f"--{side}-principal {given!r} is not a principal; write its type before it: {ANYBODY}")
        properties = flow.clients.properties[side, ROLE_AT[side]]
        known = principal_of(flow, side) if given is None else None
        return cls(
            alias=flow.flow.source if side == "source" else flow.flow.target,
            servers="".join(properties.get("bootstrap.servers", "").split()),
            protocol=security_protocol(flow, side),
            principal=given or (known.name if known is not None and known.name is not None else ANYBODY),
            why=known.why if known is not None and known.name is None else None,
        )

    @property
    def command_config(self) -> str | None:
        """The properties file with which kafka-acls.sh connects to a protected listener; None for PLAINTEXT."""
        return None if self.protocol == "PLAINTEXT" else f"{self.alias}-admin.properties"

    def head(self, line: str) -> None:
        """Print what to know before the commands."""
        echo(line)
        if self.why is not None:
            echo(
                f"# {self.principal} is in place of Ferry's principal there, which the file does not contain: "
                f"{self.why}"
            )
        if self.command_config is not None:
            echo(f"# {self.command_config}: yours to write, with security.protocol = {self.protocol} and the login of")
            echo("# a principal that may alter ACLs")


def _print(side: _OnSide, acls: list[Acl]) -> None:
    """Print the commands; optional ones are comments with their purpose."""
    for (resource, optional), same in groupby(acls, key=lambda acl: (acl.resource, acl.optional and acl.why)):
        several = list(same)
        line = _command(side, resource, several)
        echo(f"# optional, {several[0].why}:\n# {line}" if optional else line)


PRINCIPAL = Form(
    _OnSide,
    F("principal"),
    F(
        "known",
        lambda side: side.why is None,
        typed(bool),
        says="false: another name is in its place, name it with --source-principal or --target-principal",
    ),
    F("why", says="why it is not known"),
    name="principal",
)


def _command(side: _OnSide, resource: Resource, acls: list[Acl]) -> str:
    about = ["--cluster"] if resource.kind == "cluster" else [f"--{resource.kind}", resource.name]
    if resource.prefixed:
        about += ["--resource-pattern-type", "prefixed"]
    words = ["kafka-acls.sh", "--bootstrap-server", side.servers]
    words += [] if side.command_config is None else ["--command-config", side.command_config]
    operations = [word for acl in acls for word in ("--operation", acl.operation)]
    return shlex.join([*words, "--add", "--allow-principal", side.principal, *operations, *about])
