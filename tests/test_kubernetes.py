"""A campaign on Kubernetes: the profile, the jobs that it renders, and one figure through pods and a storage of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from bbrlab.base import paths
from bbrlab.campaign.figures import figures_at
from bbrlab.workflow.resources import GROUPS, memory_mb
from bbrlab.workflow.storage import copies_of

PROFILE = paths.ROOT / "profiles" / "kubernetes" / "config.yaml"
FIGURE = "fig3a"  # of Sarpkaya et al.: one point, two seeds
BUCKET = "bbrlab"
PATIENCE_S = 1500


@pytest.fixture
def plugin():
    return pytest.importorskip(
        "snakemake_executor_plugin_kubernetes", reason="pip install -r envs/kubernetes.txt (make test-slow does)"
    )


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


def test_what_is_asked_for_is_the_limit(plugin):
    """A job as the plugin renders it: one core and a guest's memory, asked for and not exceeded; never started twice by itself."""
    asked = []
    executor = object.__new__(plugin.Executor)
    executor.__dict__.update(
        workflow=SimpleNamespace(deployment_settings=SimpleNamespace(deployment_method=set())),
        logger=SimpleNamespace(debug=lambda text: None, info=lambda text: None),
        k8s_cpu_scalar=0.95, k8s_service_account_name=None, namespace="lab", secret_envvars={}, run_namespace="run",
        container_image="bbrlab-kubernetes:0.1.0", privileged=False, persistent_volumes=[], lock=SimpleNamespace(),
        batchapi=SimpleNamespace(create_namespaced_job=lambda namespace, body: asked.append((namespace, body))),
        format_job_exec=lambda job: "snakemake ...", report_job_submission=lambda info: None,
        _kubernetes_retry=lambda function: function(),
    )  # fmt: skip
    (point,) = next(f for f in figures_at("smoke") if f.id == f"sarpkaya2025/{FIGURE}").points
    profile = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    scale = dict(pair.split("=") for pair in map(str, profile["default-resources"]) if "=" in pair)["scale"]
    resources = {"mem_mb": memory_mb(point), "_cores": profile["cores"], "scale": int(scale)}
    executor.run_job(SimpleNamespace(resources=resources, jobid=1, attempt=1, is_containerized=False))
    ((namespace, body),) = asked
    (container,) = body.spec.template.spec.containers
    assert namespace == "lab"
    assert container.resources.requests["memory"] == container.resources.limits["memory"] == f"{memory_mb(point)}M"
    assert container.resources.limits["cpu"] == "1000m"
    assert (body.spec.backoff_limit, body.spec.template.spec.restart_policy) == (0, "Never")
    assert container.security_context is None, "a guest needs no privilege"


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
    argv = ["snakemake", *options, "--config", "scale=smoke", "--", FIGURE]
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


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(3 * PATIENCE_S)
def test_a_campaign_through_pods_and_a_storage_has_the_same_bytes(plugin, tmp_path):
    """Pods have nothing but the image's environment, the sources of the commit and the storage (S3's protocol, by moto)."""
    pytest.importorskip("snakemake_storage_plugin_s3")
    server = pytest.importorskip("moto.server", reason="pip install -r envs/kubernetes-test.txt (make test-slow does)")
    import boto3

    from tests.kubernetes import kubernetes

    here = checkout(tmp_path / "checkout")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("BBRLAB_", "AWS_", "KUBE"))}
    environment = {**clean, "PYTHONPATH": str(here), "BBRLAB_BUILD": str(paths.build_folder())}
    campaign(here, environment, "--cores", "2")
    expected = outcome(here / "results")
    shutil.move(here / "results", tmp_path / "results")

    storage = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    storage.start()
    try:
        _, port = storage.get_host_and_port()
        endpoint = f"http://127.0.0.1:{port}"
        keys = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "test", "SNAKEMAKE_STORAGE_S3_SECRET_KEY": "test"}
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        client.create_bucket(Bucket=BUCKET)
        (tmp_path / "pods").mkdir()
        image = {"BBRLAB_BUILD": environment["BBRLAB_BUILD"]}
        with kubernetes(tmp_path / "pods", image) as cluster:
            cluster.write_config(tmp_path / "kubeconfig")
            told = {**environment, **keys, "KUBECONFIG": str(tmp_path / "kubeconfig")}
            options = ["--profile", "profiles/kubernetes", "--storage-s3-endpoint-url", endpoint]
            try:
                campaign(here, told, *options)
            except AssertionError as error:
                raise AssertionError(f"{error}\npods: {cluster.said[-6000:]}") from None
            assert len(cluster.jobs) == 1, "short runs share a pod"
            assert "Nothing to be done" in campaign(here, told, *options)
        stored = {entry["Key"] for entry in client.list_objects_v2(Bucket=BUCKET)["Contents"]}
        copies = here / ".snakemake/storage/s3" / BUCKET / "campaign/results"
        for key in (
            key for key in stored if key.endswith("samples.parquet")
        ):  # no table needs them, so no copy is there
            client.download_file(BUCKET, key, str(copies / key.removeprefix("campaign/results/")))
    finally:
        storage.stop()
    assert outcome(copies) == expected
    assert sum(name.endswith("summary.json") for name in stored) == 2
    assert not (here / "results" / "runs").exists(), "runs are in the storage only"
