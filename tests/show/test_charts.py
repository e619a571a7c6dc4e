"""What a figure's chart is drawn from: the metric it begins with, words for values, gains of one algorithm over another."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import bbrlab_apps.site
from bbrlab.claims.load import claims_of
from bbrlab.claims.schema import Expectation
from bbrlab.claims.select import full_figures
from bbrlab.results.algorithm_table import COLOURS
from bbrlab.results.figures import figures_at
from bbrlab.show.verdicts import colours_css
from bbrlab_apps.site.case_words import words_of_case
from bbrlab_apps.site.charts import ASKED, MODELLED, MODELS, are_crowded, chart_of, kind_of, table_of, value_words
from bbrlab_apps.site.gains import gains_of
from bbrlab_apps.site.html import embedded
from tests.made_up import all_statements, table
from tests.show.browser import PROGRAM, Browser


def claims():
    return claims_of(all_statements())


def chart(name, value, tmp_path):
    (figure,) = figures_at("full", [name])
    return chart_of(figure, table(figure, value, trials=2), claims(), tmp_path)


def test_a_grid_of_two_algorithms_begins_with_the_gain_here_beside_the_published_one(tmp_path):
    found = chart("cao2019/fig5", lambda point, seed: 3.0 if point.values["case"] == "bbr1" else 2.0, tmp_path)
    first = found["metrics"][0]
    assert first["gain"] and first["label"] == "goodput: BBRv1 over CUBIC (%)"
    assert first["sides"] == [["CUBIC", COLOURS["cubic"]], ["BBRv1", COLOURS["bbr1"]]]
    cells, goals = found["measured"][first["name"]]["0"], found["expected"][first["name"]]["0"]
    case = [key["name"] for key in found["keys"]].index("case")
    of_bbr = [i for i, p in enumerate(found["points"]) if found["keys"][case]["values"][p["at"][case]] == "bbr1"]
    assert {tuple(cells[i]) for i in of_bbr} == {(50.0, None, 2)}
    assert all(cell is None for i, cell in enumerate(cells) if i not in of_bbr)
    published = {found["points"][i]["label"]: goal[0] for i, goal in enumerate(goals) if goal}
    assert len(published) == 128, "Figs 5a and 5b, 8 rates and 8 RTTs each"
    (low,) = [
        g
        for label, g in published.items()
        if re.search(r"rate_mbit=100\b.*buffer.bytes=100000\b", label) and "rtt_ms=5," in label
    ]
    assert low == -12


def test_of_a_gain_with_one_bound_nothing_is_drawn_as_expected():
    (figure,) = figures_at("full", ["cao2019/fig5"])
    claim = next(c for c in claims() if (c.metric or "").startswith("100 * ("))
    assert [list(g.expected.values())[0][1:3] for g in gains_of(figure, [claim])] == [list(claim.expect.bounds)]
    open_end = claim.model_copy(update={"expect": Expectation(at_least=20)})
    assert [g.expected for g in gains_of(figure, [open_end])] == [{}]


def test_a_gain_is_on_the_side_of_the_algorithm_that_does_better(tmp_path):
    """Who needs less time does better."""
    first = chart("cao2019/fig6", lambda point, seed: 1.0, tmp_path)["metrics"][0]
    assert first["label"] == "completion time: BBRv1 over CUBIC (%)"
    assert [name for name, _ in first["sides"]] == ["BBRv1", "CUBIC"]


def test_a_chart_has_the_colour_of_each_algorithm_and_the_end_of_each_scale(tmp_path):
    found = chart("bless2025/fig4", lambda point, seed: 1.0, tmp_path)
    assert found["colours"]["0"] == found["colours"]["run"] == [COLOURS["bbr1"], COLOURS["bbr3"]]
    most = {m["name"]: m["most"] for m in found["metrics"]}
    assert most["utilisation"] == 1 and most["queue_ms_mean"] is None
    both = chart("sarpkaya2025/fig2a", lambda point, seed: 0.5, tmp_path)["colours"]
    assert set(both["1"]) == {COLOURS["cubic"]} and set(both["run"]) == {None}, "a run of two algorithms is of neither"


def test_of_a_metric_that_the_first_flows_lack_no_gain_is_drawn(tmp_path):
    """Its numbers are of another group alone."""
    (figure,) = figures_at("full", ["cao2019/fig5"])
    found = chart_of(figure, table(figure, trials=2).assign(group=1), claims(), tmp_path)
    assert found["measured"]["goodput_mbit"].keys() == {"1"} and not any("gain" in m for m in found["metrics"])


def test_a_ratio_of_single_points_is_no_gain():
    """Bless et al. have no figure in percent."""
    for figure in full_figures().values():
        if figure.id.startswith(("bless2025/", "sarpkaya2025/")):
            assert gains_of(figure, claims()) == [], figure.id


def test_a_chart_begins_with_what_is_published_of_its_figure(tmp_path):
    for name, metric in (("sarpkaya2025/fig3b", "share_of_capacity"), ("sarpkaya2025/fig4", "jain_index_all"),
                         ("cao2019/fig8", "share_of_goodput"), ("questions/rtt_fairness", "goodput_mbit")):  # fmt: skip
        assert chart(name, lambda point, seed: 0.5, tmp_path)["metrics"][0]["name"] == metric


@pytest.mark.parametrize("name", ["questions/map_buffer_flows", "questions/duration", "tang/fig6"])
def test_of_flows_that_compete_a_chart_begins_with_their_shares(name, tmp_path):
    """Where nothing is published of it, goodput says little over several rates, and models give shares."""
    first = chart(name, lambda point, seed: 0.5, tmp_path)["metrics"][0]
    assert (first["name"], first["kind"] == ASKED) == (MODELLED, name == "questions/duration")


def test_what_is_a_sum_over_a_groups_flows_is_called_one(tmp_path):
    found = chart("sarpkaya2025/fig2a", lambda point, seed: 0.5, tmp_path)["metrics"]
    summed = {m["name"]: m["summed"] for m in found}
    assert summed["share_of_capacity"] == ["0"] and summed["utilisation"] == [], "one CUBIC flow is no sum"
    assert chart("cao2019/fig8", lambda point, seed: 0.5, tmp_path)["metrics"][0]["summed"] == []


def test_flows_are_called_by_their_algorithm_at_each_point(tmp_path):
    found = chart("bless2025/sec7", lambda point, seed: 0.5, tmp_path)
    case = found["keys"][0]
    at = {
        (case["words"][p["at"][0]], group): found["flows"][group][i]
        for i, p in enumerate(found["points"])
        for group in "01"
    }
    assert (at["beside CUBIC", "0"], at["beside CUBIC", "1"]) == ("BBRv3", "CUBIC")
    assert at["beside BBRv3, other RTT", "1"] == "BBRv3 (group 2)"
    heads, rows = table_of(found)
    assert {row[heads.index("flows")] for row in rows} == {"BBRv3", "CUBIC", "BBRv3 (group 1)", "BBRv3 (group 2)"}
    assert chart("cao2019/fig8", lambda point, seed: 0.5, tmp_path)["flows"] == {}, "each group is of one"


@pytest.mark.parametrize(
    ("value", "among", "words"),
    [(31.0067, [16, 31.0067, 64], "31"), (40.757, [40, 40.606, 40.757, 40.908], "40.76"), (1024, [8, 1024], "1024"), (0.115, [0.1, 0.115, 0.13], "0.115"), ("red", [], "red")],
)  # fmt: skip
def test_a_number_has_the_digits_that_tell_it(value, among, words):
    assert value_words(value, among) == words


@pytest.mark.parametrize(
    ("values", "crowded"),
    [([40, 40.2, 80, 80.2], True), ([40, 40.2, 40.4], False), ([100, 500, 1000, 10000], False), ([0, 0.01, 0.5], False), (["a", "b", "c"], False)],
)  # fmt: skip
def test_an_axis_of_numbers_is_given_up_where_it_would_hide_some(values, crowded):
    assert are_crowded(values) is crowded


def test_what_a_claim_gives_a_range_of_is_told_as_one(tmp_path):
    found = chart("cao2019/fig8", lambda point, seed: 5.0, tmp_path)
    assert {m["name"]: m["most"] for m in found["metrics"]}["retransmits"] is None
    goals = [goal for goals in found["expected"]["retransmits"].values() for goal in goals if goal]
    ranges = [goal for goal in goals if goal[0] is None]
    assert ranges and all(low < high for _, low, high, _ in ranges)
    heads, rows = table_of(chart("tang/fig5", lambda point, seed: 0.5, tmp_path))
    assert any(re.fullmatch(r"[\d.]+ to [\d.]+", row[heads.index("expected")]) for row in rows)
    shares = chart("sarpkaya2025/fig3b", lambda point, seed: 0.5, tmp_path)
    assert shares["metrics"][0]["most"] == 1


def test_values_have_words_and_menus_have_groups(tmp_path):
    found = chart("sarpkaya2025/fig4", lambda point, seed: 0.5, tmp_path)
    words = {key["name"]: key["words"] for key in found["keys"]}
    assert words["network.buffer.bytes"][0] == "125 kB" and words["network.buffer.bytes"][-1] == "8 MB"
    assert words["case"][1] == "BBRv1 + CUBIC"
    labels = [m["label"] for m in found["metrics"]]
    assert len(set(labels)) == len(labels), "no two entries of a menu are the same"
    assert found["metrics"][0]["kind"] == ASKED


@pytest.mark.parametrize(
    ("figure", "case", "words"),
    [
        ("cao2019/fig7", "bbr1-1.25", "BBRv1, pacing gain 1.25"),
        ("cao2019/fig7", "cubic", "CUBIC"),
        ("bless2025/fig7", "per-packet-1ms", "1 ms per packet"),
        ("questions/map_rate_rtt", "bbr2-cubic-50M-40ms-N1-X2", "BBRv2 v CUBIC, 50 Mbit/s, 40 ms"),
        ("zeynali2024/fig1", "codel-on-5-cubic", "CoDel, ECN used, 5 CUBIC"),
        ("bless2025/sec4b", "no-extra-acked", "without extra_acked"),
        ("questions/phase_period", "bbr2-cubic-moves", "BBRv2, RTT of CUBIC moves"),
        ("", "60s", "60 s"),
    ],
)
def test_a_case_has_words(figure, case, words):
    assert words_of_case(case, figure) == words


def test_the_words_of_a_figures_cases_differ():
    for figure in full_figures().values():
        cases = {p.values["case"] for p in figure.points if "case" in p.values}
        words = {words_of_case(case, figure.id) for case in cases}
        assert len(words) == len(cases), figure.id
        assert not any(re.search(r"\w-\w", said) for said in words), f"{figure.id}: {words}, a name of its file"


def test_a_legend_says_values_with_their_units_and_groups_by_their_algorithms(tmp_path):
    named = {k["name"]: k["named"] for k in chart("bless2025/fig8", lambda point, seed: 1.0, tmp_path)["keys"]}
    assert named["network.rtt_ms"][0] == "base RTT 10 ms" and named["network.buffer.bdp"][0] == "buffer 0.8 BDP"
    aged = chart("questions/kernel_age", lambda point, seed: 1.0, tmp_path)
    assert {k["name"]: k["named"] for k in aged["keys"]}["flows.0.count"] == ["1 BBR flow", "4 BBR flows"]
    assert [g["label"] for g in aged["groups"]] == ["BBR", "CUBIC or Reno"]
    pairs = {k["name"]: k["named"] for k in chart("questions/pairs", lambda point, seed: 1.0, tmp_path)["keys"]}
    assert pairs["flows.0.cca"][0] == "flow 1 BBRv1"


def test_what_is_published_in_percent_stands_beside_a_fraction_as_a_fraction(tmp_path):
    found = chart("scherrer2022/droptail", lambda point, seed: 0.9, tmp_path)
    goals = [g[0] for of_group in found["expected"]["occupancy"].values() for g in of_group if g]
    assert goals and 0.5 < max(goals) <= 1


@pytest.mark.parametrize(
    ("figure", "models"),
    [
        ("sarpkaya2025/fig3a", {"ware"}),
        ("scherrer2022/droptail", set()),  # groups of flows with RTTs of their own
        ("zeynali2024/fig1", set()),  # hosts with GRO
    ],
)
def test_a_model_is_drawn_only_where_it_describes_the_point(tmp_path, figure, models):
    """Ware's model needs no file of predictions, which are not there."""
    (found,) = figures_at("full", [figure])
    drawn = chart_of(found, table(found, trials=2), [], tmp_path)
    assert drawn["models"].keys() == models
    assert drawn["model_labels"] == {model: MODELS[model] for model in models}, "what site.js calls them"
    assert [m["name"] for m in drawn["metrics"] if m["modelled"]] == [MODELLED]


