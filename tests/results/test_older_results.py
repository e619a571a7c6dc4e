"""Results that an older version of bbrlab left: understood, or one message with the file, what is missing, and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.claims.judge import judge_all, verdict_frame
from bbrlab.claims.load import claims_of
from bbrlab.claims.statement_verdict import statement_frame
from bbrlab.cli.commands import app
from bbrlab.comparison import differences
from bbrlab.comparison import expected_runs as records
from bbrlab.measure.metrics import ALWAYS, METRICS
from bbrlab.results import schema as versions
from bbrlab.results import shipped
from bbrlab.results.figures import Run, figures_at
from bbrlab.results.judged import write_verdicts
from bbrlab.results.tables import CONDITIONS, IDENTITY, TIDY, read_points, run_rows, table_of_rows, tidy, write_table
from bbrlab.results.verdicts import CLAIM_COLUMNS, STATEMENT_COLUMNS, read_claims, read_statements
from bbrlab.show.findings import load_findings
from bbrlab_apps.archive.verdicts import check_judged
from bbrlab_apps.shipping import pack as ship
from bbrlab_apps.shipping.finished_run import FinishedRun
from bbrlab_apps.site.run_page import write_run_page
from studies import beside_shipped
from studies.page import load_page
from tests.made_up import all_statements, nothing_measured, page_of, table, whole_summary
from tests.made_up_runs import made_up_run

FIGURE = "tang/fig2"
TABLE, CLAIMS, STATEMENTS = f"smoke/{FIGURE}.parquet", "smoke/claims.parquet", "smoke/statements.parquet"
SAID = "made by another version of bbrlab"


def figure():
    return figures_at("smoke", [FIGURE])[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """What a campaign of one figure leaves, its runs apart, with a column of a version that measured something else."""
    results = tmp_path_factory.mktemp("results")
    content = table(figure()).assign(measured_no_more=1.0)
    write_table(content, results / TABLE)
    write_table(tidy({FIGURE: content}), results / "smoke" / "points.parquet")
    statements = all_statements()
    verdicts = judge_all(claims_of(statements), [figure()], {FIGURE: content}, results)
    for part in ("", "tang."):
        claims, out = verdict_frame(verdicts).assign(judged_no_more=1), results / "smoke" / f"{part}claims.parquet"
        write_verdicts(claims, statement_frame(statements, verdicts), out, [results / TABLE])
    return results


@pytest.fixture
def older(made, tmp_path) -> Path:
    """A copy that may be made older."""
    return shutil.copytree(made, tmp_path / "older")


def without(path: Path, column: str) -> Path:
    pd.read_parquet(path).drop(columns=column).to_parquet(path)
    return path


def invoke(*argv: object) -> None:
    done = CliRunner().invoke(app, [*map(str, argv)], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception


def told(do: Callable[[], Any], path: Path, missing: str) -> str:
    """The one message, which names the file and what it lacks, and says whose it is."""
    with pytest.raises(UserError) as found:
        do()
    text = str(found.value)
    assert str(path) in text and missing in text and SAID in text, text
    return text


def whole_page(results: Path) -> None:
    page = load_page("smoke", "tang", results)
    page.glance()
    page.claims()
    page.findings()


# {what reads tables: how}; each gets the results folder and a place to write to.
READERS: dict[str, Callable[[Path, Path], Any]] = {
    "points": lambda results, out: invoke("points", results / TABLE, "--out", out / "points.parquet"),
    "judge": lambda results, out: invoke("judge", results / TABLE, "--scale", "smoke", "--out", out / "claims.parquet"),
    "scorecard": lambda results, out: invoke("scorecard", results / TABLE, "--claims", results / CLAIMS, "--scale", "smoke", "--out", out / "scorecard.json"),
    "verdicts": lambda results, out: invoke("verdicts", results / CLAIMS),
    "page": lambda results, out: whole_page(results),
    "site": lambda results, out: load_findings("smoke", results=results),
    "ship": lambda results, out: ship.pack(ship.Finished("smoke", [figure()], results), out / "shipped"),
}  # fmt: skip


def test_what_is_asked_of_a_table_is_what_this_version_writes():
    content = table(figure())
    assert set(IDENTITY) | set(CONDITIONS) | set(METRICS) <= set(content)
    assert tuple(figure().points[0].conditions) == CONDITIONS
    statements = all_statements()
    verdicts = judge_all(claims_of(statements), [figure()], {FIGURE: content})
    assert tuple(verdict_frame(verdicts)) == CLAIM_COLUMNS
    assert tuple(statement_frame(statements, verdicts)) == STATEMENT_COLUMNS
    assert tuple(tidy({FIGURE: content})) == TIDY


def test_a_figure_without_claims_has_tables_without_columns(tmp_path):
    for name in ("claims", "statements"):
        write_table(pd.DataFrame(), tmp_path / f"{name}.parquet")
    invoke("verdicts", tmp_path / "claims.parquet")


# --- tables -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "column"),
    [
        *((reader, "share_of_capacity") for reader in ("points", "judge", "scorecard", "page", "site", "ship")),
        *(("points", column) for column in ("point", "cca", "kernel", "buffer_bdp", "queue_cdf_0_5")),
    ],
)
def test_an_older_table_of_a_figure(older, reader, column, tmp_path):
    path = without(older / TABLE, column)
    text = told(lambda: READERS[reader](older, tmp_path), path, f"has no column {column}")
    assert "delete it, and snakemake makes it anew" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["older"], "nothing is written"


LATER = [name for name in METRICS if name not in ALWAYS]


@pytest.mark.parametrize("reader", [name for name in READERS if name != "ship"])
def test_a_table_without_later_metrics_and_with_a_column_that_is_no_more_disturbs_nobody(older, reader, tmp_path):
    assert "measured_no_more" in pd.read_parquet(older / TABLE)
    for name in LATER:
        without(older / TABLE, name)
    for claims in (older / "smoke").glob("*claims.parquet"):
        write_verdicts(read_claims(claims), read_statements(claims), claims, [older / TABLE])
    READERS[reader](older, tmp_path)


def test_a_metric_that_only_one_side_measured_is_compared_by_nobody(older, made):
    without(older / TABLE, LATER[0])
    with pytest.raises(UserError, match=f"--metric {LATER[0]}: the tables of side B have no such column: {SAID}"):
        invoke("compare", FIGURE, "--results", made, "--results", older, "--scale", "smoke", "--metric", LATER[0])


@pytest.mark.parametrize(
    ("reader", "file", "column"),
    [
        *((reader, CLAIMS, "interim") for reader in ("scorecard", "verdicts", "page", "site")),
        *(("verdicts", CLAIMS, column) for column in ("statement", "measurement")),
        *((reader, STATEMENTS, "cause") for reader in ("scorecard", "verdicts", "page", "site")),
        ("verdicts", STATEMENTS, "open"),
    ],
)
def test_older_verdicts(older, reader, file, column, tmp_path):
    path = without(older / file, column)
    if reader == "page":
        path = without(path.with_name(f"tang.{path.name}"), column)
    told(lambda: READERS[reader](older, tmp_path), path, f"has no column {column}")


@pytest.mark.parametrize(("file", "column"), [(CLAIMS, "settles"), ("smoke/points.parquet", "without")])
def test_older_tables_are_not_packed_into_an_archive(older, file, column):
    """Though the runs and the figures' tables are whole. What ships has none of them: ship makes them anew."""
    path = without(older / file, column)
    told(lambda: check_judged(ship.Finished("smoke", [figure()], older)), path, f"has no column {column}")


