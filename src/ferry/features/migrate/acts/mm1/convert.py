"""A set-up of MirrorMaker 1 as one MirrorMaker 2 file that Ferry reads, and what happened to each of its options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.config.flow.start import StartOffsets, parse_start
from ferry.config.keys import values
from ferry.config.keys.catalogue import may_be_shown
from ferry.config.reading.examine import examine
from ferry.config.text.filters import PatternList, TopicFilter
from ferry.config.text.problem import BadValue, Severity
from ferry.config.text.properties import Property
from ferry.config.text.secrets import HIDDEN, is_secret
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.arguments import JAAS_PROPERTY, KERBEROS_PROPERTY, Arguments, Given
from ferry.features.migrate.acts.mm1.keys import CONSUMER_KEYS, PRODUCER_KEYS, KeyRule, Meaning, servers
from ferry.features.migrate.acts.mm1.login import Login
from ferry.features.migrate.acts.mm1.outcome import Fate, Outcome, Place
from ferry.features.migrate.acts.mm1.sheet import Sheet
from ferry.features.migrate.acts.mm1.side import Side, SideFile, read_side
from ferry.features.migrate.acts.mm1.topics import as_list, remark
from ferry.model import Flow, located
from ferry.policy import JAVA_PACKAGE

T = TypeVar("T")

MERGE_KEY = "ferry.merge.topics"
COMMAND_LINE = Place()

_LIKE_MM1 = "As MirrorMaker 1: "
_BEGINS = {
    True: "the first record of each topic.",
    False: "the end of each topic; ferry migrate mm1 continues at the old group's offsets instead.",
}
"""Where the first run begins by default, by whether the consumer is the oldest kind, which had offsets in ZooKeeper."""
_ALL_FLOWS = (
    ("replication.policy.class", f"{JAVA_PACKAGE}IdentityReplicationPolicy", "topics keep their names"),
    ("replication.factor", "-1", "new topics get the target brokers' default replication factor"),
    ("sync.topic.configs.enabled", "false", "the target's settings are left alone, new topics have the source's"),
    ("sync.topic.acls.enabled", "false", "the target's permissions are left alone"),
    ("sync.group.offsets.enabled", "false", "the target's consumer groups are left alone"),
    ("emit.checkpoints.enabled", "false", "no topics of its own but Ferry's ledger"),
    ("emit.heartbeats.enabled", "false", ""),
    ("emit.offset-syncs.enabled", "false", ""),
    ("heartbeats.replication.enabled", "false", "heartbeat topics are copied only when the list names them"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All input of a conversion; the files are read already."""

    arguments: Arguments
    consumers: tuple[SideFile, ...]
    producer: SideFile
    login: Login | None = None
    source_aliases: tuple[str, ...]
    target_alias: str
    source_servers: tuple[str | None, ...]
    """For each consumer file, the bootstrap servers that were given in addition to it."""
    target_servers: str | None = None
    source_offsets: tuple[str | None, ...]
    """For each consumer file, the positions of its group in the form of `ferry.start`."""
    copy_secrets: bool = False
    """Whether passwords are written into the new file; else it refers to the files that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTopics:
    """One flow of the new file and its lists."""

    flow: Flow
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The new file's text, the account of all options, and the flows. The text has secrets if that was asked for."""

    text: str = field(repr=False)
    outcomes: tuple[Outcome, ...]
    flows: tuple[FlowTopics, ...]

    def to_decide(self) -> tuple[Outcome, ...]:
        """Return what the new file cannot express."""
        return tuple(outcome for outcome in self.outcomes if outcome.fate is Fate.LOOK)


def convert(request: Request) -> Conversion:
    """Return the new file.

    Raises BadInput for what is unreadable or missing: one sentence with file, line and remedy.
    """
    return _Conversion(request=request).run()


