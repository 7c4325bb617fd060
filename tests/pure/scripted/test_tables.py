"""Each kind of request meets a code, a lost and a late answer in its table, also where tables run in part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ferry
from tests.pure.identical import test_every_identical_answer
from tests.pure.scripted import (
    test_every_admin_answer,
    test_every_answer,
    test_every_attempt_answer,
    test_every_command_answer,
    test_every_dealt_answer,
    test_every_second_answer,
)
from tests.pure.scripted.table import CODES, Table

MODULES = (
    test_every_admin_answer,
    test_every_answer,
    test_every_attempt_answer,
    test_every_command_answer,
    test_every_dealt_answer,
    test_every_identical_answer,
    test_every_second_answer,
)
TABLES = {one.__name__.rpartition("_every_")[2]: one.TABLE for one in MODULES}
IMPORTS = re.compile(r"^ *from kafka\.protocol[\w.]* import (\([^)]*\)|.*)$", re.MULTILINE)
ELSEWHERE = {
    "ApiVersions": "tests/pure/net/test_transport.py",
    "SaslAuthenticate": "tests/kafka/security",
    "SaslBytes": "tests/kafka/security",
    "DescribeQuorum": "tests/pure/doctor",
}
"""Kinds of requests that no table has, and where their answers are tested: those of connections, logins, the doctor."""
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@each_table
def test_each_kind_of_request_meets_a_code_before_and_after_it_is_carried_out(table: Table) -> None:
    met = {(case.name, case.applied) for case in table.coded if any(fault.code is not None for fault in case.faults)}
    assert met == {(name, applied) for name, one in table.requests.items() for applied in one.applied}


@each_table
def test_each_kind_of_request_has_a_lost_and_a_late_answer(table: Table) -> None:
    assert {case.name for case in table.lost if any(fault.lost for fault in case.faults)} == table.requests.keys()
    assert {case.name for case in table.late if any(fault.late_s for fault in case.faults)} == table.requests.keys()


@each_table
def test_no_case_is_empty(table: Table) -> None:
    assert [str(case) for case in (*table.coded, *table.lost, *table.late) if not case.faults] == []


def test_a_copy_and_its_opening_meet_all_codes() -> None:
    assert {fault.code for case in TABLES["answer"].coded for fault in case.faults} == CODES


def test_each_kind_of_request_that_ferry_sends_is_in_a_table_or_tested_elsewhere() -> None:
    texts = [path.read_text() for path in Path(ferry.__file__).parent.rglob("*.py")]
    names = {name for text in texts for found in IMPORTS.findall(text) for name in re.findall(r"(\w+)Request\b", found)}
    assert names - {one.fault.api for table in TABLES.values() for one in table.requests.values()} == ELSEWHERE.keys()
