"""What a study without claims prints at its end."""

import io
from pathlib import Path

import pandas as pd
from rich.console import Console
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.cli.commands import app
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import read_claims, read_statements
from bbrlab.show.figure_end import show_figure_end
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


def test_beside_random_loss_the_queues_is_called_so():
    table = read_figure(TABLE)
    point = table[(table["network.rtt_ms"] == 20) & (table["network.buffer.bdp"] == 3)]
    assert "random_loss" not in printed(point)[0] and "in the queue" not in printed(point)[0]
    head, line = printed(point.assign(random_loss=0.005))[:2]
    assert "random_loss" in head and "loss in the queue" in head and "0.005" in line
    console = Console(file=io.StringIO(), width=74)
    show_points(point.assign(random_loss=0.005), console)
    head = console.file.getvalue().splitlines()[0]
    assert "queue loss" in head and "random_loss" not in head and len(head.rstrip()) <= 74, "narrow"
    swept = point.assign(random_loss=0.005, **{"network.loss": 0.005})
    assert "random_loss" not in printed(swept)[0], "told once"


def test_what_tells_points_apart():
    assert swept_columns(read_figure(TABLE)) == ["network.rtt_ms", "network.buffer.bdp"]
    assert swept_columns(read_figure(paths.ROOT / "shipped/quick/cao2019/fig7.parquet")) == ["case", "network.loss"]


def end_of(tmp_path: Path, figure: str, width: int = 130) -> list[str]:
    """What a campaign of one figure ends with, of what ships at quick."""
    shipped = paths.ROOT / "shipped/quick"
    claims = read_claims(shipped / "claims.parquet")
    claims = claims[claims["figures"].str.contains(figure)]
    statements = read_statements(shipped / "claims.parquet")
    console = Console(file=io.StringIO(), width=width)
    show_figure_end(
        shipped / f"{figure}.parquet", claims, statements[statements["id"].isin(claims["statement"])], console
    )
    return console.file.getvalue().splitlines()


def test_a_figure_ends_on_one_screen_with_published_measured_verdict_and_places(tmp_path):
    lines = end_of(tmp_path, "sarpkaya2025/fig5a")
    assert lines[0] == "sarpkaya2025/fig5a: Fig. 5a, scale quick"
    assert lines[1].split()[:2] == ["buffer.bdp", "flows.0.count"] and "expected" in lines[1]
    (alone,) = [line for line in lines if "1 bbr3" in line and line.startswith("1 ")]
    assert "0.4676 ± 0.05" in alone and "reproduced" in alone
    assert len(lines) < 50, "a screen"
    assert any(line.startswith("SA-5a: ") for line in lines), "which this figure alone decides"
    (others,) = [line for line in lines if "other figures, too: " in line]
    assert "SA-5a," not in others
    assert [line[:12].strip() for line in lines[-3:]] == ["numbers", "all claims", "picture"]
    assert lines[-1].endswith("bbrlab plot sarpkaya2025/fig5a --scale quick")


def test_of_many_points_those_that_do_not_reproduce_come_first(tmp_path):
    lines = end_of(tmp_path, "sarpkaya2025/fig2a")
    table = read_figure(paths.ROOT / "shipped/quick/sarpkaya2025/fig2a.parquet")
    rows = [line for line in lines if " bbr1 " in line or " cubic " in line]
    hidden = table["point"].nunique() - len(rows) // 2
    assert hidden > 0 and f"and {hidden} more points" in lines, "their order is by verdict, not by distance"


def test_the_command_prints_points_and_statements(tmp_path):
    claims = read_claims(paths.ROOT / "shipped/quick/claims.parquet")
    statements = read_statements(paths.ROOT / "shipped/quick/claims.parquet")
    part = statements[statements["paper"] == "tang"][:0]
    part.to_parquet(tmp_path / "none.statements.parquet")
    claims[claims["statement"].isin(part["id"])].to_parquet(tmp_path / "none.claims.parquet")
    done = CliRunner().invoke(app, ["verdicts", str(tmp_path / "none.claims.parquet"), "--table", str(TABLE)])
    assert done.exit_code == 0 and "share of capacity" in done.output and "verdict" not in done.output.split("\n")[1]
