"""The commands of `ferry` that join the kernel and features, and the table of all commands.

The table has the place of each command, and the line that a list of commands shows. A new command gets a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.cli.lazy import Group, Panel, Row, Spellings

_ANY = {"allow_extra_args": True, "ignore_unknown_options": True}

ANY_OPTIONS: Mapping[str, Any] = {"context_settings": {**_ANY, "help_option_names": ["--help"]}}
"""For a command that reads options itself: MirrorMaker 1 spelled its options differently in its versions.

It has no `-h`: each letter of `-Djava.security.auth...` would be read as a short option.
"""

HANDED_ON: Mapping[str, Any] = {"context_settings": {**_ANY, "help_option_names": []}, "add_help_option": False}
"""For a command that passes all its words to another program."""

WATCH_SECONDS = "10"
_OLD_REASON = {"--why": "--reason"}
_OLD_RPO = {"--max-records": "--rpo-records", "--max-seconds": "--rpo-seconds"}
_OLD_WORKERS = {"--group": "--worker-group"}

COMMANDS: Mapping[str, Row | Group] = {
    "plan": Row(
        panel=Panel.COPY,
        place="ferry.commands.plan:plan_command",
        help="Show what a run would copy, change and refuse now. Writes nothing.",
        examples=(
            "plan 'primary->backup'",
            "plan 'primary->backup' --explain orders",
            "plan 'primary->backup' --sample 3",
        ),
        old={"--why": "--explain"},
    ),
    "run": Row(
        panel=Panel.COPY,
        place="ferry.commands.run:run_command",
        help="Plan, copy and report one micro-run on this machine. Several tasks run as processes of their own, or in "
        "Spark.",
        examples=(
            "run 'primary->backup'",
            "run 'primary->backup' --topic orders --max-seconds 60",
            "run 'primary->backup' --spark",
        ),
        old={"--run": "--id"},
    ),
    "backfill": Row(
        panel=Panel.COPY,
        place="ferry.commands.backfill:backfill_command",
        help="Copy a window of history once, by default to scratch topics of a lane of its own. Safe to repeat.",
        examples=(
            (
                "backfill 'primary->backup' --lane backfill-january --from 2026-01-01T00:00:00Z --to "
                "2026-02-01T00:00:00Z"
            ),
            "backfill 'primary->backup' --lane backfill-fix --from-offset orders:3:1000 --to-offset orders:3:2000",
        ),
    ),
    "lag": Row(
        panel=Panel.WATCH,
        place="ferry.commands.lag:lag_command",
        help="Show how many records, bytes and seconds are not copied yet, per source partition and in total.",
        examples=(
            "lag 'primary->backup'",
            "lag 'primary->backup' --rpo-seconds 600 --quiet",
        ),
        old={**_OLD_RPO, "--watch": "ferry status --watch"},
    ),
    "pause": Row(
        panel=Panel.COPY,
        place="ferry.commands.pausing:pause_command",
        help="Stop planning a flow or topic, until the given time or until ferry resume.",
        examples=(
            "pause 'primary->backup' --topic orders --reason 'schema migration' --until 2026-01-31T06:00:00Z",
            "pause --topic payments.audit --reason 'schema migration'",
        ),
        old=_OLD_REASON,
    ),
    "resume": Row(
        panel=Panel.COPY,
        place="ferry.commands.pausing:resume_command",
        help="End a pause. The next plan continues the flow or topic where it stopped.",
        examples=(
            "resume 'primary->backup' --dry-run",
            "resume 'primary->backup' --topic orders",
        ),
    ),
    "skip": Row(
        panel=Panel.COPY,
        place="ferry.commands.skip:skip_command",
        help="Skip records that cannot be copied, such as a corrupt batch, and continue at OFFSET. Records before "
        "OFFSET are never copied.",
        examples=("skip 'primary->backup' orders 3 --to 1043 --reason 'bad disk, INC-4711' --dry-run",),
    ),
    "readiness": Row(
        panel=Panel.MOVE,
        place="ferry.features.switch.cli.readiness:readiness_command",
        help="Check whether the target could take over now, and print one line per check. Writes nothing.",
        examples=(
            "readiness 'primary->backup'",
            "readiness 'primary->backup' --rpo-records 0",
        ),
        old=_OLD_RPO,
    ),
    "switchover": Row(
        panel=Panel.MOVE,
        place="ferry.features.switch.cli.switching:switchover_command",
        help="Move clients to the target as planned: stop producers, copy all records, move the groups. Nothing is "
        "lost.",
        examples=(
            "switchover 'primary->backup' --dry-run",
            "switchover 'primary->backup' --approve-by anna --redirect-command ./move-clients",
        ),
        old=_OLD_RPO,
    ),
    "failover": Row(
        panel=Panel.MOVE,
        place="ferry.features.switch.cli.switching:failover_command",
        help="Move clients to the target when the source is gone. Records that were not copied are lost, and counted "
        "per partition.",
        examples=(
            "failover 'primary->backup' --dry-run",
            "failover 'primary->backup' --approve-by anna",
        ),
    ),
    "failback": Row(
        panel=Panel.MOVE,
        place="ferry.features.switch.cli.switching:failback_command",
        help="Move clients back to the source of FLOW, the flow that was switched. Only records written since the "
        "switch are copied.",
        examples=("failback 'primary->backup' --approve-by anna --output stranded.jsonl",),
        old={**_OLD_RPO, "--export": "--output"},
    ),
    "flows": Row(
        panel=Panel.WATCH,
        place="ferry.commands.flows:flows_command",
        help="List the enabled flows of the file. Asks no cluster.",
        examples=("flows --config mm2.properties",),
    ),
    "translate": Row(
        panel=Panel.GROUPS,
        place="ferry.features.groups.cli.translate:translate_command",
        help="Translate a consumer position from one cluster to the other, using the ledger.",
        examples=(
            "translate 'primary->backup' orders 3 1042",
            "translate 'primary->backup' --group billing",
        ),
    ),
    "verify": Row(
        panel=Panel.EVIDENCE,
        place="ferry.features.verify.cli.command:verify_command",
        help="Compare what was copied on both clusters, using the ledger: keys, values, headers, timestamps, order "
        "and count.",
        examples=(
            "verify 'primary->backup'",
            "verify 'primary->backup' --topic orders --from 2026-01-01T00:00:00Z --one-in 10",
        ),
        old={"--sample": "--one-in"},
    ),
    "status": Row(
        panel=Panel.WATCH,
        place="ferry.commands.status:status_command",
        help="Show the newest run, the lag and the next time of every flow. Writes nothing.",
        examples=(
            "status",
            "status --watch 10",
        ),
        bare={"--watch": WATCH_SECONDS},
    ),
    "doctor": Row(
        panel=Panel.WATCH,
        place="ferry.features.doctor.cli.doctor:doctor_command",
        help="Check the file, this machine, and the clusters and permissions of each flow. Writes nothing.",
        examples=(
            "doctor",
            "doctor 'primary->backup' --patience 5",
        ),
    ),
    "support-bundle": Row(
        panel=Panel.WATCH,
        place="ferry.commands.support_bundle:bundle_command",
        help="Write an archive for those who help: versions, the file without secrets, plans, runs. Holds no records.",
        examples=(
            "support-bundle",
            "support-bundle 'primary->backup' --output primary-to-backup.tar.gz",
        ),
    ),
    "explain": Row(
        panel=Panel.WATCH,
        place="ferry.commands.explain:explain_command",
        help="Explain a state, refusal, gap, alert, error or term: what it means, what to check, what fixes it.",
        examples=(
            "explain retention-passed",
            "explain FerryLagOverRpo",
        ),
    ),
    "version": Row(
        panel=Panel.SET_UP,
        place="ferry.commands.version:version_command",
        help="Show the versions of Ferry and Python.",
        examples=("version --json",),
    ),
    "dev": Row(
        panel=Panel.DEVELOP,
        place="ferry.commands.dev:dev_command",
        help="Start, show and stop real Kafka clusters on this machine.",
        options=HANDED_ON,
    ),
    "airflow": Row(
        panel=Panel.SET_UP,
        place="ferry.commands.airflow:airflow_command",
        help="Prepare Airflow for Ferry: create pools, check connections.",
        options=HANDED_ON,
    ),
    "lanes": Group(
        panel=Panel.COPY,
        help="List the lanes of a flow, or drop one. Without a command: list them.",
        first="list",
        rows={
            "list": Row(
                place="ferry.features.lanes.cli.lanes:list_command",
                help="List the lanes in the flow's ledger. Asks only the target.",
                examples=("lanes list 'primary->backup'",),
            ),
            "drop": Row(
                place="ferry.features.lanes.cli.lanes:drop_command",
                help="Delete a lane's scratch topics, its group and its part of the ledger. Safe to repeat; never "
                "deletes the live lane.",
                examples=(
                    "lanes drop 'primary->backup' backfill-january --dry-run",
                    "lanes drop 'primary->backup' backfill-january --yes",
                ),
            ),
        },
    ),
    "acls": Group(
        panel=Panel.SET_UP,
        help="Show the permissions that the clusters must grant.",
        rows={
            "diff": Row(
                place="ferry.features.acls.cli.diff:diff_command",
                help="Show how the target's ACLs differ from those that follow from the source. Writes nothing.",
                examples=("acls diff 'primary->backup'",),
            ),
            "required": Row(
                place="ferry.features.acls.cli.required:required_command",
                help="Print the ACLs that a flow needs, as kafka-acls commands for both clusters. Asks no cluster.",
                examples=("acls required 'primary->backup'",),
            ),
        },
    ),
    "groups": Group(
        panel=Panel.GROUPS,
        help="Show and write consumer groups on both sides of a flow. Without a command: show.",
        first="show",
        rows={
            "show": Row(
                place="ferry.features.groups.cli.table:show_command",
                help="Show the offsets of consumer groups on both clusters, and what the source's offsets translate "
                "to on the target.",
                examples=(
                    "groups 'primary->backup'",
                    "groups 'primary->backup' --group billing",
                ),
            ),
            "sync": Row(
                place="ferry.features.groups.cli.sync:sync_command",
                help="Translate the groups' offsets, and write them to the target's groups that have no members.",
                examples=(
                    "groups sync 'primary->backup' --dry-run",
                    "groups sync 'primary->backup' --group billing",
                ),
            ),
            "snapshot": Row(
                place="ferry.features.groups.cli.snapshots:snapshot_command",
                help="Save the groups' current offsets on the target in the ledger, until the snapshot is dropped.",
                examples=("groups snapshot 'primary->backup' --snapshot before-upgrade",),
                old={"--name": "--snapshot"},
            ),
            "snapshots": Group(
                help="List the snapshots of the groups' offsets, or drop one.",
                rows={
                    "list": Row(
                        place="ferry.features.groups.cli.snapshots:list_command",
                        help="List the snapshots of the groups' offsets that the ledger keeps.",
                        examples=("groups snapshots list 'primary->backup'",),
                    ),
                    "drop": Row(
                        place="ferry.features.groups.cli.snapshots:drop_command",
                        help="Delete a snapshot of the groups' offsets from the ledger. No group is changed.",
                        examples=("groups snapshots drop 'primary->backup' before-upgrade --dry-run",),
                    ),
                },
            ),
            "diff": Row(
                place="ferry.features.groups.cli.snapshots:diff_command",
                help="Show which groups' offsets on the target differ from a snapshot. "
                "Exit 1 if any does, or could not be read.",
                examples=("groups diff 'primary->backup' --snapshot before-upgrade",),
            ),
            "rollback": Row(
                place="ferry.features.groups.cli.snapshots:rollback_command",
                help="Write a snapshot's offsets back to the target's groups that have no members. The current "
                "offsets are saved, too.",
                examples=("groups rollback 'primary->backup' --snapshot before-upgrade --dry-run",),
            ),
        },
    ),
    "ledger": Group(
        panel=Panel.WATCH,
        help="Read, export or rebuild the flow's ledger. Without a command: read it.",
        first="show",
        rows={
            "show": Row(
                place="ferry.commands.ledger.show:ledger_command",
                help="Show receipts, runs and pauses of the ledger. Asks only the target.",
                examples=(
                    "ledger 'primary->backup' --runs",
                    "ledger 'primary->backup' --topic orders --partition 3 --offset 1042",
                ),
            ),
            "export": Row(
                place="ferry.features.archive.cli.file:export_command",
                help="Write every committed record of the flow's ledger to a file. Runs may be active meanwhile.",
                examples=("ledger export 'primary->backup' --output ledger.jsonl",),
                old={"--to": "--output"},
            ),
            "rebuild": Row(
                place="ferry.features.archive.cli.file:rebuild_command",
                help="Rebuild a lost ledger from an export, with each record at its old offset.",
                examples=("ledger rebuild 'primary->backup' --input ledger.jsonl --dry-run",),
                old={"--from": "--input"},
            ),
        },
    ),
    "migrate": Group(
        panel=Panel.SET_UP,
        help="Convert a MirrorMaker 1 setup, take over from MirrorMaker 1 or 2, or hand a flow back to MirrorMaker 2.",
        rows={
            "import-mm1": Row(
                place="ferry.features.migrate.cli.import_mm1:import_mm1_command",
                help="Convert a MirrorMaker 1 setup to a MirrorMaker 2 file, and report what became of each option.",
                examples=(
                    (
                        "migrate import-mm1 --output mm2.properties kafka-mirror-maker.sh --consumer.config "
                        "c.properties --producer.config p.properties --whitelist .*"
                    ),
                ),
                options=ANY_OPTIONS,
            ),
            "mm1": Row(
                place="ferry.features.migrate.cli.adopt:adopt_mm1_command",
                help="Take over from a stopped MirrorMaker 1, using the offsets of its consumer group on the source.",
                examples=("migrate mm1 'primary->backup' --group mirror --dry-run",),
            ),
            "mm2": Row(
                place="ferry.features.migrate.cli.adopt:adopt_mm2_command",
                help="Take over from a stopped MirrorMaker 2, dedicated or on Kafka Connect. The next run continues "
                "where it stopped.",
                examples=("migrate mm2 'primary->backup' --dry-run",),
                old=_OLD_WORKERS,
            ),
            "hand-back": Row(
                place="ferry.features.migrate.cli.hand_back:hand_back_mm2_command",
                help="Write the flow's positions into MirrorMaker 2's offsets topic, so that it continues without "
                "loss or duplicates.",
                examples=("migrate hand-back 'primary->backup' --dry-run",),
                old=_OLD_WORKERS,
            ),
        },
    ),
    "switches": Group(
        panel=Panel.MOVE,
        help="List and show switchovers, failovers and failbacks, or abandon one. Without a command: list them.",
        first="list",
        rows={
            "list": Row(
                place="ferry.features.switch.cli.switches:switch_list_command",
                help="List the switches of a flow and of its flow back, oldest first, as far as both ledgers can "
                "be read.",
                examples=("switches list 'primary->backup'",),
            ),
            "show": Row(
                place="ferry.features.switch.cli.switches:switch_show_command",
                help="Show each step of a switch: who did it, when, and what was found.",
                examples=("switches show 'primary->backup' switchover-20260131T060000Z-1a2b",),
            ),
            "abandon": Row(
                place="ferry.features.switch.cli.switches:switch_abandon_command",
                help="Abandon a switch that has not promoted the new cluster yet, and end the pause that it set.",
                examples=(
                    (
                        "switches abandon 'primary->backup' switchover-20260131T060000Z-1a2b --reason 'producers could "
                        "not be stopped'"
                    ),
                ),
                old=_OLD_REASON,
            ),
        },
    ),
    "drills": Group(
        panel=Panel.EVIDENCE,
        help="Rehearse a failover; each drill ends in a report.",
        rows={
            "tabletop": Row(
                place="ferry.features.drill.cli.app:tabletop_command",
                help="Show what a failover would do and lose now, with numbers. Writes nothing but the report.",
                examples=("drills tabletop 'primary->backup'",),
            ),
            "shadow": Row(
                place="ferry.features.drill.cli.app:shadow_command",
                help="Copy to scratch topics, move the groups to scratch groups, compare everything, and clean up. "
                "Production is untouched.",
                examples=("drills shadow 'primary->backup' --from 2026-01-31T06:00:00Z --dry-run",),
            ),
            "partial": Row(
                place="ferry.features.drill.cli.app:partial_command",
                help="Test a topic, or a group and its topics, on the live copies: copy to the end, write offsets, "
                "read, compare.",
                examples=(
                    "drills partial 'primary->backup' --topic orders --approve-by anna",
                    "drills partial 'primary->backup' --group billing --approve-by anna",
                ),
            ),
            "full": Row(
                place="ferry.features.drill.cli.app:full_command",
                help="Move production clients to the target and back: a real switchover, then a failback. Nothing is "
                "lost.",
                examples=(
                    "drills full 'primary->backup' --dry-run",
                    "drills full 'primary->backup' --approve-by anna",
                ),
            ),
        },
    ),
    "records": Group(
        panel=Panel.EVIDENCE,
        help="Show a record and its copy.",
        rows={
            "show": Row(
                place="ferry.features.records.cli.show:show_command",
                help="Show the record at an offset and its copy on the other side, as a read_committed consumer sees "
                "them.",
                examples=(
                    "records show 'primary->backup' orders 3 1042",
                    "records show 'primary->backup' primary.orders 3 940 --reverse --as json",
                ),
            ),
        },
    ),
    "reports": Group(
        panel=Panel.EVIDENCE,
        help="List the reports of drills and switches, write one, or check signatures and the chain. Without a "
        "command: list them.",
        first="list",
        rows={
            "list": Row(
                place="ferry.features.drill.cli.reports:list_command",
                help="List the reports of a folder, newest first.",
                examples=(
                    "reports list",
                    "reports list /srv/reports",
                ),
            ),
            "switch": Row(
                place="ferry.features.drill.cli.reports:switch_command",
                help="Write the report of a switchover, failover or failback from the ledger's records of it.",
                examples=("reports switch 'primary->backup' switchover-20260131T060000Z-1a2b",),
            ),
            "verify": Row(
                place="ferry.features.drill.cli.reports:verify_command",
                help="Check that no report was changed, removed or inserted: each report's signature, and its link to "
                "the previous one.",
                examples=("reports verify /srv/reports --key reports.pub.pem",),
                old={"--last": "--newest"},
            ),
        },
    ),
    "metrics": Group(
        panel=Panel.WATCH,
        help="Serve the metrics that runs write for Prometheus.",
        rows={
            "serve": Row(
                place="ferry.features.observe.cli.metrics:serve_command",
                help="Serve the metrics of all files of a folder to Prometheus, until interrupted.",
                examples=(
                    "metrics serve",
                    "metrics serve /var/lib/ferry/metrics --address 0.0.0.0 --port 9464",
                ),
            ),
        },
    ),
    "config": Group(
        panel=Panel.SET_UP,
        help="Check, explain and write the MirrorMaker 2 file. Asks no cluster.",
        rows={
            "check": Row(
                place="ferry.commands.config.check:check_command",
                help="Show what the file means: every value of every flow with its line, which keys are not needed, "
                "and what is wrong.",
                examples=(
                    "config check mm2.properties",
                    "config check mm2.properties --fix fixed.properties",
                ),
            ),
            "explain": Row(
                place="ferry.commands.config.explain:explain_command",
                help="Explain a key: what Ferry does with it, where it may be written, and its default. Without KEY: "
                "one line for each key.",
                examples=("config explain offset-syncs.topic.location",),
            ),
            "new": Row(
                place="ferry.commands.config.new:new_command",
                help="Write a first file and check it. At a terminal, ask for each value that no option gives.",
                examples=("config new mm2.properties --source-servers kafka-1:9092 --target-servers kafka-9:9092",),
            ),
            "policy": Row(
                place="ferry.commands.policy:check_command",
                help="Show the topic names that a policy makes, and every rule that it breaks. Exit 1 if anything is "
                "wrong.",
                examples=("config policy org.apache.kafka.connect.mirror.IdentityReplicationPolicy --topic orders",),
            ),
        },
    ),
}

OLD_SPELLINGS: Spellings = {
    ("switch",): ("switches",),
    ("drill",): ("drills",),
    ("adopt",): ("migrate",),
    ("hand-back", "mm2"): ("migrate", "hand-back"),
    ("hand-back",): ("migrate", "hand-back"),
    ("config", "import-mm1"): ("migrate", "import-mm1"),
    ("policy", "check"): ("config", "policy"),
    ("policy",): ("config", "policy"),
}
"""Other words of commands, and their names. Version 0.1 takes both; no list shows the other words."""
