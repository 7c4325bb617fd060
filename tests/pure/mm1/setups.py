"""Set-ups of MirrorMaker 1 as texts, converted without a file system."""

from __future__ import annotations

from pathlib import PurePosixPath

from ferry.config.settings import Settings, parse_settings
from ferry.config.text.properties import parse
from ferry.features.migrate.acts.mm1.arguments import read_arguments
from ferry.features.migrate.acts.mm1.convert import Conversion, Request, convert
from ferry.features.migrate.acts.mm1.login import Login
from ferry.features.migrate.acts.mm1.outcome import Outcome
from ferry.features.migrate.acts.mm1.side import SideFile

SOURCE = "bootstrap.servers=west-1:9092\n"
TARGET = "bootstrap.servers=east-1:9092\n"


def side_file(name: str, text: str) -> SideFile:
    return SideFile(name=name, path=PurePosixPath("/etc/mm") / name, entries=parse(text, name))


def converted(
    *words: str,
    consumers: tuple[str, ...] = (SOURCE,),
    producer: str = TARGET,
    login: Login | None = None,
    source_servers: str | None = None,
    target_servers: str | None = None,
    offsets: str | None = None,
    copy_secrets: bool = False,
) -> Conversion:
    """The conversion of consumer files `c1`, `c2`, ... and the producer file `p` with the options `words`."""
    names = [f"c{number}" for number in range(1, len(consumers) + 1)]
    files = [word for name in names for word in ("--consumer.config", name)]
    return convert(
        Request(
            arguments=read_arguments([*files, "--producer.config", "p", *words]),
            consumers=tuple(side_file(name, text) for name, text in zip(names, consumers, strict=True)),
            producer=side_file("p", producer),
            login=login,
            source_aliases=("west",) if len(names) == 1 else tuple(f"west{name[1:]}" for name in names),
            target_alias="east",
            source_servers=(source_servers,) * len(names),
            target_servers=target_servers,
            source_offsets=(offsets,) * len(names),
            copy_secrets=copy_secrets,
        )
    )


def settings(conversion: Conversion) -> Settings:
    """The new file as Ferry reads it; it must have nothing to remark on."""
    read = parse_settings(conversion.text, "new.properties")
    assert read.problems == ()
    return read


def outcome(conversion: Conversion, option: str, file: str | None = None) -> Outcome:
    """The one line of the account about an option."""
    found = [row for row in conversion.outcomes if row.option == option and (file is None or row.place.file == file)]
    assert len(found) == 1, found
    return found[0]