@pytest.mark.parametrize(
    ("metric", "kind"),
    [("queue_ms_p50", "queue and RTT"), ("up_s", "BBR's states and estimates"), ("probe_rtt_together", "BBR's states and estimates"), ("loss", "loss and marks"), ("first_data_s", "others")],
)  # fmt: skip
def test_a_metric_has_its_kind(metric, kind):
    assert kind_of(metric) == kind


STATIC = Path(bbrlab_apps.site.__file__).parent / "static"
# A chart as templates/parts.html has it, on a page of its own.
PAGE = f"""<!doctype html><meta charset="utf-8"><style>{colours_css()}</style>
<figure class="bb-chart" data-chart="data"><div class="bb-controls"></div><div class="bb-plot"></div>
<table class="bb-numbers"><thead><tr></tr></thead><tbody></tbody></table></figure>
<script src="{(STATIC / "plotly-cartesian.min.js").as_uri()}"></script><script src="{(STATIC / "site.js").as_uri()}"></script>"""
# Choose in its menus, then say what is there to read.
CHOOSE = """(async (choices) => {
  const plot = document.querySelector(".bb-plot"), menus = () => [...document.querySelectorAll(".bb-controls label")];
  const menu = (name) => menus().find((label) => label.firstChild.textContent === name)?.querySelector("select");
  for (let i = 0; i < 100 && !plot.querySelector(".main-svg"); i++) await new Promise((done) => setTimeout(done, 100));
  for (const [name, value] of choices) { menu(name).value = value; menu(name).dispatchEvent(new Event("change")); }
  const flows = menu("Flows");
  return { title: plot.layout.title.text, numbers: document.querySelectorAll(".bb-numbers tbody tr").length,
    curves: plot.data.filter((trace) => trace.visible === true && trace.mode?.includes("lines")).map((trace) => trace.name),
    flows: flows && [...flows.options].map((option) => option.value), chosen: flows?.value };
})"""


