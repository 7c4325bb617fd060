"""Examples of use: one or two lines for each command, shown by its --help and in docs/cli-reference.md."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from ferry.cli.plain import PlainCommand, PlainGroup

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "plan": (
        "plan 'primary->backup'",
        "plan 'primary->backup' --explain orders",
        "plan 'primary->backup' --sample 3",
    ),
    "run": (
        "run 'primary->backup'",
        "run 'primary->backup' --topic orders --max-seconds 60",
        "run 'primary->backup' --spark",
    ),
    "backfill": (
        "backfill 'primary->backup' --lane backfill-january --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
        "backfill 'primary->backup' --lane backfill-fix --from-offset orders:3:1000 --to-offset orders:3:2000",
    ),
    "lanes list": ("lanes list 'primary->backup'",),
    "lanes drop": (
        "lanes drop 'primary->backup' backfill-january --dry-run",
        "lanes drop 'primary->backup' backfill-january --yes",
    ),
    "lag": ("lag 'primary->backup'", "lag 'primary->backup' --rpo-seconds 600 --quiet"),
    "acls required": ("acls required 'primary->backup'",),
    "acls diff": ("acls diff 'primary->backup'",),
    "groups show": ("groups 'primary->backup'", "groups 'primary->backup' --group billing"),
    "groups sync": ("groups sync 'primary->backup' --dry-run", "groups sync 'primary->backup' --group billing"),
    "groups snapshot": ("groups snapshot 'primary->backup' --snapshot before-upgrade",),
    "groups snapshots list": ("groups snapshots list 'primary->backup'",),
    "groups snapshots drop": ("groups snapshots drop 'primary->backup' before-upgrade --dry-run",),
    "groups diff": ("groups diff 'primary->backup' --snapshot before-upgrade",),
    "groups rollback": ("groups rollback 'primary->backup' --snapshot before-upgrade --dry-run",),
    "ledger show": (
        "ledger 'primary->backup' --runs",
        "ledger 'primary->backup' --topic orders --partition 3 --offset 1042",
    ),
    "ledger export": ("ledger export 'primary->backup' --output ledger.jsonl",),
    "ledger rebuild": ("ledger rebuild 'primary->backup' --input ledger.jsonl --dry-run",),
    "pause": (
        "pause 'primary->backup' --topic orders --reason 'schema migration' --until 2026-01-31T06:00:00Z",
        "pause --topic payments.audit --reason 'schema migration'",
    ),
    "resume": (
        "resume 'primary->backup' --dry-run",
        "resume 'primary->backup' --topic orders",
    ),
    "skip": ("skip 'primary->backup' orders 3 --to 1043 --reason 'bad disk, INC-4711' --dry-run",),
    "migrate mm2": ("migrate mm2 'primary->backup' --dry-run",),
    "migrate mm1": ("migrate mm1 'primary->backup' --group mirror --dry-run",),
    "migrate hand-back": ("migrate hand-back 'primary->backup' --dry-run",),
    "readiness": ("readiness 'primary->backup'", "readiness 'primary->backup' --rpo-records 0"),
    "switchover": (
        "switchover 'primary->backup' --dry-run",
        "switchover 'primary->backup' --approve-by anna --redirect-command ./move-clients",
    ),
    "failover": ("failover 'primary->backup' --dry-run", "failover 'primary->backup' --approve-by anna"),
    "failback": ("failback 'primary->backup' --approve-by anna --output stranded.jsonl",),
    "switches list": ("switches list 'primary->backup'",),
    "switches show": ("switches show 'primary->backup' switchover-20260131T060000Z-1a2b",),
    "switches abandon": (
        "switches abandon 'primary->backup' switchover-20260131T060000Z-1a2b --reason 'producers could not be stopped'",
    ),
    "explain": ("explain retention-passed", "explain FerryLagOverRpo"),
    "status": ("status", "status --watch 10"),
    "doctor": ("doctor", "doctor 'primary->backup' --patience 5"),
    "support-bundle": ("support-bundle", "support-bundle 'primary->backup' --output primary-to-backup.tar.gz"),
    "flows": ("flows --config mm2.properties",),
    "translate": ("translate 'primary->backup' orders 3 1042", "translate 'primary->backup' --group billing"),
    "verify": (
        "verify 'primary->backup'",
        "verify 'primary->backup' --topic orders --from 2026-01-01T00:00:00Z --one-in 10",
    ),
    "records show": (
        "records show 'primary->backup' orders 3 1042",
        "records show 'primary->backup' primary.orders 3 940 --reverse --as json",
    ),
    "drills tabletop": ("drills tabletop 'primary->backup'",),
    "drills shadow": ("drills shadow 'primary->backup' --from 2026-01-31T06:00:00Z --dry-run",),
    "drills partial": (
        "drills partial 'primary->backup' --topic orders --approve-by anna",
        "drills partial 'primary->backup' --group billing --approve-by anna",
    ),
    "drills full": ("drills full 'primary->backup' --dry-run", "drills full 'primary->backup' --approve-by anna"),
    "reports list": ("reports list", "reports list /srv/reports"),
    "reports switch": ("reports switch 'primary->backup' switchover-20260131T060000Z-1a2b",),
    "reports verify": ("reports verify /srv/reports --key reports.pub.pem",),
    "metrics serve": ("metrics serve", "metrics serve /var/lib/ferry/metrics --address 0.0.0.0 --port 9464"),
    "version": ("version --json",),
    "config check": ("config check mm2.properties", "config check mm2.properties --fix fixed.properties"),
    "config explain": ("config explain offset-syncs.topic.location",),
    "config new": ("config new mm2.properties --source-servers kafka-1:9092 --target-servers kafka-9:9092",),
    "migrate import-mm1": (
        (
            "migrate import-mm1 --output mm2.properties kafka-mirror-maker.sh --consumer.config c.properties "
            "--producer.config p.properties --whitelist .*"
        ),
    ),
    "config policy": ("config policy org.apache.kafka.connect.mirror.IdentityReplicationPolicy --topic orders",),
    "dev up": ("dev up --names source,target --brokers 3",),
    "dev status": ("dev status",),
    "dev down": ("dev down", "dev down --names source --delete"),
    "airflow setup": ("airflow setup --config mm2.properties --dry-run", "airflow setup --config mm2.properties"),
}
"""Examples of each command, by its words; each line is without `ferry`."""


def epilog_of(words: str) -> str | None:
    """Return the text below the help of a command; None without an example."""
    lines = EXAMPLES.get(words, ())
    return "\n".join(("Examples:", *(f"$ ferry {line}" for line in lines))) if lines else None


def show_examples(app: typer.Typer, *words: str) -> None:
    """Put the examples below the help of each command of `app`, which `words` lead to; the help is plain."""
    app.info.cls = PlainGroup
    for command in app.registered_commands:
        if command.cls is None or not issubclass(command.cls, PlainCommand):  # else it has old spellings
            command.cls = PlainCommand
        command.epilog = epilog_of(" ".join((*words, command.name or "")))
