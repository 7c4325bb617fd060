"""Ferry's own keys: name, default, values and meaning. The documentation's table and the reader both use this list."""

from __future__ import annotations

from ferry.config.keys.feature import feature_keys
from ferry.config.keys.key import FerryKey

FERRY_KEYS = (
    FerryKey(
        name="ferry.schedule",
        default="*/5 * * * *",
        values="cron, an Airflow preset, `@continuous` or `none`",
        meaning="when Airflow starts a run; `none`: it starts none by itself",
    ),
    FerryKey(
        name="ferry.schedule.lag.records",
        default="",
        values="records, at least 1; empty: not used",
        meaning="a lag of this many records, all partitions together, starts a run, too: "
        "[runs that the lag starts](airflow.md#runs-that-the-lag-starts)",
    ),
    FerryKey(
        name="ferry.schedule.lag.seconds",
        default="",
        values="seconds, or a duration such as `15m`, at least 1; empty: not used",
        meaning="a record that has waited for this time starts a run, too",
    ),
    FerryKey(
        name="ferry.schedule.lag.every.seconds",
        default="60",
        values="seconds, or a duration such as `15m`, 1 to 86400",
        meaning="how often Airflow's triggerer reads the lag, if `ferry.schedule.lag.records` or "
        "`ferry.schedule.lag.seconds` is set",
    ),
    FerryKey(
        name="ferry.airflow.assets",
        default="true",
        values="`true`, `false` or `partitioned`",
        meaning="whether each run updates the Airflow asset `kafka://{host}:{port}/{topic}` of every topic that it "
        "copied records of, so that other DAGs [run on copied data](airflow.md#dags-that-run-on-copied-data); "
        "`partitioned`: with [partition keys](airflow.md#partitioned-dags)",
    ),
    FerryKey(
        name="ferry.start",
        default="",
        values="`earliest`, `latest`, a time with its zone, epoch milliseconds, or `topic:partition:offset,...`",
        meaning="where the first run begins; when absent, the consumer's `auto.offset.reset`",
    ),
    FerryKey(
        name="ferry.run.max.bytes",
        default=str(10 * 1024**3),
        values="bytes, or a size such as `512MiB`, at least 1",
        meaning="most bytes of one run, as compressed at the source; the plan estimates them",
    ),
    FerryKey(
        name="ferry.run.max.records",
        default="",
        values="records, at least 1; empty: no limit",
        meaning="most offsets of one run",
    ),
    FerryKey(
        name="ferry.run.max.seconds",
        default="900",
        values="seconds, or a duration such as `15m`, at least 1",
        meaning="time budget: this long after the copy step began, no task starts another transaction. Each task "
        "commits at least one; the next run continues from there",
    ),
    FerryKey(
        name="ferry.lane",
        default="live",
        values="letters, digits, dot, underscore, hyphen",
        meaning="the lane whose positions the flow uses",
    ),
    FerryKey(
        name="ferry.deployment",
        default="",
        values="letters, digits, dot, underscore, hyphen; empty: `FERRY_DEPLOYMENT`, else by where the file is used",
        meaning="the deployment's id; two deployments with different files may not use one lane",
    ),
    FerryKey(
        name="ferry.merge.topics",
        default="",
        values="regular expressions of source topics, as in `topics`; empty: none",
        meaning="topics that several flows write into one target topic; all of these flows must say so",
    ),
    FerryKey(
        name="ferry.transforms",
        default="",
        values="names of transforms, with commas between; empty: none",
        meaning="the [transforms](transforms.md) that are used: a flow copies their topics changed",
    ),
    FerryKey(
        name="ferry.replication.factor",
        default="",
        values="`source`; empty: as `replication.factor` says",
        meaning="with `source` a new topic has as many replicas as at the source; in any case not more than the target "
        "has brokers",
    ),
    FerryKey(
        name="ferry.sync.topic.deletes.enabled",
        default="false",
        values="`true` or `false`",
        meaning="whether the copy of a topic that was deleted at the source is deleted, too; "
        "[conditions](#topics-on-the-target)",
    ),
    FerryKey(
        name="ferry.target.free.percent",
        default="5",
        values="percent, such as `10%` or `10`, 0 to 99; empty: not checked",
        meaning="how much of a target broker's log directories must stay free; slices that would take more are refused",
    ),
    FerryKey(
        name="ferry.guard.topics.none",
        default="fail",
        values="`fail` or `skip`",
        meaning="a flow whose `topics` match no topic of the source. `fail`: refused; `skip`: noted, to wait for "
        "topics",
    ),
    FerryKey(
        name="ferry.guard.topic.gone",
        default="fail",
        values="`fail` or `skip`; for some topics `policy:regex` after a comma",
        meaning="a topic that was copied before and that the source does not show any more. `fail`: refused in "
        "each run; `skip`: noted and left out",
    ),
    FerryKey(
        name="ferry.guard.topic.recreated",
        default="fail",
        values="`fail` or `restart`; for some topics `policy:regex` after a comma",
        meaning="a source topic that was deleted and created again. `fail`: refused; `restart`: copied from its "
        "beginning, after the old records",
    ),
    FerryKey(
        name="ferry.guard.retention.passed",
        default="fail",
        values="`fail` or `skip`; for some topics `policy:regex` after a comma",
        meaning="records that the source deleted before they were copied. `fail`: their partition is refused; "
        "`skip`: it continues after them, with a gap in the ledger",
    ),
    FerryKey(
        name="ferry.guard.source.truncated",
        default="fail",
        values="`fail`, `restart` or `skip`; for some topics `policy:regex` after a comma",
        meaning="a source log that lost records which were copied (unclean leader election). `fail`: refused; "
        "`restart`: copied again from where both logs differ; `skip`: continued after what was copied",
    ),
    FerryKey(
        name="ferry.guard.target.changed",
        default="fail",
        values="`fail`, `restart` or `skip`; for some topics `policy:regex` after a comma",
        meaning="a target topic that is gone, was created again or lost records. `fail`: refused; `restart`: "
        "what it lost is copied again; `skip`: continued at the lane's position",
    ),
    FerryKey(
        name="ferry.guard.foreign.writer",
        default="fail",
        values="`fail` or `skip`; for some topics `policy:regex` after a comma",
        meaning="records of another producer on the target, its open transaction, or any records before a first "
        "copy. `fail`: refused; `skip`: left where they are",
    ),
    FerryKey(
        name="ferry.guard.tombstones.passed",
        default="fail",
        values="`fail` or `skip`; for some topics `policy:regex` after a comma",
        meaning="a compacted source topic that was not read to its end for longer than its "
        "`delete.retention.ms`. Deleted keys may stay on the target. `fail`: refused; `skip`: continued",
    ),
    FerryKey(
        name="ferry.guard.cluster.changed",
        default="fail",
        values="`fail` or `restart`",
        meaning="another cluster under the source's alias. `fail`: the run is refused; `restart`: each topic is "
        "copied from its beginning, after the old records",
    ),
    FerryKey(
        name="ferry.guard.clock.skew",
        default="fail",
        values="`fail` or `skip`",
        meaning="this machine's clock differs by more than five minutes from that of the broker that leads the "
        "ledger. `fail`: the run is refused; `skip`: it continues with a note",
    ),
    FerryKey(
        name="ferry.sync.acls.policy",
        default="read",
        values="`read` or `full`",
        meaning="which ACLs `sync.topic.acls.enabled` takes over: the read side of single topics, or all of topics, "
        "groups, transactional ids and the cluster",
    ),
    FerryKey(
        name="ferry.sync.acls.principal.mapping",
        default="",
        values="rules `PATTERN => PRINCIPAL` with semicolons between them; empty: principals stay as they are",
        meaning="who the principals of the source are on the target; ACLs of one that no rule matches are not copied",
    ),
    FerryKey(
        name="ferry.task.memory.bytes",
        default=str(64 * 1024**2),
        values="bytes, or a size such as `512MiB`, at least 1048576",
        meaning="most bytes that a task asks for and holds until the target has acknowledged them",
    ),
    FerryKey(
        name="ferry.chunk.bytes",
        default=str(256 * 1024**2),
        values="bytes, or a size such as `512MiB`, at least 1",
        meaning="most bytes of one transaction",
    ),
    FerryKey(
        name="ferry.chunk.seconds",
        default="20",
        values="seconds, or a duration such as `15m`, at least 1",
        meaning="longest time one transaction stays open; at most half of `ferry.transaction.timeout.ms`",
    ),
    FerryKey(
        name="ferry.portion.bytes",
        default=str(1024**3),
        values="bytes, or a size such as `512MiB`, at least 1048576",
        meaning="about how much of transformed topics Spark sorts on its disks before it is written, for each "
        "running task. What is written counts. Topics with `partitions` are all in the first portion",
    ),
    FerryKey(
        name="ferry.transaction.timeout.ms",
        default="60000",
        values="milliseconds, or a duration such as `90s`, at least 2000",
        meaning="after this time the target's broker aborts an abandoned transaction",
    ),
    FerryKey(
        name="ferry.throttle.bytes.per.second",
        default="",
        values="bytes a second, or a size such as `50MiB`, at least 1024; empty: no limit",
        meaning="most that all tasks of a run together fetch from the source, and so write to the target. The "
        "run of another lane has a rate of its own",
    ),
    FerryKey(
        name="ferry.rpo.records",
        default="",
        values="records, 0 or more; empty: no limit",
        meaning="how many records of a partition may be lost at most (recovery point objective): `ferry readiness` and "
        "alerts compare the lag with it",
    ),
    FerryKey(
        name="ferry.rpo.seconds",
        default="",
        values="seconds, or a duration such as `15m`, 0 or more; empty: no limit",
        meaning="recovery point as a time: the highest allowed age of a partition's oldest uncopied record; "
        "readiness, alerts and drills compare with it",
    ),
    FerryKey(
        name="ferry.ledger.replication.factor",
        default="",
        values="1 to 32767; empty: 3, or as many as there are brokers",
        meaning="replicas of the ledger topic; a ledger with fewer is refused",
    ),
    FerryKey(
        name="ferry.verify",
        default="off",
        values="`off`, `receipt` or `content`",
        meaning="whether a run [verifies itself](#runs-that-verify-themselves) after it has copied: not at all, by the "
        "digests in its receipts, or record by record on both clusters",
    ),
    FerryKey(
        name="ferry.verify.every.runs",
        default="1",
        values="1 to 100",
        meaning="one run of this many verifies itself; `1`: each run",
    ),
    FerryKey(
        name="ferry.verify.schedule",
        default="none",
        values="cron, an Airflow preset or `none`",
        meaning="when Airflow compares all that the flow has copied, by the DAG `ferry_verify__{source}__{target}`",
    ),
    FerryKey(
        name="ferry.ledger.prune",
        default="true",
        values="`true` or `false`",
        meaning="whether receipts go from the ledger when neither the source nor the target has any of their records "
        "left ([what goes and what stays](ledger.md#pruning)); `false` keeps all evidence",
    ),
    FerryKey(
        name="ferry.retries",
        default="3",
        values="0 to 1000",
        meaning="how often a task goes back to its last receipt after a fault, before it fails",
    ),
    FerryKey(
        name="ferry.spark.conn.id",
        default="spark_default",
        values="an Airflow connection id; `spark_connect` means Spark Connect",
        meaning="the connection of Airflow that the Spark job uses",
    ),
    FerryKey(
        name="ferry.pool",
        default="",
        values="an Airflow pool; empty: `ferry_{source}_{target}`",
        meaning="the one-slot pool that keeps two runs of a flow apart",
    ),
    FerryKey(
        name="ferry.report.dir",
        default="ferry-reports",
        values="a folder, or the URL of one in an object store (`s3://bucket/path`)",
        meaning="where the [reports](drills.md#reports) of drills and switches are kept",
    ),
    FerryKey(
        name="ferry.report.dirs",
        default="",
        values="folders by their full paths, or URLs like that of `ferry.report.dir`, with commas between",
        meaning="the other places that [forms in Airflow](airflow.md#places-that-a-form-may-name) may name",
    ),
    FerryKey(
        name="ferry.report.pdf",
        default="false",
        values="`true`, `false`",
        meaning="whether each [report](drills.md#reports) is written as PDF, too; needs `ferry-replicator[pdf]`",
    ),
    FerryKey(
        name="ferry.report.private.key",
        default="",
        values="a private key in PEM (Ed25519, ECDSA, RSA), or the path of its file; empty: reports are not signed",
        meaning="the key that signs reports",
    ),
    FerryKey(
        name="ferry.report.private.key.password",
        default="",
        values="text",
        meaning="the password of `ferry.report.private.key`, if that is encrypted",
    ),
    FerryKey(
        name="ferry.rto.seconds",
        default="",
        values="seconds, or a duration such as `15m`, at least 0; empty: no goal",
        meaning="the goal for the time from the start of a failover until the target serves; drills compare with it",
    ),
    *feature_keys(),
)

