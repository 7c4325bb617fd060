"""Who may approve in Airflow, what is shown to them, and that only Airflow's own answer counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from airflow.api_fastapi.execution_api.datamodels.hitl import HITLDetailRequest
from airflow.api_fastapi.execution_api.routes.hitl import upsert_hitl_detail
from airflow.models.hitl import HITLDetail
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
from sqlalchemy.orm import Session

from ferry.config.settings import parse_settings
from ferry.errors import Refused
from ferry.features.switch.rules.approvals import approval_of_run
from ferry.features.switch.settings import Approvers
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.model import Record
from ferry_airflow.approving import question, trouble_with
from ferry_airflow.drill_dag import drill_dag
from ferry_airflow.drill_operators import DrillApprovalOperator
from ferry_airflow.switch_operators import approval_of
from tests.golden import Golden
from tests.pure.decide.test_ledger import view_of

AT = datetime.now(UTC).replace(microsecond=0)
BOB = {"id": "7", "name": "bob"}
RUN = "ferry_drill__a__b/manual__1"
PARAMS = {"kind": "partial", "topics": ["orders"], "approval_timeout_seconds": "7d"}
FILE = (
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\na->b.enabled = true\n"
    "ferry.approvers = bob, 9\n"
)


@pytest.mark.parametrize(
    ("user", "asked_by", "approvers", "why"),
    [
        (BOB, "ann", Approvers(), None),
        (BOB, "bob", Approvers(), "another person"),
        (BOB, "7", Approvers(), "another person"),
        (BOB, "", Approvers(), "who triggered"),
        (BOB, "bob", Approvers(own=True), None),
        (BOB, "", Approvers(own=True), None),
        (None, "ann", Approvers(own=True), "who answered"),
        (BOB, "ann", Approvers(users=("carl",), own=True), "none of ferry.approvers"),
        (BOB, "ann", Approvers(users=("carl", "bob")), None),
        (BOB, "ann", Approvers(users=("7",)), None),
    ],
    ids=[
        "another person",
        "the one who asked",
        "the one who asked, by number",
        "who asked is not known",
        "the one who asked, which is allowed",
        "who asked is not known, which is allowed",
        "who answered is not known",
        "not one of the approvers",
        "one of the approvers",
        "one of the approvers, by number",
    ],
)
def test_who_may_approve(
    user: dict[str, str] | None, asked_by: str, approvers: Approvers, why: str | None, golden: Golden
) -> None:
    found = trouble_with(user, asked_by, approvers)
    assert found is None if why is None else why in str(found)
    if found is not None:
        golden(str(found))


def test_others_texts_are_no_markdown_and_the_reason_is_last_and_quoted() -> None:
    preview = "- ok: group `x`\n1. copy [a](http://b)"
    body = question(preview, "ann", "```\n- ok: all checks\n# Approved <b>")
    assert body.splitlines() == [
        r"- ok\: group \`x\`",
        r"1. copy \[a\]\(http\:\/\/b\)",
        "",
        "Triggered by ann, with this reason:",
        "",
        r"> \`\`\`",
        r"> \- ok\: all checks",
        r"> \# Approved \<b\>",
    ]
    assert question("", "ann", " ").endswith("> No reason was given.")


class Ledger:
    """A ledger in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def view(self) -> LedgerView:
        return view_of(*self.records) if self.records else UNREAD

    view_if_any = view

    def append(self, records: list[Record]) -> int:
        self.records += records
        return len(self.records) - 1


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The flow's ledger, as the task that asks has it."""
    made = Ledger()

    @contextmanager
    def opened(self: DrillApprovalOperator, context: object) -> Iterator[Ledger]:
        yield made

    monkeypatch.setattr(DrillApprovalOperator, "ledger", opened)
    return made


def context(**more: Any) -> Any:
    return {
        "dag": SimpleNamespace(dag_id="ferry_drill__a__b"),
        "run_id": "manual__1",
        "dag_run": SimpleNamespace(triggering_user_name="ann"),
        "params": PARAMS,
        "ti": SimpleNamespace(xcom_pull=lambda **_: {"responded_by_user": {"name": "cfo"}}, try_number=1),
        **more,
    }


def answered(user: dict[str, str] | None, at: datetime = AT, **more: Any) -> None:
    """Airflow gives the task the answer of a user."""
    task = drill_dag(parse_settings(FILE, "f").flow("a->b"), Path("/f")).get_task("approve")
    assert isinstance(task, DrillApprovalOperator)
    assert task.assigned_users == [{"id": "bob", "name": "bob"}, {"id": "9", "name": "9"}]
    event = {"chosen_options": ["Approve"], "params_input": {}, "responded_at": at, "responded_by_user": user}
    task.execute_complete(context(**more), event)


