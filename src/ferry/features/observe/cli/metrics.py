"""`ferry metrics serve`: the metrics that runs have written, for Prometheus, on hosts without node_exporter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo
from ferry.errors import BadInput
from ferry.features.observe.settings import AlertSettings

PORT = 9464
"""The default port of OpenTelemetry's exporter for Prometheus."""


@command(flow=False, connects=False)
def serve_command(
    context: Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="The folder of ferry.metrics.folder. May be omitted if all flows of the file name the same one.",
        ),
    ] = None,
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="The address to listen on. 0.0.0.0 is all addresses.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port to listen on. 0 is any free port.")
    ] = PORT,
) -> int:
    """Serve the metrics of all files of a folder to Prometheus, until interrupted.

    The files are read at each scrape. There is no login: every client that can connect sees how much is copied.
    """
    from ferry.features.observe.acts.endpoint import serve  # noqa: PLC0415 - brings a server

    found = _folder(context) if folder is None else folder
    server, thread = serve(found, address, port)
    url = f"http://{f'[{address}]' if ':' in address else address}:{server.server_port}/metrics"
    context.answer(lambda: {"url": url, "folder": str(found)}, lambda: echo(f"metrics of {found} at {url}"))
    sys.stdout.flush()  # a process that started the command waits for the address
    try:
        thread.join()
    finally:
        server.shutdown()
    return 0


def _folder(context: Context) -> Path:
    named = {flow.of(AlertSettings).metrics_folder for flow in context.settings().flows}
    folders = [folder for folder in named if folder is not None]
    if len(folders) != 1:
        why = "no flow names one" if not folders else "the flows name several folders"
        raise BadInput(f"{why} in ferry.metrics.folder of the file: name the folder")
    return Path(folders.pop())
