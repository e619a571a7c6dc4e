"""``bbrlab show`` of a study of one's own, and its table on a narrow terminal."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import matplotlib.pyplot as plt
import pytest
import yaml
from typer.testing import CliRunner

from bbrlab.base.console import Console
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.show.plots.style import multiples
from bbrlab.show.points_table import show_points
from bbrlab_apps.study.page import write_study_page
from bbrlab_apps.study.plan import plan_study
from bbrlab_apps.study.table import study_table
from tests.conftest import scenario_dict

SWEEP = {"network.buffer.bdp": [1, 4], "network.qdisc.kind": ["fifo", "fq_codel"], "network.rtt_ms": [20, 80]}


def invoke(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def study(lab):
    """A study of two points with three seeds, of which one failed its self-checks, in the folder exp1."""
    lab.bad = {3}
    assert invoke("sweep", "my.yaml", "--seeds", "3").exit_code == 0
    return Path("exp1")


def links_of(page):
    return [unescape(link) for link in re.findall(r'<a href="([^"]+)"', page.read_text(encoding="utf-8"))]


def test_a_page_of_a_study_has_pictures_points_and_runs(study):
    done = invoke("show", "exp1")
    assert done.exit_code == 0, done.output
    assert done.output.split() == ["exp1/index.html"]
    page = study / "index.html"
    text = unescape(page.read_text(encoding="utf-8"))
    assert text.count('<img src="data:image/svg+xml;base64,') == 2, "shares and queue"
    assert "2 points, 3 seeds. buffer.bdp: 1, 4." in text
    assert "0.315 ± 0.064" in text, "mean of 0.31 and 0.32 at 4 BDP; the third failed its checks"
    assert "2 of the runs failed their self-checks" in text
    assert re.search(r"src=\"(?!data:)|https?://", text) is None, "it loads nothing"
    links = links_of(page)
    assert len([link for link in links if link.startswith("runs/")]) == 6
    assert len([link for link in links if link.endswith("index.html")]) == 2, "one run of each point has a page"
    for link in links:
        assert (study / unquote(link)).exists(), link
    run = next(study / unquote(link) for link in links if link.endswith("index.html"))
    assert "seed 1" in run.read_text(encoding="utf-8")


def test_two_runs_have_two_pages(study):
    """Each in its own folder, where the next run takes it away."""
    runs = sorted(Path("exp1/runs").glob("*/seed-1"))
    pages = [Path(invoke("show", str(run)).output.strip()) for run in runs]
    assert pages == [run.absolute() / "index.html" for run in runs] and all(page.is_file() for page in pages)


def test_the_page_names_the_kernel_that_is_not_the_default(study):
    for summary in Path("exp1/runs").glob("*/*/summary.json"):
        content = json.loads(summary.read_text())
        summary.write_text(json.dumps(content | {"kernel": content["kernel"] | {"name": "lab-5.10"}}))
    text = unescape(write_study_page(study).read_text(encoding="utf-8"))
    assert "bbrlab sweep study.yaml --kernel lab-5.10 --out again" in text


def test_a_page_elsewhere_still_leads_to_the_runs(study, tmp_path):
    page = write_study_page(study, tmp_path / "elsewhere" / "page.html")
    runs = [link for link in links_of(page) if "/runs/" in link]
    assert len(runs) == 6
    for link in runs:
        assert Path(unquote(link.removeprefix("file://"))).exists()


def test_texts_of_a_scenario_are_texts(study):
    path = study / "study.yaml"
    path.write_text(path.read_text() + "# </pre><script>alert(1)</script>\n")
    text = write_study_page(study).read_text(encoding="utf-8")
    assert "<script>alert" not in text


def test_a_study_without_runs_says_so(lab):
    Path("exp1").mkdir()
    Path("exp1/study.yaml").write_text(Path("my.yaml").read_text())
    done = invoke("show", "exp1")
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == "exp1: the study has no run yet; bbrlab sweep exp1/study.yaml --out exp1"


def test_somebodys_page_in_a_studys_folder_stays(study):
    (study / "index.html").write_text("mine")
    done = invoke("show", str(study))
    assert "index.html: is there, and does not have the mark" in str(done.exception), done.output
    assert (study / "index.html").read_text() == "mine"
    (study / "index.html").unlink()
    for _ in range(2):
        assert invoke("show", str(study)).exit_code == 0


@pytest.mark.parametrize("width", [80, pytest.param(200, marks=pytest.mark.slow)])
def test_a_table_of_three_swept_fields_fits_a_terminal(lab, width):
    flows = [{"cca": "bbr3", "count": 16}, {"cca": "cubic"}]
    Path("my.yaml").write_text(yaml.safe_dump(scenario_dict(flows=flows, sweep=SWEEP, name="exp1")))
    assert invoke("sweep", "my.yaml", "--seeds", "2").exit_code == 0
    table = study_table(plan_study(Path("my.yaml"), Path("exp1"), {}, 2))
    table["loss"] = table["loss"] + 0.01 * table["seed"]
    table["utilisation"] = table["utilisation"] - 0.01 * table["seed"]
    console = Console(file=io.StringIO(), width=width)
    show_points(table, console)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 1 + 2 * 8, "nothing is folded"
    assert max(map(len, (line.rstrip() for line in lines))) <= width
    first = " ".join(lines[1].split())
    assert first.startswith("1 fifo 20 16 bbr3 0.165")
    assert ("0.165 ± 0.064 0.935 ± 0.064" in first) == (width == 200)
    assert "0.165±0.064" in first.replace(" ± ", "±"), "the interval of a share is always there"


def test_four_pictures_stand_two_by_two():
    for count, shape in {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3), 7: (3, 3)}.items():
        figure, grid = multiples(count)
        assert grid.shape == shape, count
        plt.close(figure)
