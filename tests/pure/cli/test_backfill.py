"""What `ferry backfill` refuses before it connects: windows that are none, and lanes of another kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.program import main
from tests.golden import Golden, brief

LANE = "backfill-history"
OWN = "a=2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"
TIMES = ("--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z")


@pytest.mark.parametrize(
    "options",
    [
        ("--lane", "january", *TIMES),
        ("--lane", "live", *TIMES),
        ("--lane", "drill-a", *TIMES),
        TIMES,
        ("--lane", LANE, "--into-live", *TIMES),
        ("--lane", LANE),
        ("--lane", LANE, "--from", "yesterday", "--to", "2026-01-02T00:00:00Z"),
        ("--lane", LANE, "--from", "2026-01-01T00:00:00", "--to", "2026-01-02T00:00:00Z"),
        ("--lane", LANE, "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"),
        ("--lane", LANE, "--from-offset", "a:0:1"),
        ("--lane", LANE, "--from-offset", "a:0:5", "--to-offset", "a:0:5"),
        ("--lane", LANE, "--from-offset", "a:0:5", *TIMES),
        ("--lane", LANE, "--from-offset", "a:0:5", "--times", OWN),
        ("--lane", LANE, "--times", OWN, *TIMES),
        ("--lane", LANE, "--times", OWN, "--times", OWN),
        ("--lane", LANE, "--times", OWN, "--topic", "a"),
        ("--lane", LANE, "--times", "a=2026-01-01T00:00:00Z"),
        ("--lane", LANE, "--times", "a=0/soon"),
        ("--lane", LANE, "--times", "a=5/5"),
    ],
    ids=brief,
)
def test_what_is_no_window_or_no_lane_is_refused(
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    config = tmp_path / "flow.properties"
    config.write_text(
        "clusters = a, b\na.bootstrap.servers = 127.0.0.1:1\nb.bootstrap.servers = 127.0.0.1:2\n"
        "a->b.enabled = true\na->b.topics = .*\n"
    )
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    with pytest.raises(SystemExit) as ended:
        main(["backfill", *options])
    assert ended.value.code == 2
    golden(capsys.readouterr().err)
