"""`ferry config policy`: what a replication policy makes of topic names, and whether Ferry can work with it."""

from __future__ import annotations

from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.codec.form import F, Form
from ferry.config.text.secrets import is_secret
from ferry.errors import BadInput
from ferry.policy import make_policy
from ferry.policy.conformance import SAMPLE_TOPICS, Naming, findings, namings
from ferry.words import count_of

NAMING = Form(
    Naming,
    F("topic"),
    F("target"),
    F("source", says="the alias that the target name leads back to; null: it shows none"),
    F("upstream"),
)


@command(flow=False, connects=False, table=True)
def check_command(
    context: Context,
    policy: Annotated[
        str, typer.Argument(metavar="CLASS", help="The import path of a Python class, or a Java class name.")
    ],
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="A source topic to test. May be repeated.")
    ] = None,
    alias: Annotated[str, typer.Option("--source", metavar="ALIAS", help="The source cluster's alias.")] = "a",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A replication.policy.* property. May be repeated."),
    ] = None,
) -> int:
    """Show the topic names that a policy makes, and every rule that it breaks. Exit 1 if anything is wrong."""
    properties = {"source.cluster.alias": alias, "target.cluster.alias": "b", **_properties(setting or [])}
    made = make_policy(policy, properties, [value for name, value in properties.items() if is_secret(name)])
    topics = tuple(topic or SAMPLE_TOPICS)
    problems = findings(made, source_alias=alias, topics=topics)
    rows = [] if problems else namings(made, alias, topics)

    def show() -> None:
        print_table(
            ["topic", "on the target", "came from", "was named"],
            ([row.topic, row.target, row.source, row.upstream] for row in rows),
            omit=True,
        )
        tried = f"{policy}: {count_of(len(topics), 'topic')} tried, {count_of(len(problems), 'problem')}"
        echo(*problems, tried, sep="\n")

    context.answer(
        lambda: {
            "policy": policy,
            "topics": [NAMING.dump(row) for row in rows],
            "problems": problems,
        },
        show,
    )
    return 1 if problems else 0


def _properties(settings: list[str]) -> dict[str, str]:
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("replication.policy."):
            raise BadInput(
                f"--set {setting!r} is not KEY=VALUE with a replication.policy. key; write for example "
                "--set replication.policy.separator=_"
            )
        found[key] = value
    return found