TRANSFORM_KEYS = (
    FerryKey(
        name="ferry.transform.{name}.topics",
        default="",
        values="regular expressions of source topics, as in `topics`",
        meaning="the topics whose records the transform changes; a topic belongs to one transform",
    ),
    FerryKey(
        name="ferry.transform.{name}.sql",
        default="",
        values="`SELECT ... FROM records WHERE ...`",
        meaning="[a selection](transforms.md#sql) in Spark's SQL, made first",
    ),
    FerryKey(
        name="ferry.transform.{name}.function",
        default="",
        values="`package.module:function`",
        meaning="[a function](transforms.md#a-function) of Python in place of `sql`: a DataFrame in, a DataFrame out",
    ),
    FerryKey(
        name="ferry.transform.{name}.where",
        default="",
        values="a condition of Spark's SQL; empty: all",
        meaning="only records for which the condition is true are copied",
    ),
    FerryKey(
        name="ferry.transform.{name}.sample",
        default="",
        values="percent, such as `10%` or `0.5%`; empty: all",
        meaning="the share of keys that is copied, each with all of its records or none; without a key, of records",
    ),
    FerryKey(
        name="ferry.transform.{name}.remove",
        default="",
        values="paths into JSON, such as `$.card.number, $.lines[*].note`",
        meaning="fields that are removed from the value, with their names",
    ),
    FerryKey(
        name="ferry.transform.{name}.redact",
        default="",
        values="paths into JSON",
        meaning='fields of which only the type is left: `""`, `0`, `false`, `[]`, `{}`',
    ),
    FerryKey(
        name="ferry.transform.{name}.hash",
        default="",
        values="paths into JSON",
        meaning="fields that become the HMAC-SHA-256 of their text with `salt`: what was equal stays equal",
    ),
    FerryKey(
        name="ferry.transform.{name}.cast",
        default="",
        values="paths into JSON, each with `:` and a type, such as `$.amount:float64, $.id:string`; `$:string`: the "
        "whole value",
        meaning="fields that get another type: `int8`, `int16`, `int32`, `int64`, `float32`, `float64`, "
        "`boolean`, `string`; a record with a field that cannot become one is poison",
    ),
    FerryKey(
        name="ferry.transform.{name}.cast.key",
        default="",
        values="paths into JSON, each with `:` and a type",
        meaning="fields of the record's key that get another type; the key must be JSON",
    ),
    FerryKey(
        name="ferry.transform.{name}.hash.key",
        default="false",
        values="`true` or `false`",
        meaning="whether the record's key becomes its HMAC-SHA-256 with `salt`",
    ),
    FerryKey(
        name="ferry.transform.{name}.salt",
        default="",
        values="text, at least 16 bytes; best a reference, `${file:/path:name}` or `${env:NAME}`",
        meaning="the secret of `hash` and `hash.key`",
    ),
    FerryKey(
        name="ferry.transform.{name}.provenance",
        default="false",
        values="`true` or `false`",
        meaning="whether records get headers `ferry.source.cluster`, `.topic`, `.partition` and `.offset`",
    ),
    FerryKey(
        name="ferry.transform.{name}.target",
        default="",
        values="an expression of Spark's SQL; empty: as the policy names it",
        meaning="the topic that records go to, by `topic` and by `target`, the policy's name for it",
    ),
    FerryKey(
        name="ferry.transform.{name}.partitions",
        default="",
        values="a number, at least 1; empty: as many as the source topic has",
        meaning="partitions of the target topic; records go where Kafka's default partitioner puts their key",
    ),
    FerryKey(
        name="ferry.transform.{name}.targets",
        default="",
        values="names of topics of the target, such as `{topic}-eu, {topic}-us`; `{target}` is the policy's name",
        meaning="[the topics](transforms.md#a-name-that-records-decide) that each record may name as its `target`;"
        " needs `partitions`",
    ),
    FerryKey(
        name="ferry.transform.{name}.poison",
        default="fail",
        values="`fail`, `skip` or `pass`",
        meaning="what to do with a record on which the transform fails: refuse it, make it a dead letter, or copy it "
        "unchanged",
    ),
    FerryKey(
        name="ferry.transform.{name}.timeout.ms",
        default="0",
        values="milliseconds, or a duration such as `90s`; 0: as long as it takes",
        meaning="how long one Spark task may take for each of its reads, of at most 500,000 records, before the run "
        "refuses the transform's topics. The limit counts for `sql`, `function`, `where`, `target` and `partitions`",
    ),
)
"""Keys of one transform; `ferry.transforms` names those that are used."""

TRANSFORM_PARTS = {key.name.removeprefix("ferry.transform.{name}."): key for key in TRANSFORM_KEYS}


def transform_key(name: str) -> tuple[str, FerryKey] | None:
    """Return the transform of a key (`ferry.transform.{name}.part`), and the key; None for every other key."""
    rest = name.removeprefix("ferry.transform.")
    if rest == name:
        return None
    for part in sorted(TRANSFORM_PARTS, key=len, reverse=True):
        if rest.endswith(f".{part}") and "." not in rest.removesuffix(f".{part}"):
            return rest.removesuffix(f".{part}"), TRANSFORM_PARTS[part]
    return None


FERRY_KEYS_BY_NAME = {key.name: key for key in FERRY_KEYS}