@dataclass(slots=True, kw_only=True)
class _Conversion:
    request: Request
    sheet: Sheet = field(init=False)
    outcomes: list[Outcome] = field(default_factory=list)
    flows: list[FlowTopics] = field(default_factory=list)

    def run(self) -> Conversion:
        request = self.request
        files = dict.fromkeys(file.name for file in (*request.consumers, request.producer))
        self.sheet = Sheet(
            title=[
                f"Written by `ferry migrate import-mm1` from the command line of MirrorMaker 1 and {', '.join(files)}.",
                "`ferry plan` shows what it would copy; docs/coming-from-mirrormaker.md explains each line.",
            ]
        )
        self.sheet.head("Clusters")
        self.sheet.add("clusters", ", ".join([*request.source_aliases, request.target_alias]))
        sources = []
        for file, alias, given in zip(request.consumers, request.source_aliases, request.source_servers, strict=True):
            sources.append(self._side(file, alias, CONSUMER_KEYS, given, "source"))
            self._consumer_defaults(sources[-1])
        self._refuse_one_source_twice(sources)
        target = self._side(request.producer, request.target_alias, PRODUCER_KEYS, request.target_servers, "target")
        self.sheet.add(f"{target.alias}.exactly.once.source.support", "enabled", "Ferry is always exactly once.")
        self._all_flows(sources)
        for side, offsets in zip(sources, request.source_offsets, strict=True):
            self._flow(side)
            self._start(side, offsets)
        self._command_line()
        text = self.sheet.text()
        self._prove(text)
        for side in (*sources, target):
            self.outcomes += side.outcomes
        order = [*files, *([request.login.file] if request.login is not None else [])]
        self.outcomes.sort(key=lambda outcome: self._rank(order, outcome))
        return Conversion(text=text, outcomes=tuple(self.outcomes), flows=tuple(self.flows))

    def _rank(self, files: Sequence[str], outcome: Outcome) -> tuple[int, int]:
        """Sort the command line first, in its order; then the files, by line, each with its missing options last."""
        if outcome.place.file is None:
            written = [given.written for given in self.request.arguments.given]
            return -1, written.index(outcome.option) if outcome.option in written else len(written)
        file = files.index(outcome.place.file) if outcome.place.file in files else len(files)
        return file, outcome.place.line or sys.maxsize

    # The two sides.

    def _side(self, file: SideFile, alias: str, rules: Sequence[KeyRule], given: str | None, what: str) -> Side:
        self.sheet.head(f"Cluster {alias} (the {what}), from {file.name}")
        side = read_side(file, alias, rules, copy_secrets=self.request.copy_secrets, servers_given=given is not None)
        key = f"{alias}.bootstrap.servers"
        if given is not None:
            option = f"--{what}.bootstrap.servers"
            self.sheet.add(key, _read(COMMAND_LINE, option, given, servers), option, COMMAND_LINE)
        for line in side.lines:
            self.sheet.add(line.key, line.value, line.remark, line.origin)
        if self.sheet.get(key) is None:
            raise BadInput(missing_servers(file, what))
        self._login(side)
        return side

    def _refuse_one_source_twice(self, sources: Sequence[Side]) -> None:
        """Raise BadInput for two flows from one cluster: each of them would copy all records of a merged topic."""
        seen: dict[str, Side] = {}
        for side in sources:
            line = self.sheet.get(f"{side.alias}.bootstrap.servers")
            for server in values.items(line.value) if line is not None else ():
                first = seen.setdefault(server.lower(), side)
                if first is not side:
                    place = line.origin if line is not None and line.origin is not None else Place(file=side.file.name)
                    raise BadInput(
                        f"{place}: bootstrap.servers: {server} is a broker of {first.file.name} as well, and each"
                        " record would be copied twice; give one --consumer.config for each source cluster"
                    )

    def _login(self, side: Side) -> None:
        protocol = self.sheet.get(f"{side.alias}.security.protocol")
        key = f"{side.alias}.sasl.jaas.config"
        if protocol is None or not protocol.value.startswith("SASL") or self.sheet.get(key) is not None:
            return
        login = self.request.login
        if login is None:
            self.outcomes.append(
                Outcome(
                    place=protocol.origin or Place(file=side.file.name),
                    option="security.protocol",
                    value=protocol.value,
                    fate=Fate.LOOK,
                    why=f"the login is in the JAAS file that {JAAS_PROPERTY} named: give it here, too, write"
                    f" {key}, or name the file in KAFKA_OPTS when Ferry runs",
                )
            )
            return
        value = login.text() if self.request.copy_secrets else login.reference()
        place = Place(file=login.file)
        self.sheet.add(key, value, f"{login.file}: KafkaClient", place)
        self.outcomes.append(
            Outcome(
                place=place,
                option="KafkaClient",
                value=login.jaas.module,
                fate=Fate.KEPT,
                became=f"{key} = {HIDDEN if self.request.copy_secrets else value}",
                why="each cluster has a line of its own now, and may have another principal",
            )
        )

    def _consumer_defaults(self, side: Side) -> None:
        # The oldest consumer began at the smallest offset, all later ones at the largest.
        oldest = "groupid" in side.entries and "zk.connect" in side.entries
        self._default(
            side,
            "auto.offset.reset",
            "earliest" if oldest else "latest",
            f"{_LIKE_MM1}the first run begins at {_BEGINS[oldest]}",
            "the default of this file's consumer, where it had no position",
        )
        self._default(
            side,
            "isolation.level",
            "read_committed",
            "Other than MirrorMaker 1: records of aborted transactions are not copied.",
            "MirrorMaker 1 copied aborted transactions, too; write read_uncommitted to keep that",
        )

    def _default(self, side: Side, option: str, value: str, comment: str, why: str) -> None:
        """Add a consumer option that is not in the old file and must be in the new one."""
        key = f"{side.alias}.consumer.{option}"
        if self.sheet.get(key) is not None:
            return
        self.sheet.add(key, value, comment)
        self.outcomes.append(
            Outcome(
                place=Place(file=side.file.name),
                option=option,
                value="(absent)",
                fate=Fate.KEPT,
                became=f"{key} = {value}",
                why=why,
            )
        )

    # Flows.

    def _all_flows(self, sources: Sequence[Side]) -> None:
        self.sheet.head("All flows")
        for key, value, why in _ALL_FLOWS:
            self.sheet.add(key, value, f"{_LIKE_MM1}{why}." if why else "")
        streams = self.request.arguments.one("num.streams")
        own = [side.meaning(Meaning.THREADS) for side in sources]
        if streams is not None:
            self.sheet.add("tasks.max", values_of(streams), "--num.streams", COMMAND_LINE)
            self._kept(
                streams,
                f"tasks.max = {values_of(streams)}",
                "most Spark tasks of a run; add up the streams of all MirrorMaker 1 processes",
            )
        for side, threads in zip(sources, own, strict=True):
            if threads is None:
                continue
            if streams is not None:
                side.overruled(threads, "--num.streams on the command line")
            else:
                read = _read(side.place(threads), threads.key, threads.value, lambda text: str(values.integer(1)(text)))
                key = f"{Flow(source=side.alias, target=self.request.target_alias)}.tasks.max"
                self.sheet.add(key, read, side.remark(threads), side.place(threads))
                side.say(threads, Fate.KEPT, "most Spark tasks of a run", f"{key} = {read}")

    def _flow(self, side: Side) -> None:
        flow = Flow(source=side.alias, target=self.request.target_alias)
        self.sheet.head(f"From {side.alias} to {flow.target}")
        self.sheet.add(f"{flow}.enabled", "true")
        include = self._list(side, flow, "whitelist", Meaning.WHITELIST)
        exclude = self._list(side, flow, "blacklist", Meaning.BLACKLIST)
        if include is None and exclude is None:
            raise BadInput(
                "--whitelist is missing: add --whitelist with topic names or a regular expression in quotes, because "
                f"{side.file.name} names no topics either"
            )
        if include is None:
            include = (".*",)
            self.sheet.add(f"{flow}.topics", ".*", f"{_LIKE_MM1}all but the blacklist.")
        if exclude is None:
            exclude = ("__.*",)
            self.sheet.add(f"{flow}.topics.exclude", "__.*", "Internal topics only.")
        self.flows.append(FlowTopics(flow=flow, topics=include, topics_exclude=exclude))
        if len(self.request.consumers) > 1:
            self.sheet.add(f"{flow}.{MERGE_KEY}", ", ".join(include), "Several sources write into one topic.")

    def _start(self, side: Side, offsets: str | None) -> None:
        group = side.meaning(Meaning.GROUP)
        flow = Flow(source=side.alias, target=self.request.target_alias)
        if offsets is not None:
            key = f"{flow}.ferry.start"
            self.sheet.add(key, offsets, "Where MirrorMaker 1 stopped; partitions not named begin at earliest.")
            self.sheet.add(
                f"{flow}.ferry.guard.foreign.writer",
                "skip",
                "The copies hold MirrorMaker 1's records. Take this line out when the first run is done.",
            )
        if group is None:
            return
        reset = self.sheet.get(f"{side.alias}.consumer.auto.offset.reset")
        foreign = () if offsets is None else self._foreign(flow, offsets)
        if foreign:
            side.say(
                group,
                Fate.LOOK,
                f"--offsets names {', '.join(foreign)} only, which the lists do not take, so the first run begins at"
                " earliest: give the positions of the group that copied the topics of the lists",
            )
        elif offsets is not None:
            side.say(group, Fate.KEPT, "positions are in the ledger; the first run begins where this group stood")
        elif reset is not None and reset.value == "latest":
            side.say(
                group,
                Fate.LOOK,
                "the first run begins at latest, so records since MirrorMaker 1 stopped are skipped: give --offsets"
                f" with this group's positions, or write {flow}.ferry.start",
            )
        else:
            side.say(
                group,
                Fate.LOOK,
                "the first run begins at earliest, so what MirrorMaker 1 copied is copied once more, into topics of the"
                f" same names: give --offsets with this group's positions, or write {flow}.ferry.start",
            )

    def _foreign(self, flow: Flow, offsets: str) -> tuple[str, ...]:
        """Return the topics of the positions if the flow takes none of them: the positions are of another group.

        A topic of the list without a position does not show that: it may not exist, or be empty.
        """
        start = parse_start(offsets)
        named = sorted({at.topic for at in start.offsets}) if isinstance(start, StartOffsets) else []
        (lists,) = (one for one in self.flows if one.flow == flow)
        takes = TopicFilter(
            include=PatternList(items=lists.topics), exclude=PatternList(items=lists.topics_exclude)
        ).takes
        return () if any(takes(topic) for topic in named) else tuple(named)

    def _list(self, side: Side, flow: Flow, name: str, meaning: Meaning) -> tuple[str, ...] | None:
        """Return the white- or blacklist of one source: that of the command line, or else that of its file."""
        given = self.request.arguments.one(name)
        own = side.meaning(meaning)
        key = f"{flow}.topics" if meaning is Meaning.WHITELIST else f"{flow}.topics.exclude"
        if given is not None:
            if own is not None:
                side.overruled(own, f"--{name} on the command line")
            found = _read(COMMAND_LINE, given.written, given.value, as_list)
            self.sheet.add(key, ", ".join(found), given.written, COMMAND_LINE)
            self._kept(given, f"{key} = {', '.join(found)}", f"the same topics{remark(found)}")
            return found
        if own is None:
            return None
        found = _read(side.place(own), own.key, own.value, as_list)
        other = self.request.arguments.one("blacklist" if name == "whitelist" else "whitelist")
        if other is not None:
            # Either option decides about all topics. The keys are those of an older version, which had no such options.
            side.say(
                own,
                Fate.LOOK,
                f"{other.written} on the command line decides alone; to leave out more topics write"
                f" {key} = {', '.join(found)}",
            )
            return None
        self.sheet.add(key, ", ".join(found), side.remark(own), side.place(own))
        side.say(own, Fate.KEPT, f"the same topics{remark(found)}", f"{key} = {', '.join(found)}")
        return found

    # The command line, and the check of the result.

    def _kept(self, given: Given, became: str, why: str) -> None:
        self._say(given, Fate.KEPT, why, became)

    def _say(self, given: Given, fate: Fate, why: str, became: str = "") -> None:
        self.outcomes.append(
            Outcome(place=COMMAND_LINE, option=given.written, value=given.value, fate=fate, became=became, why=why)
        )

    def _command_line(self) -> None:
        for given in self.request.arguments.given:
            if given.option.fate is not Fate.KEPT:
                self._say(given, given.option.fate, given.option.why)
        aliases = self.request.source_aliases
        for given, alias in zip(self.request.arguments.all("consumer.config"), aliases, strict=True):
            self._kept(given, f"clusters: {alias}", "the source cluster")
        for given in self.request.arguments.all("producer.config"):
            self._kept(given, f"clusters: {self.request.target_alias}", "the target cluster")
        self._java()
        if len(aliases) < 2:
            return
        why = "several sources are merged into one topic of the same name"
        for given in self.request.arguments.all("consumer.config")[1:]:
            self._say(given, Fate.KEPT, why, f"S->T.{MERGE_KEY}")

    def _java(self) -> None:
        for name, value in self.request.arguments.java.items():
            fate, why = Fate.GONE, "a setting of the Java process"
            if name == JAAS_PROPERTY:
                used = any(outcome.option == "KafkaClient" for outcome in self.outcomes)
                fate, why = (Fate.KEPT, "the logins") if used else (Fate.GONE, "neither side logs in by it")
            elif name == KERBEROS_PROPERTY:
                fate, why = Fate.LOOK, f"name it where Ferry runs: KAFKA_OPTS={name}={value}"
            shown = HIDDEN if is_secret(name) else value
            self.outcomes.append(Outcome(place=COMMAND_LINE, option=name, value=shown, fate=fate, why=why))

    def _prove(self, text: str) -> None:
        """Check the new file with Ferry's own reader.

        Its problems are reported at the place where the value was read.
        """
        for problem in examine(text, "the new file").problems:
            line = self.sheet.get(problem.key)
            place = line.origin if line is not None and line.origin is not None else Place(file="the new file")
            if problem.severity is Severity.ERROR:
                raise BadInput(located(f"{place}: {problem.key}", problem.message))
            self.outcomes.append(
                Outcome(
                    place=place,
                    option=problem.key,
                    value=line.value if line is not None and may_be_shown(problem.key) else HIDDEN,
                    fate=Fate.LOOK,
                    why=problem.message,
                )
            )


def values_of(given: Given) -> str:
    """Return the number of an option in the form that the reader of the new file expects."""
    return str(values.integer(1)(given.value))


def missing_servers(file: SideFile, what: str) -> str:
    """Say in one sentence why a side has no bootstrap servers, with the remedy."""
    option = f"--{what}.bootstrap.servers host:port"
    zookeeper = zookeeper_of(file)
    if zookeeper is None:
        return f"{file.name}: bootstrap.servers: is missing; add it to the file, or give {option}"
    return (
        f"{file.name}:{zookeeper.line}: {zookeeper.key}: names ZooKeeper only ({zookeeper.value}), which clients no "
        f"longer use; give {option}, or add bootstrap.servers to the file"
    )


def zookeeper_of(file: SideFile) -> Property | None:
    """Return the entry of a file that names ZooKeeper, if there is one."""
    return next((entry for entry in file.entries if entry.key in ("zookeeper.connect", "zk.connect")), None)


def _read(place: Place, key: str, value: str, convert: Callable[[str], T]) -> T:
    try:
        return convert(value)
    except BadValue as error:
        raise BadInput(located(f"{place}: {key}", error.message)) from None
