"""Windows of history with identical offsets: in a lane with topics of its own, each record has its source offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, read_topic, send
from tests.program import Answer
from tests.program import warm_ferry as ferry

RECORDS = 900
LANE = "backfill-january"


class Windows:
    """A topic of one partition, and windows of its offsets."""

    def __init__(self, source: RunningCluster, target: RunningCluster, topic: str, folder: Path) -> None:
        create_topic(source, topic)
        send(producer(source), topic, numbered(RECORDS))
        settings = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}
        self.topic = topic
        self.lab = Lab(source=source, target=target, alias=new_alias(), topics=(topic,), settings=settings)
        self.folder = folder

    def copy(self, start: int, end: int, *words: str, may_pass: bool = True) -> Answer:
        """`ferry backfill` of the offsets."""
        path = self.lab.write(self.folder)
        text = path.read_text() + f"ferry.offsets.may.pass = {str(may_pass).lower()}\n"
        path.write_text(text)
        window = ("--from-offset", f"{self.topic}:0:{start}", "--to-offset", f"{self.topic}:0:{end}")
        return ferry("backfill", str(self.lab.flow.flow), *words, *window, "--json", config=path)

    def rows(self, *, lane: str = LANE) -> list[tuple[object, ...]]:
        """What the lane's topic has, with offsets."""
        name = f"{self.lab.target_topic(self.topic)}.backfill.{lane}" if lane else self.lab.target_topic(self.topic)
        return list(read_topic(self.lab.target.bootstrap, name).get(0, []))

    def source_rows(self) -> list[tuple[object, ...]]:
        """What the source has, with offsets."""
        return list(read_topic(self.lab.source.bootstrap, self.topic)[0])


@pytest.fixture
def windows(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path) -> Windows:
    return Windows(source_cluster, target_cluster, topic, tmp_path)


def codes(answer: Answer) -> list[str]:
    """The codes of what was refused."""
    return [one["code"] for one in answer.json("backfill")["refusals"]]


def test_windows_in_order_have_the_offsets_of_the_source(windows: Windows) -> None:
    answer = windows.copy(300, 500, "--lane", LANE)
    assert answer.code == 0, answer.out + answer.err
    assert windows.copy(500, 600, "--lane", LANE).code == 0
    assert windows.rows() == windows.source_rows()[300:600]
    config = windows.lab.write(windows.folder)
    found = ferry("verify", str(windows.lab.flow.flow), "--lane", LANE, "--json", config=config).json("verify")
    assert (found["equal"], found["records"], found["identical"]) == (True, 300, 300)

    later = windows.copy(700, 800, "--lane", LANE)
    assert (later.code, codes(later)) == (1, ["identical.begins"]), "offsets 600 to 699 would need records"
    assert windows.copy(700, 800, "--lane", "backfill-later").code == 0
    assert windows.rows(lane="backfill-later") == windows.source_rows()[700:800]


def test_empty_records_before_a_window_need_the_permission_of_the_file(windows: Windows) -> None:
    answer = windows.copy(300, 500, "--lane", LANE, may_pass=False)
    assert (answer.code, codes(answer)) == (1, ["identical.first"])
    assert windows.copy(0, 200, "--lane", LANE, may_pass=False).code == 0
    assert windows.rows() == windows.source_rows()[:200]


def test_a_window_into_the_live_topics_begins_where_the_log_does(windows: Windows) -> None:
    answer = windows.copy(300, 500, "--into-live")
    assert (answer.code, codes(answer)) == (1, ["identical.begins"])
    assert windows.copy(0, 200, "--into-live").code == 0
    assert ferry("run", str(windows.lab.flow.flow), config=windows.lab.write(windows.folder)).code == 0
    assert windows.rows(lane="") == windows.source_rows()


def test_nothing_is_appended_out_of_order(windows: Windows) -> None:
    assert ferry("run", str(windows.lab.flow.flow), config=windows.lab.write(windows.folder)).code == 0
    answer = windows.copy(0, 200, "--lane", "append-x")
    assert (answer.code, len(codes(answer))) == (1, 1)
    assert windows.rows(lane="") == windows.source_rows()
