"""Write all schemas of docs/schemas: the table of a form describes its fields (`ferry.codec`).

Usage: python tools/schemas.py [--check]. What a command puts around its forms is here.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ferry.codec.form import Form
from ferry.codec.kinds import SECONDS, Kind, fields
from ferry.codec.schema import Json, described, nullable, object_of, of_type
from ferry.commands.config import forms
from ferry.commands.config.explain import KEY
from ferry.commands.explain import WORD
from ferry.commands.flows import FLOW_CONFIG
from ferry.commands.forms import (
    ADOPTED,
    DEALT,
    HOLDER,
    LAG,
    PAST_RUN,
    PAUSE,
    PLAN,
    PRUNED,
    REPORT,
    RUN,
    STATUS,
    TOTAL_LAG,
    WHY,
)
from ferry.commands.policy import NAMING
from ferry.commands.window_work import PLANNED, WORK
from ferry.config.flow.acls import AclPolicy
from ferry.dev.cluster import BrokerStatus, ClusterStatus
from ferry.dev.preview import Preview
from ferry.errors import KINDS
from ferry.features.acls.cli.forms import LEFT_OUT
from ferry.features.acls.cli.required import PRINCIPAL
from ferry.features.acls.cli.required_forms import REQUIRED
from ferry.features.archive.cli.forms import REBUILT
from ferry.features.doctor.cli.doctor import FINDING
from ferry.features.drill.cli.forms import CHECKED
from ferry.features.evidence.rules import codec as evidence
from ferry.features.evidence.rules.chain import LISTED
from ferry.features.groups.cli.forms import GOES_ON, NOT_COPIED, NOT_TRANSLATED, SNAPSHOT, TABLE, TRANSLATION, WRITE
from ferry.features.groups.rules.table import NotShown
from ferry.features.lanes.cli.forms import DROP, LANE
from ferry.features.migrate.cli.forms import HANDED, TAKEN
from ferry.features.migrate.cli.import_mm1 import FLOW_TOPICS, OPTION
from ferry.features.records.cli.forms import SAMPLE
from ferry.features.records.cli.record_form import RECORD_STORY
from ferry.features.switch.cli.forms import CLIENTS, LINE, READINESS
from ferry.ledger.acl_codec import ACL, ACL_CHANGE
from ferry.ledger.checkpoint_codec import LEFT
from ferry.ledger.codec import GAP
from ferry.ledger.history import PastState
from ferry.ledger.receipt_codec import DEALT_RECEIPT, RECEIPT
from ferry.ledger.report import RunState
from ferry.ledger.sentence_codec import NOTED
from ferry.ledger.switch_codec import STEP, SWITCH, SWITCH_END
from ferry.ledger.verified_codec import VERIFIED
from ferry.model import Predecessor
from ferry.model.finding import Grade
from ferry.model.switch import Step

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"

TEXT, COUNT, YES = of_type(str), of_type(int), of_type(bool)
TEXTS, MAYBE_TEXT = of_type(list[str]), of_type(str | None)


def many(schema: Json) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "items": schema}


def of(what: Form[Any] | Kind) -> Json:
    """Return the schema of a form or kind."""
    assert what.schema is not None
    return what.schema()


def document(*left_out: str, **properties: Json | tuple[Json, str]) -> Json:
    """Make the schema of an object of properties, some with a description; those that are `left_out` may be missing."""
    whole = {name: described(*one) if isinstance(one, tuple) else one for name, one in properties.items()}
    return object_of(whole, frozenset(left_out))


WRITTEN = nullable(
    document(
        number=COUNT,
        page=(TEXT, "path or URL of the HTML"),
        json=(TEXT, "path or URL of the JSON"),
        sha256=(TEXT, "of the JSON"),
        signed=YES,
    )
)
"""Where a report is."""

# Local clusters stand alone: `ferry.dev` has no forms, its dataclasses are written unchanged.
LOCAL_BROKER = document(
    **of(fields(BrokerStatus))["properties"]
    | {
        "node_id": of_type(int, 1),
        "address": described(TEXT, "host:port of its first listener"),
        "state": {"enum": ["running", "paused", "stopped"]},
        "pid": described(of_type(int | None, 1), "null: it does not run"),
        "log": described(TEXT, "path of its log file"),
    }
)

LOCAL_CLUSTER = document(
    **of(fields(ClusterStatus))["properties"]
    | {
        "version": described(TEXT, "of Kafka"),
        "state": described(
            {"enum": ["running", "paused", "stopped", "partial"]}, "that of all its brokers; partial: they differ"
        ),
        "bootstrap": described(TEXT, "value for bootstrap.servers"),
        "directory": described(TEXT, "the folder with data and logs"),
        "brokers": many(LOCAL_BROKER),
    }
)

LOCAL_PREVIEW = document(
    **of(
        fields(
            Preview,
            version="of Kafka",
            would="what becomes of it: made, started on its data, or left as it runs",
        )
    )["properties"]
    | {"brokers": described(of_type(int, 1), "how many")}
)

CLIENTS_NOW = (
    nullable(of(CLIENTS)),
    "where the switch that promoted last has moved clients; null: there was none, or not all ledgers were read",
)

PAST = document(
    run=TEXT,
    state=(
        {"enum": [*(one.value for one in PastState), "forgotten"]},
        "as ferry ledger --runs has it; forgotten: the ledger has deleted its plan, and has the receipts alone",
    ),
    report=(
        nullable(of(REPORT)),
        "what ferry run said of it, or would have; null: it has no sealed plan, or is forgotten",
    ),
)

END = document(
    "opposite", **{name: one for name, one in of(SWITCH_END)["properties"].items() if name not in ("v", "kind")}
)

DOCUMENTS: Mapping[str, tuple[str, Json]] = {
    "acls-diff": (
        "ferry acls diff",
        document(
            "other_topics",
            flow=TEXT,
            policy=of_type(AclPolicy),
            due_seconds=(
                nullable(of(SECONDS)),
                "until a run may change them; 0: the next one does; null: none does",
            ),
            changes=(many(of(ACL_CHANGE)), "to the target's ACLs"),
            in_step=(COUNT, "ACLs that the target has already"),
            kept=(
                many(of(ACL)),
                (
                    "made by Ferry, and not asked for any more: by the settings, or by a source that lost all its "
                    "ACLs at once; or named as Ferry's by the ledger alone, while nothing else shows that they are of "
                    "copies of this flow"
                ),
            ),
            left_out=(many(of(LEFT_OUT)), "ACLs of the source that are not copied"),
            unmapped_principals=(TEXTS, "principals that no rule is about"),
            other_topics=(
                TEXTS,
                (
                    "topics of the target that the flow did not bring, for which ACLs to be created hold as well: "
                    "those with a prefix, or for all topics"
                ),
            ),
        ),
    ),
    "acls-required": (
        "ferry acls required",
        document(flow=TEXT, principals=document(source=of(PRINCIPAL), target=of(PRINCIPAL)), acls=many(of(REQUIRED))),
    ),
    "adopt": (
        "ferry migrate",
        document(
            flow=TEXT,
            run=(MAYBE_TEXT, "null: a dry run, or nothing was written"),
            by=of_type(Predecessor),
            where=(TEXT, "what the positions were read from"),
            partitions=many(of(TAKEN)),
            notes=TEXTS,
        ),
    ),
    "airflow-setup": (
        "ferry airflow setup",
        document(
            pools=(TEXTS, "the flows' pools, of one slot each"),
            connections=(TEXTS, "ids of the connections that are there"),
            dry_run=(YES, "the pools are those that would be made or kept"),
        ),
    ),
    "backfill": (
        "ferry backfill",
        document(
            flow=TEXT,
            lane=TEXT,
            from_ms=(of_type(int | None, None), "null: a window of offsets"),
            to_ms=of_type(int | None, None),
            state=({"enum": [PLANNED, *(one.value for one in RunState)]}, "planned: a dry run"),
            **of(WORK)["properties"],
        ),
    ),
    "config-check": (
        "ferry config check",
        document(
            clusters=many(of(forms.CLUSTER)),
            flows=many(described(of(forms.FLOW), "a flow that is not enabled has its source, target and enabled only")),
            lines=(many(of(forms.LINE)), "what every line of the file does"),
            unneeded=(many(of(forms.UNNEEDED)), "lines that Ferry knows and does not need"),
            problems=many(of(forms.PROBLEM)),
            corrected=(
                many(of(forms.PROBLEM)),
                "what --fix corrected, one item for each line of the old file; correction: what is in the new one",
            ),
            written=(
                MAYBE_TEXT,
                (
                    "the file that --fix wrote, which `problems` are of then; null: none was asked for, an error is "
                    "left, or it is a dry run"
                ),
            ),
        ),
    ),
    "config-explain": ("ferry config explain", document(keys=many(of(KEY)))),
    "import-mm1": (
        "ferry migrate import-mm1",
        document(
            file=(MAYBE_TEXT, "the file written; null: none, see properties"),
            properties=(MAYBE_TEXT, "the new file's text; null when it has a file of its own"),
            flows=many(of(FLOW_TOPICS)),
            options=many(of(OPTION)),
            dry_run=(YES, "whether the file is not written"),
        ),
    ),
    "config-new": (
        "ferry config new",
        document(
            "properties",
            file=TEXT,
            flow=TEXT,
            warnings=TEXTS,
            dry_run=(YES, "whether nothing is written"),
            properties=(TEXT, "with --dry-run: the text that the file would have"),
        ),
    ),
    "dev": ("ferry dev up, ferry dev status", document(clusters=many(LOCAL_CLUSTER))),
    "dev-down": (
        "ferry dev down",
        document(
            stopped=(TEXTS, "names of clusters"),
            deleted=(YES, "whether their data and logs are gone, too"),
            dry_run=(YES, "whether all of this only would be"),
        ),
    ),
    "dev-dry-run": (
        "ferry dev up --dry-run",
        document(
            dry_run={"const": True},
            clusters=many(LOCAL_PREVIEW),
        ),
    ),
    "drill": (
        "ferry drills",
        {
            **document(**of(evidence.EVIDENCE)["properties"], report=(WRITTEN, "null: --dry-run writes none")),
            "required": [*of(evidence.EVIDENCE)["required"], "report"],
        },
    ),
    "drill-dry-run": (
        "ferry drills shadow, partial or full with --dry-run",
        document(would=(TEXTS, "the steps, in order")),
    ),
    "error": (
        "any command that fails before it has an answer",
        document(
            error=document(
                "code",
                "facts",
                kind=(
                    {"enum": [*KINDS.values(), "failed", "machine", "interrupted"]},
                    "failed: an error of no other kind; machine: this machine refuses something",
                ),
                message=(TEXT, "one sentence with the remedy, as on standard error"),
                code=of(NOTED)["properties"]["code"],
                facts=of(NOTED)["properties"]["facts"],
            )
        ),
    ),
    "status": ("ferry status", document(flows=many(of(STATUS)))),
    "doctor": (
        "ferry doctor",
        document(
            findings=many(of(FINDING)),
            counts=(document(**{grade.value: COUNT for grade in Grade}), "how many findings have each grade"),
        ),
    ),
    "support-bundle": (
        "ferry support-bundle",
        document(
            written=(MAYBE_TEXT, "path of the archive; null: with --dry-run"),
            files=(TEXTS, "names in it, below its folder"),
            missing=(
                many(document(file=TEXT, why=TEXT)),
                "what could not be got, each with the reason, also in the archive",
            ),
        ),
    ),
    "explain": ("ferry explain", document(words=many(of(WORD)))),
    "flows": ("ferry flows", document(flows=many(of(FLOW_CONFIG)))),
    "groups": (
        "ferry groups",
        document(
            flow=TEXT,
            groups=many(of(TABLE)),
            not_shown=(
                many(of(fields(NotShown, group="null: the cluster itself, or a partition of several groups"))),
                "what the answer lacks; the exit code is 1 when it is not empty",
            ),
            brokers=(
                nullable(many(document(cluster=TEXT, broker=COUNT, address=TEXT))),
                "null without --broker-info",
            ),
        ),
    ),
    "groups-diff": (
        "ferry groups diff",
        document(
            flow=TEXT,
            snapshot=of(SNAPSHOT),
            differences=many(
                document(
                    group=TEXT,
                    topic=TEXT,
                    partition=COUNT,
                    then=(of_type(int | None), "null: none"),
                    now=(of_type(int | None), "null: none"),
                )
            ),
            not_compared=(many(of(LEFT)), "offsets that could not be read; the exit code is 1 when it is not empty"),
        ),
    ),
    "groups-rollback": (
        "ferry groups rollback",
        document(
            flow=TEXT,
            run=(MAYBE_TEXT, "the snapshot of what was there before; null: a dry run"),
            snapshot=of(SNAPSHOT),
            writes=(
                many(document(group=TEXT, topic=TEXT, partition=COUNT, offset=COUNT)),
                "what was to be written back; what of it was not is in left",
            ),
            unchanged=COUNT,
            left=many(of(LEFT)),
        ),
    ),
    "groups-snapshot": (
        "ferry groups snapshot",
        document(
            flow=TEXT,
            dry_run=YES,
            snapshots=(
                many(of(SNAPSHOT)),
                "the one that was taken or dropped; with --list all, oldest first",
            ),
        ),
    ),
    "groups-sync": (
        "ferry groups sync",
        document(
            flow=TEXT,
            run=(MAYBE_TEXT, "under which the ledger keeps what was there before; null: a dry run"),
            writes=(many(of(WRITE)), "what was to be written; what of it was not is in left"),
            unchanged=(COUNT, "offsets that are right already"),
            left=many(of(LEFT)),
        ),
    ),
    "hand-back": (
        "ferry migrate hand-back",
        document(
            flow=TEXT,
            run=(MAYBE_TEXT, "null: a dry run"),
            offsets_topic=TEXT,
            connector=TEXT,
            partitions=many(of(HANDED)),
            records=(
                many(
                    document(
                        key=({"type": "array"}, "connector and partition"),
                        value=document(offset=(COUNT, "the last source offset that was copied")),
                    )
                ),
                "what the offsets topic is given",
            ),
            notes=TEXTS,
        ),
    ),
    "lag": ("ferry lag", document(partitions=many(of(LAG)), total=of(TOTAL_LAG))),
    "lanes-drop": (
        "ferry lanes drop",
        document(flow=TEXT, lane=TEXT, dropped=(YES, "false: a dry run"), **of(DROP)["properties"]),
    ),
    "lanes-list": ("ferry lanes list", document(flow=TEXT, lanes=many(of(LANE)))),
    "ledger": (
        "ferry ledger",
        document(
            "units",
            receipts=(many(of(RECEIPT)), "in the order of the ledger"),
            run=(nullable(PAST), "with --run alone: what became of that run; null otherwise"),
            units=(
                many(of(DEALT_RECEIPT)),
                "receipts of what was repartitioned, in the order of the ledger; absent: there are none",
            ),
        ),
    ),
    "ledger-export": (
        "ferry ledger export",
        document(
            flow=TEXT,
            file=TEXT,
            records=COUNT,
            upto=(
                COUNT,
                "the ledger offset after the last record that could be exported: there it ends, or is undecided",
            ),
            dry_run=(YES, "whether all was read and nothing is written"),
        ),
    ),
    "ledger-offset": (
        "ferry ledger --offset",
        document(
            "dealt",
            receipts=(many(of(HOLDER)), "those that hold the offset; empty: none does"),
            skipped=(many(of(GAP)), "offsets skipped on purpose, the asked one among them"),
            pruned=(
                many(of(PRUNED)),
                (
                    "what was pruned from the ledger that had the offset, for neither side has its record any more; "
                    "empty: nothing, or a receipt is there"
                ),
            ),
            adopted=(many(of(ADOPTED)), "what the lane took over from MirrorMaker that has the offset"),
            dealt=(
                many(of(DEALT)),
                (
                    "of a repartitioned topic: each target partition, and the chunk that has the offset; absent: it "
                    "is not repartitioned, or a receipt holds the offset"
                ),
            ),
        ),
    ),
    "ledger-pauses": ("ferry ledger --pauses", document(pauses=(many(of(PAUSE)), "in force now"))),
    "ledger-rebuild": (
        "ferry ledger rebuild",
        document(
            flow=TEXT,
            file=TEXT,
            records=COUNT,
            upto=(COUNT, "the ledger offset at which the export ends"),
            dry_run=(YES, "true: nothing was written"),
            **of(REBUILT)["properties"],
        ),
    ),
    "ledger-runs": ("ferry ledger --runs", document(runs=(many(of(PAST_RUN)), "oldest first"))),
    "metrics-serve": (
        "ferry metrics serve",
        document(url=(TEXT, "where Prometheus is answered from now on"), folder=TEXT),
    ),
    "pause": (
        "ferry pause",
        document(flow=TEXT, **of(PAUSE)["properties"], dry_run=(YES, "nothing was written")),
    ),
    "plan": ("ferry plan, ferry run --dry-run", of(PLAN)),
    "plan-sample": ("ferry plan --sample", document(flow=TEXT, samples=many(of(SAMPLE)))),
    "plan-why": ("ferry plan --explain", document(flow=TEXT, name=TEXT, topic=of(WHY), group=of(WHY))),
    "policy": (
        "ferry config policy",
        document(policy=TEXT, topics=(many(of(NAMING)), "empty when there are problems"), problems=TEXTS),
    ),
    "readiness": (
        "ferry readiness",
        document(flow=(TEXT, "source->target"), **of(READINESS)["properties"], clients=CLIENTS_NOW),
    ),
    "records-show": ("ferry records show", of(RECORD_STORY)),
    "report": ("a report of a drill or a switch: report-NNNNNN.json", of(evidence.REPORT)),
    "reports-list": (
        "ferry reports list, and index.json of a folder of reports",
        document(reports=(many(of(LISTED)), "newest first")),
    ),
    "reports-verify": (
        "ferry reports verify",
        document(
            intact=(YES, "else the exit code is 1"),
            folder=TEXT,
            first_broken=(MAYBE_TEXT, "file name"),
            reports=many(of(CHECKED)),
        ),
    ),
    "resume": (
        "ferry resume",
        document(
            flow=TEXT,
            topic=(MAYBE_TEXT, "null: the whole flow"),
            was_paused=YES,
            switch=(MAYBE_TEXT, "that had paused the flow; null: an operator did, or it was not paused"),
            dry_run=(YES, "nothing was written"),
        ),
    ),
    "run": ("ferry run", of(RUN)),
    "skip": ("ferry skip", document(flow=TEXT, run=(MAYBE_TEXT, "null: a dry run"), gap=of(GAP))),
    "switch": (
        "ferry switchover, failover, failback, switches show, switches abandon",
        document(
            "deviations",
            "report",
            switch=of(SWITCH),
            next_step=nullable(of_type(Step)),
            steps=many(of(STEP)),
            end=nullable(END),
            deviations=(TEXTS, "of the first three: what is not as it should be, a sentence each"),
            report=(
                WRITTEN,
                (
                    "of the first three and of abandon: where the report is; null: no folder is named, or it was not "
                    "written"
                ),
            ),
        ),
    ),
    "switch-list": (
        "ferry switches list",
        document(
            flow=(TEXT, "source->target"),
            switches=many(of(LINE)),
            clients=CLIENTS_NOW,
            unread=(TEXTS, "why a ledger could not be read"),
        ),
    ),
    "switch-preview": (
        "ferry switchover, failover, failback --dry-run",
        document(
            switch=of(SWITCH),
            steps=many(document(step=of_type(Step), sentence=TEXT)),
            readiness=of(READINESS),
        ),
    ),
    "translate": ("ferry translate", of(TRANSLATION)),
    "translate-group": (
        "ferry translate --group",
        document(
            flow=TEXT,
            group=TEXT,
            partitions=(many(of(TRANSLATION)), "each as ferry translate answers it"),
            not_copied=(
                many(of(NOT_COPIED)),
                "other offsets of the group, in partitions of which the flow has copied nothing",
            ),
            not_translated=(
                many(of(NOT_TRANSLATED)),
                (
                    "other offsets of the group, where one of the clusters does not have any more what was copied; "
                    "the exit code is 1"
                ),
            ),
            dealt=(
                many(of(GOES_ON)),
                (
                    "of topics whose transform assigns records to other partitions: from where on in each target "
                    "partition the group misses nothing that it has not read"
                ),
            ),
        ),
    ),
    "verify": ("ferry verify", of(VERIFIED)),
    "version": ("ferry version", document(version=TEXT, python=TEXT)),
}
"""The title and the schema of each document, by the name of its file."""


def rendered(title: str, schema: Json) -> str:
    """Return the file's text: each form in the document is a definition of its own."""
    defs: dict[str, Json] = {}
    whole = {name: _with_references(one, defs) for name, one in schema.items() if name != "title"}
    body = {"$schema": DRAFT, "title": title, **whole, **({"$defs": defs} if defs else {})}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _with_references(schema: Any, defs: dict[str, Json]) -> Any:
    """Return a schema in which forms are references; they are added to `defs`."""
    if isinstance(schema, list):
        return [_with_references(one, defs) for one in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {name: _with_references(one, defs) for name, one in schema.items()}
    title = whole.get("title")
    if not isinstance(title, str):
        return whole
    form = {name: one for name, one in whole.items() if name not in ("title", "description")}
    if defs.setdefault(title, form) != form:
        raise ValueError(f"two forms are called {title}")
    return described({"$ref": f"#/$defs/{title}"}, whole.get("description"))


def strays() -> list[str]:
    """Return the files that have no document here: a schema that is written by hand."""
    return sorted({file.stem for file in FOLDER.glob("*.json")} - DOCUMENTS.keys())


def stale() -> Iterator[str]:
    """Return the files that differ from what their forms describe."""
    for name, (title, schema) in DOCUMENTS.items():
        file = FOLDER / f"{name}.json"
        if not file.exists() or file.read_text() != rendered(title, schema):
            yield name


def main(arguments: list[str]) -> int:
    """Write the schemas; with --check the exit code is 1 when a file is stale, or has no document here."""
    names, alone = list(stale()), strays()
    for name in alone:
        print(f"docs/schemas/{name}.json is of no document: add it to DOCUMENTS of tools/schemas.py, or delete it")
    if "--check" in arguments:
        for name in names:
            print(f"docs/schemas/{name}.json is not what its form describes: python tools/schemas.py")
        print(f"{len(DOCUMENTS)} schemas, {len(names)} stale, {len(alone)} written by hand")
        return 1 if names or alone else 0
    for name in names:
        (FOLDER / f"{name}.json").write_text(rendered(*DOCUMENTS[name]))
    return 1 if alone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