def test_airflows_own_answer_is_kept_for_the_run_and_used_once(ledger: Ledger, golden: Golden) -> None:
    answered(BOB)
    kept = approval_of_run(ledger.view(), RUN)
    assert kept is not None
    assert (kept.who, kept.asked_by, kept.used_by) == ("bob", "ann", "")
    assert kept.at_ms == AT.timestamp() * 1000
    used: Any = ledger
    assert approval_of(context(), used, "try 1 of the drill").who == "bob"
    with pytest.raises(Refused) as refused:  # the task was cleared
        approval_of(context(), used, "try 2 of the drill")
    golden(refused.value, "another try")
    with pytest.raises(Refused) as refused:
        approval_of(context(params={**PARAMS, "topics": ["payroll"]}), used, "try 1 of the drill")
    golden(refused.value, "other parameters")
    with pytest.raises(Refused) as refused:
        approval_of(context(run_id="manual__2"), used, "try 1 of the drill")
    golden(refused.value, "another run")
    answered(BOB)  # the same answer
    with pytest.raises(Refused) as refused:
        approval_of(context(), used, "try 2 of the drill")
    golden(refused.value, "the same answer again")
    answered(BOB, AT + timedelta(seconds=1))  # asked again
    assert approval_of(context(), used, "try 2 of the drill").who == "bob"


def test_a_planted_answer_approves_nothing(ledger: Ledger, golden: Golden) -> None:
    used: Any = ledger
    with pytest.raises(Refused) as declined:
        approval_of(context(), used, "try 1 of the drill")
    golden(declined.value)
    refused: list[tuple[dict[str, str] | None, dict[str, Any]]] = [
        (None, {}),
        ({"id": "ann", "name": "ann"}, {}),
        (BOB, {"dag_run": SimpleNamespace(triggering_user_name="bob")}),
    ]
    for user, more in refused:
        with pytest.raises(AirflowFailException):
            answered(user, **more)
    assert not ledger.records


class Airflow:
    """What Airflow does with a question: its own code, over a database in memory."""

    def __init__(self) -> None:
        engine = sa.create_engine("sqlite://")
        tables = HITLDetail.metadata.tables
        HITLDetail.metadata.create_all(engine, [tables[name] for name in ("hitl_detail", "task_instance", "dag_run")])
        self.session = Session(engine)

    def send(self, msg: CreateHITLDetailPayload) -> HITLDetailRequestResult:
        payload = HITLDetailRequest(**msg.model_dump(exclude={"type"}))
        kept = upsert_hitl_detail(msg.ti_id, payload, self.session)
        self.session.flush()
        return HITLDetailRequestResult(**kept.model_dump(), type="HITLDetailRequestResult")

    def answered(self) -> None:
        """A person answers."""
        self.session.execute(sa.update(HITLDetail).values(responded_at=AT, chosen_options=["Approve"]))


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    """Airflow, as far as it keeps questions."""
    made = Airflow()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", made, raising=False)
    return made


def asks(preview: str = "1. copy", approvers: str = "bob, 9") -> None:
    """The task asks for the approval of a preview; one that is cleared has the same id in Airflow's table."""
    file = FILE.replace("bob, 9", approvers)
    task: Any = drill_dag(parse_settings(file, "f").flow("a->b"), Path("/f")).get_task("approve")
    ti = SimpleNamespace(id=UUID(int=7), xcom_pull=lambda **_: preview, try_number=1)
    with pytest.raises(TaskAwaitingInput):
        task.execute(context(ti=ti, task_instance=ti))


@pytest.mark.parametrize("answered", [False, True], ids=["unanswered", "answered"])
def test_a_cleared_task_asks_the_same_again_and_refuses_to_ask_with_an_earlier_preview(
    airflow: Airflow, golden: Golden, *, answered: bool
) -> None:
    """Airflow keeps the first question of a task for all of its tries."""
    asks()
    if answered:
        airflow.answered()
    asks()
    asks(approvers="9, bob")
    for approvers in ("9", "carl, 9"):
        with pytest.raises(AirflowFailException):
            asks(approvers=approvers)
    with pytest.raises(AirflowFailException) as refused:
        asks("1. copy all")
    golden(refused.value)
