"""`--clusters` and FERRY_CLUSTERS: several data centres share one file."""

from pathlib import Path

import pytest

from ferry.config.local_clusters import local_clusters
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.program import main
from tests.golden import Golden, brief
from tests.pure.config.test_examples import SIX


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(SIX)
    return path


@pytest.mark.parametrize(
    ("local", "flows"),
    [
        ("west-1 west-2", {"west-2->west-1", "east-1->west-1", "north-1->west-1", "west-1->west-2"}),
        ("north-2", {"north-1->north-2"}),
    ],
)
def test_only_flows_into_local_clusters_are_left(local: str, flows: set[str]) -> None:
    near = parse_settings(SIX, "f").near(local_clusters(local))
    assert {str(config.flow) for config in near.flows} == flows
    assert set(near.clusters) == {"west-1", "west-2", "east-1", "east-2", "north-1", "north-2"}


def test_all_data_centres_together_run_each_flow_once() -> None:
    settings = parse_settings(SIX, "f")
    parts = [
        settings.near(local_clusters(text)).flows for text in ("west-1,west-2", "east-1 east-2", "north-1 north-2")
    ]
    assert sorted(str(config.flow) for part in parts for config in part) == [str(c.flow) for c in settings.flows]


def test_a_remote_flow_is_refused_with_the_reason(golden: Golden) -> None:
    near = parse_settings(SIX, "mm2.properties").near(("west-1",))
    with pytest.raises(BadInput) as caught:
        near.flow("west-1->east-1")
    golden(caught.value, "a remote flow")
    with pytest.raises(BadInput) as caught:
        near.near(("south",))
    golden(caught.value, "no cluster of the file")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--clusters", "north-1", "north-2", "flows"],
        ["flows", "--clusters", "north-1", "north-2"],
        ["--clusters=north-1,north-2", "flows"],
        ["flows", "--clusters", "north-1", "--clusters", "north-2"],
        ["--quiet", "--clusters", "north-1", "north-2", "flows"],
    ],
)
def test_the_option_stands_anywhere(arguments: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--config", str(file)])
    assert ended.value.code == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert shown == ["east-1->north-1", "north-1->north-2", "north-2->north-1", "west-1->north-1"]


def test_the_variable_counts_where_the_option_is_absent(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FERRY_CLUSTERS", "north-2")
    for arguments, flow in ((["flows"], "north-1->north-2"), (["flows", "--clusters", "east-2"], "east-1->east-2")):
        with pytest.raises(SystemExit):
            main([*arguments, "--config", str(file)])
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [flow]


def test_a_check_shows_the_local_part(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(file), "--clusters", "east-2"])
    assert ended.value.code == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("flow ")]
    assert [line.partition(" (")[0] for line in shown] == ["flow east-1->east-2"]


NOT_NAMED = "no configuration file is named: give --config FILE, or set FERRY_CONFIG"
AS_ALIASES = "as its aliases: put it at the end, or write --clusters=A,B"


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "check", "--clusters", "west-1", "west-2", "mm2.properties"],
        ["--clusters", "north-1", "flow"],
        ["flows", "--clusters"],
        ["flows", "--clusters="],
        ["--clusters", "flows"],
        ["--clusters", "a", "config", "check"],
        ["flows", "--clusters", ","],
        ["config", "check"],
    ],
    ids=brief,
)
def test_what_the_option_took_is_said(
    arguments: list[str], golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    golden(capsys.readouterr().err)


def test_a_cluster_that_no_flow_goes_into_is_said(
    file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(file.read_text().replace("->west-2.enabled = true", "->west-2.enabled = false"))
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(file), "--strict", "--clusters=west-2"])
    assert ended.value.code == 2
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"warning: {file}: enabled: ")]
    golden("\n".join(said))
