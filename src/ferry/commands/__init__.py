"""The commands of `ferry` that join the kernel and features, and the table of all commands.

The table has the place of each command, and the line that a list of commands shows. A new command gets a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.cli.lazy import Group, Row

_ANY = {"allow_extra_args": True, "ignore_unknown_options": True}

ANY_OPTIONS: Mapping[str, Any] = {"context_settings": _ANY}
"""For a command that reads options itself: MirrorMaker 1 spelled its options differently in its versions."""

HANDED_ON: Mapping[str, Any] = {"context_settings": {**_ANY, "help_option_names": []}, "add_help_option": False}
"""For a command that passes all its words to another program."""

COMMANDS: Mapping[str, Row | Group] = {
    "plan": Row(
        place="ferry.commands.plan:plan_command",
        help="Show what a run would copy, change and refuse now. Nothing is written.",
    ),
    "run": Row(
        place="ferry.commands.run:run_command",
        help="Plan, copy and report one micro-run on this machine, several tasks in processes of their own, or in "
        "Spark.",
    ),
    "backfill": Row(
        place="ferry.commands.backfill:backfill_command",
        help="Copy a window of history once, by default to scratch topics of a lane of its own. Safe to repeat.",
    ),
    "lag": Row(
        place="ferry.commands.lag:lag_command",
        help="Show per source partition and in total how many records, bytes and seconds are not yet copied.",
    ),
    "pause": Row(
        place="ferry.commands.pausing:pause_command",
        help="Plan nothing of a flow or topic any more, until its time is over or somebody resumes it.",
    ),
    "resume": Row(
        place="ferry.commands.pausing:resume_command",
        help="Take a pause back: the next plan copies the flow or topic from where it was left.",
    ),
    "skip": Row(
        place="ferry.commands.skip:skip_command",
        help="Go on behind a place that cannot be copied, such as a corrupt batch. What lies before OFFSET is not "
        "copied.",
    ),
    "readiness": Row(
        place="ferry.features.switch.cli.readiness:readiness_command",
        help="Say whether the target could take over now, one check a line; writes nothing.",
    ),
    "switchover": Row(
        place="ferry.features.switch.cli.switching:switchover_command",
        help="Move clients to the target as planned: producers stop, all is copied, groups move, nothing is lost.",
    ),
    "failover": Row(
        place="ferry.features.switch.cli.switching:failover_command",
        help="Move clients to the target although the source is gone: what was not copied is lost, and counted by "
        "partition.",
    ),
    "failback": Row(
        place="ferry.features.switch.cli.switching:failback_command",
        help="Move clients back to the source of FLOW, the flow that was switched: only what came since is copied.",
    ),
    "flows": Row(
        place="ferry.commands.flows:flows_command", help="List the enabled flows of the file; no cluster is asked."
    ),
    "translate": Row(
        place="ferry.features.groups.cli.translate:translate_command",
        help="Say where a reader of one side goes on at the other, by the ledger at the target.",
    ),
    "verify": Row(
        place="ferry.features.verify.cli.command:verify_command",
        help="Compare both clusters through the ledger: keys, values, headers, timestamps, order and count of what was "
        "copied.",
    ),
    "explain": Row(
        place="ferry.commands.explain:explain_command",
        help="Explain a state, refusal, gap, alert or error: what it means, what to check, what fixes it.",
    ),
    "version": Row(
        place="ferry.commands.version:version_command", help="Show the version of Ferry and of the Python it runs on."
    ),
    "dev": Row(
        place="ferry.commands.dev:dev_command",
        help="Real Kafka clusters on this machine: up, status, down.",
        options=HANDED_ON,
    ),
    "airflow": Row(
        place="ferry.commands.airflow:airflow_command",
        help="Prepare an Airflow for Ferry: pools and connections.",
        options=HANDED_ON,
    ),
    "lanes": Group(
        help="The lanes of a flow: list them, drop one.",
        rows={
            "list": Row(
                place="ferry.features.lanes.cli.lanes:list_command",
                help="List the lanes that the flow's ledger knows; only the target is asked.",
            ),
            "drop": Row(
                place="ferry.features.lanes.cli.lanes:drop_command",
                help="Delete a lane's scratch topics, its group and its part of the ledger. Safe to repeat; never the "
                "live lane.",
            ),
        },
    ),
    "acls": Group(
        help="Permissions that the clusters must grant.",
        rows={
            "diff": Row(
                place="ferry.features.acls.cli.diff:diff_command",
                help="Show how the target's ACLs differ from what the source's ask for. Nothing is written.",
            ),
            "required": Row(
                place="ferry.features.acls.cli.required:required_command",
                help="Print the ACLs that a flow needs, as kafka-acls commands for both clusters. No cluster is asked.",
            ),
        },
    ),
    "groups": Group(
        help="Consumer groups on both sides of a flow; without a command: show them.",
        first="show",
        rows={
            "show": Row(
                place="ferry.features.groups.cli.table:show_command",
                help="Show where consumer groups stand on both sides, and where the source's offsets lie on the "
                "target.",
            ),
            "sync": Row(
                place="ferry.features.groups.cli.sync:sync_command",
                help="Translate the groups' offsets by what is copied, and write them to groups without members on the "
                "target.",
            ),
            "snapshot": Row(
                place="ferry.features.groups.cli.snapshots:snapshot_command",
                help="Keep the offsets that the flow's groups have on the target now in the ledger, until they are "
                "dropped.",
            ),
            "diff": Row(
                place="ferry.features.groups.cli.snapshots:diff_command",
                help="Show which groups stand elsewhere on the target than in a snapshot. Exit code 1 when one does.",
            ),
            "rollback": Row(
                place="ferry.features.groups.cli.snapshots:rollback_command",
                help="Write a snapshot's offsets back to groups without members on the target. What lies there now is "
                "kept as well.",
            ),
        },
    ),
    "ledger": Group(
        help="The flow's ledger; without a command: look things up in it.",
        first="show",
        rows={
            "show": Row(
                place="ferry.commands.ledger.show:ledger_command",
                help="Look up receipts, runs and pauses in the ledger; only the target cluster is asked.",
            ),
            "export": Row(
                place="ferry.features.archive.cli.file:export_command",
                help="Write every committed record of the flow's ledger to a file; also while runs are at work.",
            ),
            "rebuild": Row(
                place="ferry.features.archive.cli.file:rebuild_command",
                help="Write a ledger that was lost again from an export: all as it was then, each record at its "
                "offset.",
            ),
        },
    ),
    "adopt": Group(
        help="Go on where another replicator was stopped.",
        rows={
            "mm2": Row(
                place="ferry.features.migrate.cli.adopt:adopt_mm2_command",
                help="Take over from a stopped MirrorMaker 2, dedicated or on Kafka Connect: the next run goes on "
                "where it ended.",
            ),
            "mm1": Row(
                place="ferry.features.migrate.cli.adopt:adopt_mm1_command",
                help="Take over from a stopped MirrorMaker 1 by the positions of its consumer group on the source.",
            ),
        },
    ),
    "hand-back": Group(
        help="Let MirrorMaker 2 go on where a flow stands.",
        rows={
            "mm2": Row(
                place="ferry.features.migrate.cli.hand_back:hand_back_mm2_command",
                help="Write the flow's places into MirrorMaker 2's offsets topic, so that it goes on without loss or "
                "double.",
            ),
        },
    ),
    "switch": Group(
        help="Look at switchovers, failovers and failbacks, or give one up.",
        rows={
            "list": Row(
                place="ferry.features.switch.cli.switches:switch_list_command",
                help="List the switches along a flow and back, as far as both ledgers can be read, oldest first.",
            ),
            "show": Row(
                place="ferry.features.switch.cli.switches:switch_show_command",
                help="Show a switch step by step: who did it, when, and what was found.",
            ),
            "abandon": Row(
                place="ferry.features.switch.cli.switches:switch_abandon_command",
                help="Give a switch up that has not promoted the new cluster yet; the pause that it set is lifted.",
            ),
        },
    ),
    "drill": Group(
        help="Rehearse a failover; each drill ends in a report.",
        rows={
            "tabletop": Row(
                place="ferry.features.drill.cli.app:tabletop_command",
                help="What a failover would do and lose now, with numbers; nothing is written but the report.",
            ),
            "shadow": Row(
                place="ferry.features.drill.cli.app:shadow_command",
                help="Copy to scratch topics, move the groups to scratch groups, compare all, and remove it; "
                "production is untouched.",
            ),
            "partial": Row(
                place="ferry.features.drill.cli.app:partial_command",
                help="A topic, or a group and what it reads, on the live copies: copied to the end, offsets written, "
                "read, compared.",
            ),
            "full": Row(
                place="ferry.features.drill.cli.app:full_command",
                help="Move clients to the target and back, in earnest: a switchover, and a failback; nothing is lost.",
            ),
        },
    ),
    "reports": Group(
        help="The reports of drills and switches: list them, check signatures and the chain.",
        rows={
            "list": Row(
                place="ferry.features.drill.cli.reports:list_command", help="The reports of a folder, newest first."
            ),
            "switch": Row(
                place="ferry.features.drill.cli.reports:switch_command",
                help="Write the report of a switchover, failover or failback, from what the ledger has of it.",
            ),
            "verify": Row(
                place="ferry.features.drill.cli.reports:verify_command",
                help="Check that no report was changed, removed or put in: each one's signature, and its link to the "
                "one before it.",
            ),
        },
    ),
    "metrics": Group(
        help="The metrics that runs leave for Prometheus.",
        rows={
            "serve": Row(
                place="ferry.features.observe.cli.metrics:serve_command",
                help="Answer Prometheus with what all files of a folder tell, until it is interrupted.",
            ),
        },
    ),
    "config": Group(
        help="Check, explain and write the MirrorMaker 2 file. No cluster is asked.",
        rows={
            "check": Row(
                place="ferry.commands.config.check:check_command",
                help="Show what the file means: every value of every flow with its line, what is not needed, what is "
                "wrong.",
            ),
            "explain": Row(
                place="ferry.commands.config.explain:explain_command",
                help="Say what a key does here, where it may stand, and its default; without KEY, of every key in one "
                "line.",
            ),
            "new": Row(
                place="ferry.commands.config.new:new_command",
                help="Write a first file and check it. What no option says is asked for, where there is somebody to "
                "ask.",
            ),
            "import-mm1": Row(
                place="ferry.features.migrate.cli.import_mm1:import_mm1_command",
                help="Write the MirrorMaker 2 file that does what a MirrorMaker 1 does, and say what became of each of "
                "its options.",
                options=ANY_OPTIONS,
            ),
        },
    ),
    "policy": Group(
        help="Look at replication policies.",
        rows={
            "check": Row(
                place="ferry.commands.policy:check_command",
                help="Show a policy's names and everything that it does not keep. Exit code 1 when something is wrong.",
            ),
        },
    ),
}