def test_older_points(older):
    path = without(older / "smoke" / "points.parquet", "without")
    told(lambda: read_points(path), path, "has no column without")


def test_an_older_prediction(tmp_path):
    """Of a model, in the folder that a claim, a page's panel and a chart read."""
    path = tmp_path / "burst.parquet"
    pd.DataFrame({"share_of_capacity": [0.5]}).to_parquet(path)
    with pytest.raises(UserError, match=f"has no column share_sd: {SAID}"):
        versions.check_columns(path, pd.read_parquet(path), ["share_of_capacity", "share_sd"])


# --- two sides ----------------------------------------------------------------------------------------------------------


def test_compare_leaves_out_what_one_side_has_not_and_says_so_if_asked(older, made):
    """Two commits are compared, of which one may measure more."""
    path = older / TABLE
    both = ["--results", made, "--results", older, "--scale", "smoke"]
    without(path, "jain_index_all")
    invoke("compare", FIGURE, *both)
    with pytest.raises(UserError, match=f"--metric jain_index_all: the tables of side B have no such column: {SAID}"):
        invoke("compare", FIGURE, *both, "--metric", "jain_index_all")
    without(path, "kernel_key")
    told(lambda: invoke("compare", FIGURE, *both), path, "has no column kernel_key")


def test_a_claim_on_what_a_table_does_not_have_is_not_run_and_says_why(made):
    content = pd.read_parquet(made / TABLE)
    statements = all_statements()
    claims = [c for c in claims_of(statements) if set(c.figures) == {FIGURE}]
    columns = sorted({name.rpartition(".")[2] for c in claims for name in c.columns} & set(METRICS))
    assert columns
    verdicts = judge_all(claims, [figure()], {FIGURE: content.drop(columns=columns)})
    why = [v.why for v in verdicts if v.verdict == "not run"]
    assert any("has no column" in text and SAID in text for text in why), why


