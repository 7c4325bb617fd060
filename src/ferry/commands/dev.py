"""`ferry dev`: local clusters, by the commands of `ferry.dev.app`."""

from __future__ import annotations

import logging

import typer

from ferry.cli.output import Form
from ferry.dev.app import Answering, app


def dev_command(ctx: typer.Context) -> int:
    """Start, show and stop real Kafka clusters on this machine."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    asked = Answering(form=ctx.obj.form or Form.TABLE, quiet=ctx.obj.quiet)
    return int(app(args=ctx.args, prog_name="ferry dev", standalone_mode=False, obj=asked) or 0)
