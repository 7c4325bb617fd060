"""`python -m ferry.dev`: the same commands as `ferry dev`, without the rest of the program."""

import sys

import typer

from ferry.dev.app import app
from ferry.errors import FerryError


def main() -> None:
    """Run the commands; a FerryError is printed as one sentence on standard error, and its exit code is used."""
    try:
        app()
    except FerryError as error:
        typer.echo(f"ferry dev: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
