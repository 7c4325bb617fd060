"""The whole configuration file: clusters, flows, and what is wrong with it. The network is not used here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ferry.config.flow.cluster import ClusterConfig
from ferry.config.flow.deployment import deployment_id, of_file
from ferry.config.flow.flow import FlowConfig
from ferry.config.local_clusters import CLUSTERS_VARIABLE, check_local, into
from ferry.config.login.connection import Lookup, nobody
from ferry.config.reading.examine import Examined, examine
from ferry.config.reading.findings import Setting
from ferry.config.reading.topology import selections_of
from ferry.config.text.other_kinds import other_kind
from ferry.config.text.problem import Problem, Severity
from ferry.errors import BadInput
from ferry.files import TooLong, read_bounded
from ferry.model import Flow, with_text

_MOST_NAMED = 4
STANDARD_INPUT = Path("<standard input>")
"""In place of a path, for the text on standard input; errors call it that."""
MAX_FILE_BYTES = 4 * 1024 * 1024
"""No configuration is that long; a longer file is of another kind, given by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A configuration file without errors; `problems` are its warnings."""

    path: Path
    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    problems: tuple[Problem, ...]
    origins: Mapping[Flow, tuple[Setting, ...]] = field(default_factory=dict)
    """Where each flow's values come from."""
    local: tuple[str, ...] = ()
    """Only flows into these clusters are here; empty: into all."""

    def near(self, local: tuple[str, ...]) -> Settings:
        """Return the same file, with the flows into `local` clusters only.

        Raises BadInput for a cluster that the file does not have.
        """
        check_local(local, self.clusters, self.path)
        return replace(self, flows=into(local, self.flows), local=local)

    def flow(self, text: str) -> FlowConfig:
        """Return the enabled flow `source->target`. Raises BadInput, naming the known ones, when there is none."""
        try:
            wanted = Flow.parse(text)
        except BadInput as error:
            known = some([f"'{config.flow}'" for config in self.flows]) or "none"
            raise BadInput(f"{error}; enabled in {self.path}: {known}") from None
        for config in self.flows:
            if config.flow == wanted:
                return config
        if self.local and wanted.target in self.clusters and wanted.target not in self.local:
            raise BadInput(
                f"{self.path}: flow {wanted} goes into {wanted.target}, which is not among the local clusters"
                f" {', '.join(self.local)} (--clusters, {CLUSTERS_VARIABLE}); run it near {wanted.target}"
            )
        known = some([str(config.flow) for config in self.flows])
        remedy = f"enabled are {known}" if known else "no flow is enabled"
        raise BadInput(
            f"{self.path}: flow {text} is not enabled ({remedy}); add {wanted}.enabled = true, or name another"
        )

    def only_flow(self) -> FlowConfig:
        """Return the only enabled flow. Raises BadInput, naming the known ones, when there are others or none."""
        if len(self.flows) == 1:
            return self.flows[0]
        known = some([f"'{config.flow}'" for config in self.flows]) or "none"
        raise BadInput(f"{self.path} has {len(self.flows)} enabled flows ({known}): name one")

    def cluster(self, alias: str) -> ClusterConfig:
        """Return the cluster named `alias`. Raises BadInput, naming the known ones, when there is none."""
        if alias not in self.clusters:
            raise BadInput(
                f"{self.path}: cluster {alias!r} is not among {', '.join(self.clusters)}; add it to clusters"
            )
        return self.clusters[alias]


def some(names: Sequence[str]) -> str:
    """Return the names of flows for a sentence, as many as can be read there."""
    more = len(names) - _MOST_NAMED
    first = ", ".join(names[:_MOST_NAMED])
    return first if more <= 0 else f"{first} and {more} more, which ferry flows lists"


def load(
    path: Path, lookup: Lookup = nobody, *, deployment: str | None = None, variable: str | None = None
) -> Settings:
    """Return the settings of the file at `path`; `lookup` is asked for the Airflow connections that it names.

    `deployment` is the id where neither the file nor the environment gives one; None: that of this host and path.
    `variable` is the one of the environment that names the file, for an error.

    Raises BadInput when the file cannot be read or holds an error, or FERRY_DEPLOYMENT is not a name, and what `lookup`
    raises.
    """
    return settings_of_file(examine(properties_text(path, variable), str(path), lookup), path, deployment)


def parse_settings(text: str, file: str, lookup: Lookup = nobody) -> Settings:
    """Return the settings of the file's `text`, which is called `file` in messages.

    `lookup` has the Airflow connections. Raises BadInput when the text holds an error, and what `lookup` raises.
    """
    return settings_of_file(examine(text, file, lookup), Path(file), None)


def properties_text(path: Path, variable: str | None = None) -> str:
    """Return the text of a properties file; STANDARD_INPUT is read from there. `variable`: as in `load`.

    Raises BadInput when there is none, when it is not UTF-8, or when it is of another kind, such as JSON or YAML.
    """
    if path == STANDARD_INPUT:
        text = _decoded(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), str(path))
    else:
        text = read_text(path, variable)
    other = other_kind(text)
    if other is not None:
        line, what = other
        raise BadInput(
            f"{path}:{line}: is not a properties file but {what}: write each setting on a line of its own, such as "
            "clusters = primary, backup"
        )
    return text


def read_text(path: Path, variable: str | None = None) -> str:
    """Return the text of a configuration file. Raises BadInput when there is none, or it is too long or not UTF-8."""
    name = str(path) if variable is None else f"{path} (named by {variable})"
    try:
        content = read_bounded(path, MAX_FILE_BYTES)
    except TooLong:
        raise _too_long(name) from None
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}; name a file that you may read") from None
    return _decoded(content, str(path))


def _too_long(name: str) -> BadInput:
    return BadInput(
        f"{name}: more than {MAX_FILE_BYTES} bytes are too many for a configuration file; give a properties file"
    )


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise _too_long(name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{name}:{line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8 or write \\uXXXX"
        ) from None


def settings_of_file(examined: Examined, path: Path, deployment: str | None) -> Settings:
    """Return the settings of an examined file; raises BadInput with the first error if it has some."""
    errors = [problem for problem in examined.problems if problem.severity is Severity.ERROR]
    if errors:
        more = f" ({len(errors) - 1} more in this file)" if len(errors) > 1 else ""
        raise BadInput(with_text(errors[0].message, f"{errors[0]}{more}"))
    selections = selections_of(examined.flows)
    default = of_file(path) if deployment is None else deployment
    by_flow = {one.flow: one for one in selections}
    flows = tuple(
        replace(
            config,
            deployment=deployment_id(config.deployment, os.environ, default),
            topics=replace(config.topics, selection=one, back=by_flow.get(config.flow.back)),
        )
        for config, one in zip(examined.flows, selections, strict=True)
    )
    return Settings(
        path=path,
        clusters=examined.clusters,
        flows=flows,
        problems=examined.problems,
        origins=examined.settings,
    )
