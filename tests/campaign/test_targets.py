"""What a person asks `snakemake` for: names that there are not, keys that mean nothing, a study without a page."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import read_yaml
from bbrlab.campaign.snakemake import words_of
from bbrlab.campaign.targets import check_config_keys, check_target_names
from bbrlab.results.figures import figures_at
from bbrlab_apps.study.campaign_source import sources_of
from tests.campaign.checkout import copy_checkout, run_snakemake
from tests.conftest import scenario_dict

RULES = ["all", "container", "site", "tang", "tang/fig2"]
CHOSEN = [figure.id for figure in figures_at("smoke", [])]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.mark.parametrize(
    "word",
    ["all", "site", "tang", "fig2", "tang/fig2", "results/smoke/tang/fig2.csv", "tang.ipynb", "s3://bucket/x", "a/b/c"],
)
def test_what_may_be_asked_for(word):
    check_target_names([word], CHOSEN, RULES, "smoke")


def test_a_folder_of_results_may_be_asked_for():
    check_target_names([str(paths.results_folder() / "site")], CHOSEN, RULES, "smoke")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("fig22a", "there is no figure or paper 'fig22a', did you mean fig2a?"),
        ("tang/fg2", "there is no figure or paper 'tang/fg2', did you mean tang/fig2?"),
        ("sarpkaya2025/fig3b", "sarpkaya2025/fig3b is not part of scale smoke; choose another with --config scale="),
        ("contayner", "there is no target 'contayner', did you mean container?"),
    ],
)
def test_what_there_is_not(word, said):
    with pytest.raises(UserError) as error:
        check_target_names(["tang", word], CHOSEN, RULES, "smoke")
    assert str(error.value).startswith(said)


def test_a_figure_that_a_campaign_leaves_out():
    with pytest.raises(
        UserError, match="tang/fig2 is not among the figures of this campaign; add it to --config figures="
    ):
        check_target_names(["tang/fig2"], ["tang/fig3"], ["all"], "smoke")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-n -- tang fig2", ["tang", "fig2"]),
        ("-n tang --config scale=smoke kernel=lab-6.12", ["tang"]),
        ("--cores 2 -j 3 --set-resources run:mem_mb=7 --config scale=smoke -- all", ["all"]),
        ("-n", []),
    ],
)
def test_targets_of_a_command_line(line, words):
    assert words_of(["snakemake", *line.split()]) == words


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"scal": "smoke"},
            r"--config scal: unknown key; did you mean 'scale'\?",
        ),
        ({"figure": "x"}, r"did you mean 'figures'\?"),
        ({"xyz": 1}, r"--config xyz: unknown key \(there are"),
        ({"scales": {}}, r"--config scales: scales are read from .*config\.yaml only"),
    ],
)
def test_keys_that_mean_nothing(given, said):
    file = read_yaml(paths.CONFIG / "config.yaml")
    check_config_keys(file | {"kernel": "lab-6.12", "replace": "bbr3:bbr2"})
    with pytest.raises(UserError, match=said):
        check_config_keys(file | given)


@pytest.mark.parametrize(
    ("target", "config", "message"),
    [
        ("fig22a", (), "there is no figure or paper 'fig22a'"),
        ("tang/fig2", ("scal=smoke",), "--config scal: unknown key; did you mean 'scale'?"),
    ],
)
def test_one_message_and_no_plan(checkout, target, config, message):
    output = run_snakemake(checkout, [target], "-n", config=config, ends_with=1)
    assert message in output
    assert "of testbed time" not in output, "no forecast of what was not asked for"
    assert "MissingRule" not in output


def test_pages_say_how_many_figures_a_scale_has():
    count = {scale: len(figures_at(scale, [])) for scale in ("smoke", "quick", "full")}
    for page in ("README.md", "config/README.md", "docs/howto/artifact.md", "docs/reference/benchmarks.md"):
        text = (paths.ROOT / page).read_text(encoding="utf-8")
        assert f"{count['quick']} of {count['full']}" in text, page
        assert page == "README.md" or f"{count['smoke']} of {count['full']} figures" in text, page


def test_a_study_without_a_notebook(checkout):
    """Runs, tables and claims as for every paper, and `all` goes through; it has no page."""
    scenario = checkout / "scenarios" / "mystudy" / "exp1.yaml"
    scenario.parent.mkdir()
    scenario.write_text(yaml.safe_dump(scenario_dict(name="exp1", paper="mystudy", trials=1)))
    run_snakemake(checkout, ["mystudy", "all"], figures=["mystudy/exp1"])
    made = checkout / "results" / "smoke"
    assert (made / "mystudy" / "exp1.claims.txt").exists()
    assert (made / "site").is_dir()
    assert not (made / "mystudy.ipynb").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"figures": 5}, "--config figures: must be a list"),
        ({"scale": None}, "--config scale: must be a text"),
        ({"kernel": ["lab-6.12"]}, "--config kernel: must be a text"),
    ],
)
def test_a_value_that_a_key_cannot_have(given, said):
    file = read_yaml(paths.CONFIG / "config.yaml")
    with pytest.raises(UserError) as error:
        check_config_keys(file | given)
    assert str(error.value).startswith(said)
    check_config_keys(file | {"figures": "tang"})


@pytest.mark.parametrize(
    ("text", "said"), [("x='", "give KEY=VALUE of config/config.yaml"), ("kernl=lab-6.12", "did you mean 'kernel'")]
)
def test_a_side_of_a_comparison_has_the_same_keys(text, said):
    with pytest.raises(UserError, match=said):
        sources_of([], [], [text, "kernel=lab-6.12"])


def test_a_kernel_needs_what_is_asked_for_only(checkout):
    """A kernel without BBRv2 runs the figures without it; of others that were asked for the message names some that it can run."""
    run_snakemake(checkout, ["sarpkaya2025/fig5a"], "-n", config=["kernel=google-v3-7542cc7"])
    output = run_snakemake(checkout, ["sarpkaya2025"], "-n", config=["kernel=mainline-6.12"], ends_with=1)
    assert "kernel mainline-6.12 has no bbr" in output
    assert "or ask for figures that it can run: sarpkaya2025/" in output