# --- what ships ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def theirs(tmp_path) -> Path:
    """A copy of what ships."""
    return shutil.copytree(paths.ROOT / "shipped", tmp_path / "shipped")


def change(path: Path, **fields: object) -> Path:
    files.write_json(path, files.read_json(path) | fields)
    return path


def test_shipped_results_of_another_format(theirs):
    path = change(theirs / "quick" / "manifest.json", format=shipped.FORMAT + 1)
    text = told(lambda: shipped.read_manifest(theirs, "quick"), path, f"is of format {shipped.FORMAT + 1}")
    assert "get these results anew" in text
    told(lambda: records.results_at(theirs, "quick", figures_at("quick", ["tang"])), path, "is of format")


def test_shipped_results_with_another_field(theirs):
    path = change(theirs / "quick" / "manifest.json", machine="m")
    with pytest.raises(UserError, match=r"manifest.json: machine: .*made by another version: get it anew"):
        shipped.read_manifest(theirs, "quick")
    content = files.read_json(path)
    del content["machine"], content["failed"]
    files.write_json(path, content)
    with pytest.raises(UserError, match=r"manifest.json: failed: .*made by another version: get it anew"):
        shipped.read_manifest(theirs, "quick")


@pytest.mark.parametrize("column", ["figure", "summary_sha256", "samples_sha256"])
def test_older_hashes_of_shipped_runs(theirs, column):
    path = without(theirs / "quick" / "runs.parquet", column)
    manifest = files.read_json(theirs / "quick" / "manifest.json")
    manifest["files"]["runs.parquet"] = files.sha256(path)
    change(theirs / "quick" / "manifest.json", **manifest | {"sha256": shipped.content_hash(manifest)})
    told(lambda: records.results_at(theirs, "quick", figures_at("quick", ["tang"])), path, f"has no column {column}")


