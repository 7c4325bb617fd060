"""A plan is what its seal says, whole and unchanged, or it does not exist."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.ledger.codec import IDENTICAL_VERSION, UNIT_VERSION, encode
from ferry.ledger.ledger import fold
from ferry.ledger.plan_codec import PART_BYTES, parse_plan, plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.runs import sealed_plan
from ferry.model import PLAN_VERSION, Plan, Record
from tests.golden import Golden
from tests.pure.decide.values import LANE, PLAN, RECEIPT, lying, piece, place, plans, refusal

WIDE = replace(PLAN, slices=tuple(piece("orders", number) for number in range(9)), refusals=(refusal(),))


def parts_of(records: list[Record]) -> dict[int, bytes]:
    return {index: record.value or b"" for index, record in enumerate(records[:-1])}


def parsed(records: list[Record], parts: dict[int, bytes] | None = None) -> Plan:
    return parse_plan(parts_of(records) if parts is None else parts, records[-1].value or b"", "plan of run r")


@pytest.mark.slow
@given(plans, st.sampled_from([1, 50, 500, PART_BYTES]))
def test_plans_come_back_however_they_are_split(plan: Plan, part_bytes: int) -> None:
    assert parsed(plan_records(plan, part_bytes)) == plan


def test_parts_stay_below_their_size_unless_one_line_is_longer() -> None:
    assert [len(record.value or b"") <= 1000 for record in plan_records(WIDE, 1000)[:-1]] == [True] * 3
    assert len(plan_records(WIDE, 1)) == 9 + 1 + 1  # slices, refusal, seal


@pytest.mark.slow
def test_a_plan_of_ten_thousand_slices_fits_default_brokers() -> None:
    topic = "x" * 249
    plan = replace(
        PLAN, slices=tuple(replace(piece(), source=place(topic, n), target=place(topic, n)) for n in range(10_000))
    )
    records = plan_records(plan)
    assert max(len(record.value or b"") for record in records) < 1 << 20
    assert parsed(records) == plan


@pytest.mark.parametrize("lost", range(3))
def test_a_lost_part_is_named(lost: int, golden: Golden) -> None:
    records = plan_records(WIDE, 1000)
    parts = parts_of(records)
    del parts[lost]
    with pytest.raises(BadInput) as caught:
        parsed(records, parts)
    golden(caught.value)


@pytest.mark.parametrize("changed", range(3))
def test_a_changed_part_is_found(changed: int, golden: Golden) -> None:
    records = plan_records(WIDE, 1000)
    parts = parts_of(records)
    parts[changed] = parts[changed].replace(b'"end":100', b'"end":101')
    with pytest.raises(BadInput) as caught:
        parsed(records, parts)
    golden(caught.value)


@pytest.mark.parametrize("field", ["v", "head"])
def test_a_newer_plan_is_refused(field: str, golden: Golden) -> None:
    records = plan_records(WIDE)
    seal = json.loads(records[-1].value or b"")
    if field == "v":
        seal["v"] = IDENTICAL_VERSION + 1
    else:
        seal["head"]["v"] = PLAN_VERSION + 1
    with pytest.raises(BadInput) as caught:
        parse_plan(parts_of(records), encode(seal), "plan of run r")
    golden(caught.value)


# In the ledger


def test_a_sealed_plan_is_found_with_the_offset_of_its_seal() -> None:
    records = plan_records(WIDE, 1000)
    view = fold(lying(*records, first=50), 60)
    assert sealed_plan(view, LANE, WIDE.run, WIDE.generation) == (WIDE, 50 + len(records) - 1)


def test_an_unsealed_plan_does_not_exist() -> None:
    records = plan_records(WIDE, 1000)
    for written in range(len(records)):
        assert sealed_plan(fold(lying(*records[:written]), 99), LANE, WIDE.run, WIDE.generation) is None


def test_a_run_that_is_opened_again_has_a_plan_of_its_own() -> None:
    again = replace(WIDE, generation=WIDE.generation + 40, slices=WIDE.slices[:5])
    first, second = plan_records(WIDE, 1000), plan_records(again, 1000)
    view = fold(lying(*second, *first), 99)  # in whichever order they come to lie
    for plan in (WIDE, again):
        found = sealed_plan(view, LANE, plan.run, plan.generation)
        assert found is not None
        assert found[0] == plan


def test_plans_of_other_runs_and_lanes_are_others() -> None:
    view = fold(lying(*plan_records(WIDE)), 99)
    assert sealed_plan(view, LANE, "run-2", WIDE.generation) is None
    assert sealed_plan(view, "drill", WIDE.run, WIDE.generation) is None


def test_an_earlier_ferry_stops_at_a_plan_with_transformed_slices_and_at_their_receipts() -> None:
    plan = replace(PLAN, slices=(replace(piece("orders"), transform="masked", transform_digest="d1"),))
    assert json.loads(plan_records(plan)[-1].value or b"")["head"]["v"] == 2
    masked, plain = (
        json.loads(receipt_records(one)[1].value or b"")
        for one in (replace(RECEIPT, transform="masked", transform_digest="d1"), RECEIPT)
    )
    assert (masked["v"], masked["transform"], masked["transform_digest"]) == (UNIT_VERSION, "masked", "d1")
    assert plain["v"] == 1
    assert "transform" not in plain
