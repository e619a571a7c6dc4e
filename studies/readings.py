"""Readings of the drafts of BBRv2 and BBRv3 against what was measured: the numbers of the rule in docs/explanation/bbr_defaults.md.

From data/questions/readings_*.csv, which the scenarios of the same names gave, and readings.yaml.
"""

from __future__ import annotations

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.base.yaml_files import read_yaml
from bbrlab.publish.compare import MOVED, OPEN, SAME
from bbrlab.results.statistics import rms

# What a reading's name stands for: lower_bounds, filter_after_probe_rtt (docs/explanation/bbr_defaults.md).
READINGS = {
    "drafts": ("outside-probes", "kept"),
    "refill": ("lossy-refill", "kept"),
    "cut": ("outside-probes", "after-cut-up"),
    "narrow": ("lossy-refill", "after-cut-up"),
    "bounds": ("probes-too", "kept"),
    "bounds-cut": ("probes-too", "after-cut-up"),
    "rotates": ("outside-probes", "always"),
    "refill-rotates": ("lossy-refill", "always"),
    "wide": ("probes-too", "always"),
}
RTT_MS = 50.0  # of readings_queue
LEAST_GOODPUT_MBIT = 75.0
QUEUE_RTTS = (1.0, 1.25)
AS_GOOD = 0.005  # what counts as good as the smallest error


def panels() -> dict[tuple[str, str], str]:
    """{(version of BBR, rival): PAPER/FIGURE}: the published panel of N BBR flows against one of the other."""
    content = read_yaml(paths.DATA / "questions" / "readings.yaml")["panels"]
    return {(cca, rival): figure for cca, rivals in content.items() for rival, figure in rivals.items()}


def shares() -> pd.DataFrame:
    """One row per cell, reading and seed: cca, rival, reading, buffer_bdp, bbr_flows, seed, share_of_capacity, published."""
    measured = published_table("questions/readings_shares")
    parts = []
    for (cca, rival), figure in panels().items():
        reference = published_table(figure)[["buffer_bdp", "bbr_flows", "share_of_capacity"]]
        parts.append(reference.rename(columns={"share_of_capacity": "published"}).assign(cca=cca, rival=rival))
    return measured.merge(pd.concat(parts), on=["cca", "rival", "buffer_bdp", "bbr_flows"], validate="m:1")


def judged() -> pd.DataFrame:
    """What the rule looks at, one row per version and reading, NaN where a reading was not run.

    Columns: cca, reading, lower_bounds, filter_after_probe_rtt; goodput_mbit with 1 % random loss and its standard_error;
    queue (median, RTTmin); rmse_cubic, rmse_reno, rmse (of shares, over both panels); kept (no bound is broken by it),
    departures (parameters that are not the drafts').
    """
    loss = published_table("questions/readings_loss").groupby(["cca", "reading"])["goodput_mbit"]
    queue = published_table("questions/readings_queue").groupby(["cca", "reading"])["queue_p50_ms"].mean() / RTT_MS
    table = pd.DataFrame({"goodput_mbit": loss.mean(), "standard_error": loss.sem(), "queue": queue})
    cells = shares()
    error = cells["share_of_capacity"] - cells["published"]
    table["rmse"] = error.groupby([cells["cca"], cells["reading"]]).agg(rms)
    for rival in ("cubic", "reno"):
        here = cells[cells["rival"] == rival]
        table[f"rmse_{rival}"] = error[here.index].groupby([here["cca"], here["reading"]]).agg(rms)
    table["kept"] = (table["goodput_mbit"] >= LEAST_GOODPUT_MBIT - 2 * table["standard_error"]) & (
        table["queue"].isna() | table["queue"].between(*QUEUE_RTTS)
    )
    table = table.reset_index()
    letter = READINGS["drafts"]
    table["lower_bounds"], table["filter_after_probe_rtt"] = zip(
        *table["reading"].map(READINGS.__getitem__), strict=True
    )
    table["departures"] = (table["lower_bounds"] != letter[0]).astype(int) + (
        table["filter_after_probe_rtt"] != letter[1]
    )
    return table


