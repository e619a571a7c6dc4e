"""The parking lot's law, and the table of its runs."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from bbrlab.base import paths
from studies.parking_lot import FAIR, draw, main, point_of, square_root_share, table_of


def summary(n: int, ok: bool = True) -> dict:
    """A long group over n links, whose losses and RTTs are n times those of a cross flow, and whose rate is the law's."""
    ratio = 1 / (n * math.sqrt(n))
    groups = [{"cca": "reno", "goodput_mbit": 10 * ratio, "rtt_ms_mean": 50.0 * n}]
    groups += [{"cca": "reno", "goodput_mbit": 10.0, "rtt_ms_mean": 50.0} for _ in range(4)]
    flows = [{"group": 0, "loss": 0.01 * n}, *({"group": g, "loss": 0.01} for g in range(1, 5))]
    links = [{"link": i, "groups": [0, i + 1] if i < n else [i + 1]} for i in range(4)]
    return {"scenario": "parking_lot", "ok": ok, "groups": groups, "flows": flows, "links": links}


def test_with_equal_rtts_and_losses_that_add_up_the_law_is_least_potential_delay():
    for n in (1, 2, 3, 4):
        assert square_root_share(1, n) == pytest.approx(float(FAIR["least potential delay"](n)))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_point_is_of_the_links_that_are_crossed(n):
    row = point_of(summary(n))
    assert (row["links"], row["cca"]) == (n, "reno")
    assert row["share"] == pytest.approx(row["law"]) and row["share"] == pytest.approx(1 / (1 + n**1.5))


def test_the_table_leaves_out_what_failed_and_is_drawn(tmp_path):
    for name, content in {"a": summary(1), "b": summary(2), "c": summary(3, ok=False)}.items():
        folder = tmp_path / "runs" / name / "seed-1"
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps(content), encoding="utf-8")
    table = table_of([tmp_path])
    assert list(table["links"]) == [1, 2]
    assert table["half"].isna().all(), "of one seed each"
    draw(table).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.parametrize("study", ["parking_lot", "parking_lot_hops"])
def test_on_each_link_what_ships_adds_up_to_what_the_link_carries(study):
    """It needs one seed: 1448 of 1514 bytes are data, and a link of 20 Mbit/s carries no more in a run, less what BBR leaves unused."""
    table = pd.read_parquet(paths.ROOT / "shipped" / "quick" / "questions" / f"{study}.parquet")
    runs = list(table.groupby(["case", "flows.0.links", "seed"]))
    assert len(runs) == 20
    for (cca, links, _), groups in runs:
        shares = groups.set_index("group")["share_of_capacity"]
        last = int(str(links)[-1])
        for link in range(4):
            together = shares[1 + link] + (shares[0] if link <= last else 0)
            assert 0.95 - 0.025 * cca.startswith("bbr") < together < 1448 / 1514 + 0.001, (cca, links, link)


def test_a_folder_without_runs_is_told_in_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["parking_lot", str(tmp_path), "--out", str(tmp_path / "x.png")])
    with pytest.raises(SystemExit):
        main()
    assert f"{tmp_path}: has no run; give the folder" in capsys.readouterr().err