def test_an_older_table_among_shipped_ones(theirs, monkeypatch):
    """Nobody can have snakemake make it anew."""
    path = without(theirs / "quick" / f"{FIGURE}.parquet", "loss")
    monkeypatch.setattr(paths, "SHIPPED", theirs)
    text = told(lambda: load_findings("quick", results=theirs), path, "has no column loss")
    assert "get what ships with this version anew" in text and "delete" not in text
    path = without(theirs / "quick" / "checks.parquet", "measured")
    (chosen,) = figures_at("quick", [FIGURE])
    page = page_of(theirs, "tang", {"fig2": chosen}, {}, "quick", True)
    told(page.checks, path, "has no column measured")


def test_one_s_own_results_beside_older_shipped_ones(older, theirs):
    assert beside_shipped.other_verdicts("smoke", older, theirs) is None, "what ships is of other scales"
    (older / "smoke").rename(older / "quick")
    for name in ("claims", "statements"):
        without(theirs / "quick" / f"{name}.parquet", "says")
    told(
        lambda: beside_shipped.other_verdicts("quick", older, theirs),
        theirs / "quick" / "statements.parquet",
        "has no column says",
    )


# --- runs ---------------------------------------------------------------------------------------------------------------

FIELDS = ["kernel", "kernel.key", "bottleneck.buffer_bytes", "groups.0.count", "groups.0.goodput_mbit", "checks.0.detail", "window_s"]  # fmt: skip


def drop(content: dict[str, Any], place: str) -> None:
    *parents, last = place.split(".")
    inner: Any = content
    for key in parents:
        inner = inner[int(key)] if key.isdigit() else inner[key]
    del inner[last]


def summary_without(folder: Path, place: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    check = {"name": "rate", "asked": 1, "measured": 1.0, "ok": True, "detail": ""}
    content = whole_summary(nothing_measured(), checks=[check], measured_no_more=3)
    if place:
        drop(content, place)
    (folder / "summary.json").write_text(json.dumps(content))
    return folder / "summary.json"


@pytest.mark.parametrize("place", [*FIELDS, "bottleneck.queue_ms.p95"])
def test_an_older_summary_of_a_run(tmp_path, place):
    """In a figure's table, in a page's self-checks, packed, on its own page."""
    (run, *_) = [Run(FIGURE, p, 1, tmp_path / "runs" / FIGURE / p.label / "seed-1") for p in figure().points]
    made_up_run(run.point, 1, run.folder)
    path = summary_without(run.folder, place)
    missing = f"has no '{place.rpartition('.')[2] if place[:4] in ('bott', 'grou') and 'count' not in place and 'buffer' not in place else place}'"
    for do in (
        lambda: run_rows(run),
        lambda: FinishedRun.load(run),
        lambda: write_run_page(run.folder, tmp_path / "page.html"),
    ):
        assert "run this point again" in told(do, path, missing)
    table = pd.DataFrame({"point": [run.point.label], "seed": [1]})
    page = page_of(tmp_path, "tang", {"fig2": figure()}, {"fig2": table})
    for other in page.runs("fig2"):
        if other.folder != run.folder:
            summary_without(other.folder, "")
    told(page.checks, path, missing)


def test_a_run_that_is_older_than_a_metric_has_none_of_it(tmp_path):
    """In its row, and on its own page; packed with the table that its version made, which has no such column."""
    run = Run(FIGURE, figure().points[0], 1, tmp_path / "run")
    made_up_run(run.point, 1, run.folder)
    path = summary_without(run.folder, "")
    content = files.read_json(path)
    rows = run_rows(run)
    later = [name for name in LATER if name in content["groups"][0]]
    for name in later:
        del content["groups"][0][name]
    files.write_json(path, content)
    assert run_rows(run) == rows and {rows[0][name] for name in later} == {None}
    write_run_page(run.folder, tmp_path / "page.html")
    table = table_of_rows(rows).drop(columns=later)
    ship._check_table(figure(), table, [SimpleNamespace(rows=rows)], tmp_path)
    with pytest.raises(UserError, match="is not the table of the runs"):
        ship._check_table(figure(), table.assign(loss=0.5), [SimpleNamespace(rows=rows)], tmp_path)


@pytest.mark.parametrize("place", ["values", "fingerprint", "scenario", "scenario.sample_hz", "scenario.flows.0.count", "scenario.network.qdisc"])  # fmt: skip
def test_an_older_manifest_of_a_run(tmp_path, place):
    folder = made_up_run(figure().points[0], 1, tmp_path / "run")
    path = folder / "manifest.json"
    content = files.read_json(path)
    drop(content, place)
    files.write_json(path, content | {"recorded_no_more": 1})
    named = place.replace(".0", "")
    assert named in told(lambda: write_run_page(folder, tmp_path / "page.html"), path, "has no '")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "field", ["outputs_sha256", "kernel", "guest_code_sha256", "packages", "source", "fingerprint"]
)
def test_an_older_manifest_is_not_packed(tmp_path, field):
    run = Run(FIGURE, figure().points[0], 1, tmp_path)
    made_up_run(run.point, 1, tmp_path)
    summary_without(tmp_path, "")
    content = {"fingerprint": run.point.fingerprint, "seed": 1, "kernel": files.read_json(tmp_path / "summary.json")["kernel"],
               "guest_code_sha256": {}, "packages": {}, "source": {"commit": "c", "modified": False},
               "outputs_sha256": {"samples.parquet": files.sha256(tmp_path / "samples.parquet")}}  # fmt: skip
    files.write_json(tmp_path / "manifest.json", content)
    assert FinishedRun.load(run).commit == "c"
    del content[field]
    files.write_json(tmp_path / "manifest.json", content)
    text = told(lambda: FinishedRun.load(run), tmp_path / "manifest.json", f"has no '{field}'")
    assert "run this point again" in text