def chosen(cca: str) -> str:
    """The reading that the rule in docs/explanation/bbr_defaults.md chooses for ``cca``, among those whose shares were compared."""
    left = judged().query("cca == @cca and kept").dropna(subset=["rmse"])
    good = left[left["rmse"] <= left["rmse"].min() + AS_GOOD]
    return str(good.sort_values(["departures", "rmse"])["reading"].iloc[0])


def cells_50mbit() -> pd.DataFrame:
    """The readings at seven cells of the published panels at 50 Mbit/s, which take no part in the choice.

    Returns:
        One row per version, reading and cell: cca, reading, bbr_flows, buffer_bdp, published, share_of_capacity (mean over the
        seeds), standard_error.
    """
    runs = published_table("questions/readings_50mbit")
    keys = ["cca", "reading", "bbr_flows", "buffer_bdp"]
    means = runs.groupby(keys, sort=False)["share_of_capacity"].agg(["mean", "sem"]).reset_index()
    panels = read_yaml(paths.DATA / "questions" / "readings.yaml")["panels_50mbit"]
    published_cells = pd.concat(published_table(figure).assign(cca=cca) for cca, figure in panels.items())
    published_cells = published_cells.rename(columns={"share_of_capacity": "published"})[
        ["cca", "bbr_flows", "buffer_bdp", "published"]
    ]
    cells = means.rename(columns={"mean": "share_of_capacity", "sem": "standard_error"}).merge(
        published_cells, on=["cca", "bbr_flows", "buffer_bdp"], validate="m:1"
    )
    return cells[[*keys, "published", "share_of_capacity", "standard_error"]]


def errors_50mbit(cells: pd.DataFrame) -> pd.Series:
    """{(version, reading): root mean square difference of its means to the published shares} of cells_50mbit()."""
    away = cells["share_of_capacity"] - cells["published"]
    return away.groupby([cells["cca"], cells["reading"]], sort=False).agg(rms)


def table_50mbit() -> pd.DataFrame:
    """cells_50mbit() for reading, in words: a row for the published shares of each version, then one per reading.

    Returns:
        Indexed by version and reading; a column per cell (mean ± standard error), and RMSE, over the version's cells.
    """
    cells = cells_50mbit()
    cells["cell"] = cells["bbr_flows"].map("N = {}, ".format) + cells["buffer_bdp"].map("{} BDP".format)
    cells["share"] = cells["share_of_capacity"].map("{:.3f}".format) + cells["standard_error"].map(" ± {:.3f}".format)
    published = cells.drop_duplicates(["cca", "cell"]).assign(reading="published")
    published["share"] = published["published"].map("{:.3f}".format)
    every = pd.concat([published, cells]).sort_values("cca", kind="stable")
    table = every.pivot_table(index=["cca", "reading"], columns="cell", values="share", aggfunc="first", sort=False)
    return table.assign(RMSE=errors_50mbit(cells).map("{:.3f}".format)).fillna("")


def elsewhere() -> pd.DataFrame:
    """The readings in set-ups that took no part in the choice: what ``bbrlab compare`` says of them beside the kernel's default.

    From data/questions/readings_elsewhere.csv: a row for each version, reading, figure, point, flow group and metric.

    Returns:
        Indexed by version, reading and paper; how many numbers are ``equal`` in every seed, ``not told apart``, ``moved``.
    """
    rows = published_table("questions/readings_elsewhere")
    words = {SAME: "equal", OPEN: "not told apart", MOVED: "moved"}
    keys = [rows["cca"], rows["reading"], rows["figure"].str.split("/").str[0].rename("paper")]
    counts = rows["outcome"].map(words).groupby(keys, sort=False).value_counts().unstack(fill_value=0)
    return counts.reindex(columns=list(words.values()), fill_value=0).rename_axis(columns=None)
