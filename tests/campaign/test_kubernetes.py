"""A campaign on Kubernetes: the profile, the jobs that it renders, and one figure through pods and a storage of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.campaign.plan import GROUPS
from bbrlab.campaign.resources import memory_mb
from bbrlab.campaign.snakefile import copies_of
from bbrlab.results.figures import figures_at
from tests.campaign.kubernetes import HOW, PROGRAMS, kubernetes, render, storage

PROFILE = paths.ROOT / "profiles" / "kubernetes" / "config.yaml"
FIGURE = "fig3a"  # of Sarpkaya et al.: one point, two seeds
BUCKET = "bbrlab"
PATIENCE_S = 1500


needs_plugin = pytest.mark.skipif(not (PROGRAMS / "snakemake").exists(), reason=HOW)


def settings(provider, prefix="s3://bbrlab/campaign"):
    return SimpleNamespace(
        storage_settings=SimpleNamespace(
            default_storage_provider=provider,
            default_storage_prefix=prefix,
            local_storage_prefix=Path(".snakemake/storage"),
        )
    )


def test_results_are_found_where_snakemake_keeps_its_copies():
    assert copies_of(settings(None), "results") is None
    assert copies_of(SimpleNamespace(storage_settings=None), "results") is None
    expected = Path.cwd() / ".snakemake/storage/s3/bbrlab/campaign/results"
    assert copies_of(settings("s3"), "results") == expected


def test_the_profile_names_what_it_submits():
    profile = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    assert (profile["executor"], profile["default-storage-provider"], profile["cores"]) == ("kubernetes", "s3", 1)
    assert {pair.split("=")[0] for pair in profile["group-components"]} == set(GROUPS)
    assert profile["keep-storage-local-copies"], "tables are made of the copies"


@needs_plugin
def test_what_is_asked_for_is_the_limit():
    """A job as the plugin renders it: one core and a guest's memory, asked for and not exceeded; never started twice by itself."""
    (point,) = next(f for f in figures_at("smoke") if f.id == f"sarpkaya2025/{FIGURE}").points
    profile = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    scale = dict(pair.split("=") for pair in map(str, profile["default-resources"]) if "=" in pair)["scale"]
    asked = render({"mem_mb": memory_mb(point), "_cores": profile["cores"], "scale": int(scale)})
    assert asked["namespace"] == "lab"
    pod = asked["job"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    resources = container["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == f"{memory_mb(point)}M"
    assert resources["limits"]["cpu"] == "1000m"
    assert (asked["job"]["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert "securityContext" not in container, "a guest needs no privilege"


def checkout(folder: Path) -> Path:
    """A copy of what git has of this checkout, as it is now, with a repository of its own: pods get what git lists."""
    listed = subprocess.run(
        ["git", "-C", str(paths.ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("shipped/") or not (paths.ROOT / name).is_file():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(paths.ROOT / name, folder / name)
    (folder / "shipped").mkdir(exist_ok=True)
    for argv in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(folder), *argv], check=True)
    return folder


def campaign(folder: Path, environment: dict[str, str], *options: str) -> str:
    """Run the figure at scale smoke in a checkout; what it said. An assertion if it failed."""
    argv = [PROGRAMS / "snakemake", *options, "--config", "scale=smoke", "--", FIGURE]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    return said


def outcome(results: Path) -> dict[str, object]:
    """{file: content} of what must not depend on the place."""
    found: dict[str, object] = {}
    for path in sorted((results / "runs").rglob("summary.json")):
        run = str(path.parent.relative_to(results))
        found[run] = json.loads(path.read_text(encoding="utf-8"))
        found[run].pop("wall_s")
        found[f"{run}/samples"] = (path.parent / "samples.parquet").read_bytes()
    table = pd.read_csv(results / "smoke" / "sarpkaya2025" / f"{FIGURE}.csv", dtype=str)
    return found | {FIGURE: table.drop(columns="wall_s").to_csv()}


@needs_plugin
@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_campaign_through_pods_and_a_storage_has_the_same_bytes(tmp_path):
    """Pods have nothing but the image's environment, the sources of the commit and the storage (S3's protocol, by moto)."""
    here = checkout(tmp_path / "checkout")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BBRLAB_", "AWS_", "KUBE"))}
    programs = f"{PROGRAMS}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    build = {"BBRLAB_BUILD": str(paths.build_folder())}
    environment = {**clean, **build, "PYTHONPATH": str(here), "PATH": programs}
    campaign(here, environment, "--cores", "2")
    expected = outcome(here / "results")
    shutil.move(here / "results", tmp_path / "results")

    keys = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "test", "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "test"}
    (tmp_path / "pods").mkdir()
    image = build | {"PATH": programs}
    with storage(tmp_path / "moto.log", BUCKET) as server, kubernetes(tmp_path / "pods", image) as cluster:
        cluster.write_config(tmp_path / "kubeconfig")
        told = {**environment, **keys, "KUBECONFIG": str(tmp_path / "kubeconfig")}
        options = ["--profile", "profiles/kubernetes", "--storage-s3-endpoint-url", server.address]
        try:
            campaign(here, told, *options)
        except AssertionError as error:
            raise AssertionError(f"{error}\npods: {cluster.said[-6000:]}") from None
        assert len(cluster.jobs) == 1, "short runs share a pod"
        assert "Nothing to be done" in campaign(here, told, *options)
        stored = server.names()
        copies = here / ".snakemake/storage/s3" / BUCKET / "campaign/results"
        for name in stored:
            if name.endswith("samples.parquet"):  # no table needs them, so no copy is there
                (copies / name.removeprefix("campaign/results/")).write_bytes(server.content(name))
    assert outcome(copies) == expected
    assert sum(name.endswith("summary.json") for name in stored) == 2
    assert not (here / "results" / "runs").exists(), "runs are in the storage only"