@pytest.mark.parametrize("column", ["cwnd", "bbr_state", "queue_bytes"])
def test_older_samples_of_a_run(tmp_path, column):
    folder = made_up_run(figure().points[0], 1, tmp_path / "run")
    path = without(folder / "samples.parquet", column)
    told(lambda: write_run_page(folder, tmp_path / "page.html"), path, f"has no column {column}")


def test_older_samples_in_a_notebook(older):
    """Not "is damaged", which they are not."""
    page = load_page("smoke", "tang", older)
    run = page.run("fig2", 1, case="cubic")
    made_up_run(run.point, 1, run.folder)
    path = without(run.folder / "samples.parquet", "queue_bytes")
    assert list(page.samples("fig2", ["time_s"], case="cubic")) == ["time_s"]
    told(lambda: page.samples("fig2", ["time_s", "queue_bytes"], case="cubic"), path, "has no column queue_bytes")
    without(path, "queue_packets")
    told(lambda: page.curves("fig2"), path, "has no column queue_packets")


def test_verify_runs_older_runs_again_and_names_the_field(tmp_path):
    """The hash of an older summary is another: which field it has not is told, and no traceback."""
    results, again = tmp_path / "results", tmp_path / "again"
    run = Run(FIGURE, figure().points[0], 1, results / "runs" / FIGURE / figure().points[0].label / "seed-1")
    for folder in (run.folder, again):
        made_up_run(run.point, 1, folder)
        summary = files.read_json(summary_without(folder, ""))
        change(folder / "manifest.json", kernel=summary["kernel"])
    found = records.results_at(results, "smoke", [figure()])
    assert differences.compare(found.expected(found.keys[0]), again, {}) == []
    summary_without(run.folder, "jain_index")
    content = files.read_json(run.folder / "manifest.json")
    files.write_json(run.folder / "manifest.json", content | {"outputs_sha256": None})
    found = records.results_at(results, "smoke", [figure()])
    (wrong, *_) = differences.compare(found.expected(found.keys[0]), again, {})
    assert wrong.file == "summary.json" and "jain_index is not there, again null" in wrong.what
    summary_without(run.folder, "kernel")
    assert records.results_at(results, "smoke", [figure()]).expected(found.keys[0]).kernel is None
