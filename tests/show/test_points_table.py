"""What a study without claims prints at its end."""

import io

import pandas as pd
from rich.console import Console
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.cli.commands import app
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import read_claims, read_statements
from bbrlab.show.points_table import show_points, swept_columns

TABLE = paths.ROOT / "shipped/quick/tang/fig5.parquet"


def printed(table: pd.DataFrame) -> list[str]:
    console = Console(file=io.StringIO(), width=130)
    show_points(table, console)
    return console.file.getvalue().splitlines()


def test_each_point_and_group_has_its_mean_and_interval():
    table = read_figure(TABLE)
    point = table[(table["network.rtt_ms"] == 20) & (table["network.buffer.bdp"] == 3)]
    lines = printed(point)
    assert lines[0].split("  ")[0].strip() == "rtt_ms" and "buffer.bdp" in lines[0] and "network." not in lines[0]
    assert len(lines) == 1 + 2
    share = point[point["group"] == 0]["share_of_capacity"]
    assert "1 bbr1" in lines[1] and f" {share.mean():.3f} ± " in lines[1] and lines[1].endswith(f"  {len(share)}")
    assert "1 cubic" in lines[2]
    assert f"{point['utilisation'].mean():.3f}" in lines[1], "of the run"
    assert f"{point['utilisation'].mean():.3f}" not in lines[2], "once per point"
    assert "completion" not in lines[0], "no transfer ends"


def test_failed_runs_are_in_no_mean_and_counted_and_one_seed_has_no_interval():
    table = read_figure(TABLE)
    point = table[(table["network.rtt_ms"] == 20) & (table["network.buffer.bdp"] == 3)].copy()
    point["ok"] = point["seed"] == 1
    line = printed(point)[1]
    assert f"{point['share_of_capacity'].iloc[0]:.3f}" in line and "±" not in line
    assert line.endswith(f"  1, {point['seed'].nunique() - 1} failed")


def test_a_failed_point_has_no_numbers():
    table = read_figure(TABLE)
    point = table[(table["network.rtt_ms"] == 20) & (table["network.buffer.bdp"] == 3)].assign(ok=False)
    assert printed(point)[1].split("1 bbr1")[1].split()[:4] == ["-"] * 4


def test_what_tells_points_apart():
    assert swept_columns(read_figure(TABLE)) == ["network.rtt_ms", "network.buffer.bdp"]
    assert swept_columns(read_figure(paths.ROOT / "shipped/quick/cao2019/fig7.parquet")) == ["case", "network.loss"]


def test_the_command_prints_points_only_where_no_claim_reads_the_figure(tmp_path):
    claims, statements = (
        read_claims(paths.ROOT / "shipped/quick/claims.parquet"),
        read_statements(paths.ROOT / "shipped/quick/claims.parquet"),
    )
    run = CliRunner()
    for name, kept in (("none", 0), ("some", 5)):
        part = statements[statements["paper"] == "tang"][:kept]
        part.to_parquet(tmp_path / f"{name}.statements.parquet")
        claims[claims["statement"].isin(part["id"])].to_parquet(tmp_path / f"{name}.claims.parquet")
    without = run.invoke(app, ["verdicts", str(tmp_path / "none.claims.parquet"), "--table", str(TABLE)])
    assert without.exit_code == 0 and "share of capacity" in without.output and "verdict" not in without.output
    some = run.invoke(app, ["verdicts", str(tmp_path / "some.claims.parquet"), "--table", str(TABLE)])
    assert some.exit_code == 0 and "verdict" in some.output and "share of capacity" not in some.output
