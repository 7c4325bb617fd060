"""What is wrong with a value in a configuration file, as the second half of a sentence that begins with its key."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

VALUES: Mapping[str, Entry] = {
    "value.address": Entry(
        None,
        "is not an http or https address; write for example https://gateway.example/switch",
    ),
    "value.boolean": Entry(
        None,
        "{value!r} is neither true nor false; write one of them",
    ),
    "value.cast": Entry(
        None,
        "{value!r} is not a cast; write $.name:TYPE, or $:TYPE for the whole value, with one of {known}",
    ),
    "value.cast.all": Entry(
        None,
        "{value!r} casts the whole value and also fields in it; keep one of the two",
    ),
    "value.cast.connect": Entry(
        None,
        "{value!r} is not a cast; write field:TYPE, or TYPE alone, with one of {types}",
    ),
    "value.cast.whole": Entry(
        None,
        "{value!r} casts the whole value and also fields in it; keep one of the two",
    ),
    "value.choice": Entry(
        None,
        "{value!r} is not one of {choices}; write one of these",
    ),
    "value.empty": Entry(
        None,
        "is empty; write a value, or remove the line",
    ),
    "value.folder": Entry(
        None,
        "{value!r} is not a folder; write a path, or a URL such as s3://bucket/path",
    ),
    "value.folder.not-absolute": Entry(
        None,
        "{path!r} is not an absolute path; every process of the flow must find the same folder",
    ),
    "value.function": Entry(
        None,
        "{path!r} is not the import path of a function; write for example my_company.flows:small",
    ),
    "value.guard.no-topics": Entry(
        None,
        "{item!r} names no topics; write policy:topics with a regular expression, as in topics",
    ),
    "value.guard.twice": Entry(
        None,
        "{item!r} is a second policy for all topics; write policy:topics for some of them",
    ),
    "value.guard.whole-flow": Entry(
        None,
        "{item!r} is for some topics, but this guard is about the whole flow; write {words}",
    ),
    "value.import-path": Entry(
        None,
        "{path!r} is not an import path; write for example my_company.alerts.page_the_dba",
    ),
    "value.interval": Entry(
        None,
        "{error}; an interval is in seconds, -1 for never",
    ),
    "value.interval.zero": Entry(
        None,
        "an interval of 0 seconds is not an interval; write 1 or more, or -1 for never",
    ),
    "value.java-class": Entry(
        None,
        "class {value!r} is Java and cannot be used; write {known}, or remove the line",
    ),
    "value.json-path": Entry(
        None,
        "{value!r} is not a path; write $.name.name, $['name with a blank'], $.list[*].name or $.* for all fields of "
        "a level",
    ),
    "value.lane": Entry(
        None,
        "{value!r} is the name of a {lane} lane, whose topics are not those of live: choose another",
    ),
    "value.measure": Entry(
        None,
        "{error}",
    ),
    "value.name": Entry(
        None,
        "{value!r} is not a name; use letters, digits, dot, underscore and hyphen only",
    ),
    "value.names.empty": Entry(
        None,
        "is empty; write a name, or several separated by commas",
    ),
    "value.not-json": Entry(
        None,
        'is not JSON ({error}); write for example {{"slack_webhook_conn_id": "slack"}}',
    ),
    "value.not-json-object": Entry(
        None,
        'is not a JSON object; write for example {{"slack_webhook_conn_id": "slack"}}',
    ),
    "value.number": Entry(
        None,
        "{value!r} is not a whole number; write one{bounds}, without a unit",
    ),
    "value.number.large": Entry(
        None,
        "{number} is out of range; write a smaller number",
    ),
    "value.number.range": Entry(
        None,
        "{number} is out of range; write a whole number{bounds}",
    ),
    "value.offset-reset": Entry(
        None,
        "{value!r} stops a new consumer instead of placing it; write earliest or latest",
    ),
    "value.path": Entry(
        None,
        "{value!r} is not a full path; write one, or a URL such as s3://bucket/path",
    ),
    "value.path.not-absolute": Entry(
        None,
        "path {path!r} is not absolute; write it from the root",
    ),
    "value.paths.empty": Entry(
        None,
        "names no path; write absolute paths separated by commas, or remove the line",
    ),
    "value.pattern": Entry(
        None,
        "regular expression {pattern!r} is refused: {error}; correct it as Java's Pattern reads it",
    ),
    "value.principal": Entry(
        None,
        "{replacement!r} is not a principal; write its type before it, for example User:a",
    ),
    "value.principal.group": Entry(
        None,
        "{replacement!r} names group ${number}, but {pattern!r} has {groups}; put parentheses around the intended part",
    ),
    "value.rename": Entry(
        None,
        "{value!r} is not a rename; write old:new, several separated by commas",
    ),
    "value.replacement": Entry(
        None,
        "replacement {value!r} is not understood: {error}; correct it as Java's Matcher reads it",
    ),
    "value.replicas.zero": Entry(
        None,
        "0 replicas hold nothing; write 1 or more, or -1 for the target broker's default",
    ),
    "value.rule": Entry(
        None,
        "{written!r} is not a rule; write PATTERN => PRINCIPAL, several separated by semicolons",
    ),
    "value.salt": Entry(
        None,
        "is shorter than {least} bytes, which can be guessed; make one with openssl rand -hex 32",
    ),
    "value.schedule": Entry(
        None,
        "schedule {value!r} is not a cron expression of five fields, a preset ({presets}) or none; write for example "
        "*/5 * * * *",
    ),
    "value.schedule.field": Entry(
        None,
        "schedule {value!r}: {unit} {field!r} is not understood; write {low}-{high}, *, a list or a step */n",
    ),
    "value.schedule.no-windows": Entry(
        None,
        "{value!r} does not divide time into windows; write for example @daily, @hourly or 0 */6 * * *",
    ),
    "value.separator": Entry(
        None,
        "separator {value!r} is not allowed in a topic name; use dots, underscores or hyphens",
    ),
    "value.server": Entry(
        None,
        "server {server!r} is not host:port; write for example broker-1:9092",
    ),
    "value.server.no-colon": Entry(
        None,
        "server {server!r} has no colon before its port; write {servers}",
    ),
    "value.server.no-port": Entry(
        None,
        "server {server!r} has no port; write host:port, for example {example}",
    ),
    "value.server.placeholder": Entry(
        None,
        "{server!r} is only a placeholder for the brokers; write host:port, several separated by commas",
    ),
    "value.server.port": Entry(
        None,
        "port {port} of server {server!r} is out of range; write 1 to {most}",
    ),
    "value.servers.none": Entry(
        None,
        "no bootstrap server; write host:port, several separated by commas",
    ),
    "value.share": Entry(
        None,
        "{value!r} is not a share; write percent, for example 10% or 0.5%, above 0 and with at most four digits",
    ),
    "value.side": Entry(
        None,
        "{value!r} is neither source nor target; write one of them",
    ),
    "value.start": Entry(
        None,
        "start {value!r} is not understood; {remedy}",
    ),
    "value.start.no-zone": Entry(
        None,
        "time {value!r} has no time zone; append Z for UTC, or an offset such as +01:00",
    ),
    "value.start.offset": Entry(
        None,
        "start offset {item!r} is not topic:partition:offset; {remedy}",
    ),
    "value.start.relative": Entry(
        None,
        "{value!r} is not supported: it means another moment for each partition and run; write that "
        "moment itself, such as 2026-01-31T06:00:00Z",
    ),
    "value.start.twice": Entry(
        None,
        "start offset of {partition} is given twice; keep one",
    ),
    "value.targets": Entry(
        None,
        "{value!r} {why}; write whole names of topics of the target, separated by commas, for example {{topic}}-eu",
    ),
    "value.targets.many": Entry(
        None,
        "lists {topics} topics, but at most {most} are allowed at once; remove some",
    ),
    "value.time-format": Entry(
        None,
        "format {value!r} is not supported; write yyyy, yy, MM, dd, HH, mm, ss and SSS with other characters between "
        "them, and letters in '...'",
    ),
    "value.topic": Entry(
        None,
        "topic {topic!r} {why}; correct the name",
    ),
    "value.topics.none": Entry(
        None,
        "{value!r} names no topic; write names or Java regular expressions, separated by commas",
    ),
    "value.topics.quotes": Entry(
        None,
        "{value!r} has quotes that are part of it, and match only themselves; write it without quotes",
    ),
    "value.transform-name": Entry(
        None,
        "{value!r} is not a name of a transform; use letters, digits, underscore and hyphen only",
    ),
    "value.transform-name.connect": Entry(
        None,
        "{value!r} is the name of what Connect's key {connect} makes; give this transform another",
    ),
    "value.twice": Entry(
        None,
        "{value!r} is named twice; keep one",
    ),
}