@pytest.mark.slow
@pytest.mark.skipif(
    PROGRAM is None, reason="there is no chromium: apt-get install chromium (make test-slow does, as root)"
)
def test_flows_without_the_chosen_metric_give_way_to_those_that_have_it(tmp_path):
    """Startup is BBR's: a map of CUBIC's would be an error, and its curves would be missing without a word."""
    (figure,) = figures_at("full", ["sarpkaya2025/fig2a"])
    runs = table(figure, trials=2)
    runs.loc[runs["group"] == 1, "startup_s"] = None
    data = embedded(chart_of(figure, runs, [], tmp_path), "data")
    (tmp_path / "page.html").write_text(f"{PAGE}{data}", encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.look(1200)
        for kind, flows in (("map", ["0"]), ("lines", ["", "0"])):
            browser.open(tmp_path / "page.html")
            choices = [["Drawn as", kind], ["Flows", "1"], ["Metric", "startup_s"]]
            found = browser.run(f"{CHOOSE}({json.dumps(choices)})")
            assert browser.problems == []
            assert (found["flows"], found["chosen"], found["numbers"]) == (flows, "0", len(figure.points)), kind
            assert found["title"].startswith("time in Startup") and "of BBRv1" in found["title"]


@pytest.mark.slow
@pytest.mark.skipif(
    PROGRAM is None, reason="there is no chromium: apt-get install chromium (make test-slow does, as root)"
)
@pytest.mark.parametrize(
    ("name", "curves"),
    [
        (
            "bless2025/fig7",
            [f"{jitter}, rate 100 Mbit/s" for jitter in ("no jitter", "1 ms in slots", "1 ms per packet")],
        ),
        ("bless2025/fig8", [f"base RTT 10 ms, buffer {bdp} BDP" for bdp in (0.8, 2, 8)]),
        ("cao2019/fig7", [*(f"BBRv1, pacing gain {gain}" for gain in (1.25, 1.1, 1.5)), "CUBIC", "Reno"]),
    ],
)
def test_the_curves_that_a_chart_begins_with_differ_in_one_thing(tmp_path, name, curves):
    """A curve without jitter at 100 Mbit/s stood beside one with it at 500."""
    found = chart(name, lambda point, seed: 1.0, tmp_path)
    (tmp_path / "page.html").write_text(f"{PAGE}{embedded(found, 'data')}", encoding="utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.look(1200)
        browser.open(tmp_path / "page.html")
        drawn = browser.run(f"{CHOOSE}([])")["curves"]
        assert browser.problems == [] and drawn == curves
