"""A copy of this checkout with two papers, in which campaigns end in no time: a stand-in for bbrlab does what the jobs ask for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import yaml

from bbrlab.base import paths
from bbrlab.campaign.stages import PACKAGES
from tests.conftest import CORES

# In bbrlab's place: writes what a job has to write, at once.
STAND_IN = """#!/bin/bash
if [ "$1" = seeds ]; then  # as a look at fig2c's claims would: what ASKED has for the round
  echo "$@" >> "$BBRLAB_RESULTS/looks"
  while [ "$1" != --out ]; do shift; done
  mkdir -p "$(dirname "$2")"; cp "$ASKED/$(basename "$2")" "$2"; exit
fi
outs=(); while [ $# -gt 0 ]; do case $1 in
  --out) case $2 in */site) mkdir -p "$2";; */seed-*) outs+=("$2/summary.json" "$2/samples.parquet" "$2/manifest.json");; *) outs+=("$2");; esac; shift;;
  --record) outs+=("$2"); shift;;
  --figures) mkdir -p "$2"; shift;;
  9s=*|own=*|burst=*) outs+=("${1#*=}");;
esac; shift; done
for out in "${outs[@]}"; do
  mkdir -p "$(dirname "$out")"; echo '{}' > "$out"
  case $out in *claims.parquet) for x in parquet csv; do echo > "${out%claims.parquet}statements.$x"; done;; esac
  case $out in */seed-*) ;; *.parquet) echo > "${out%.parquet}.csv";; esac
done
"""
_PARTS = (
    *PACKAGES,
    "mininet",
    "data",
    "scenarios",
    "notebooks",
    "config",
    "kernels",
    "envs",
    "profiles",
    "rules",
    "Snakefile",
    "docs",
    "courses",
    "README.md",
    "LIMITATIONS.md",
    "CHANGELOG.md",
    *(p.name for p in paths.ROOT.glob("snakemake_logger_plugin_*")),
)
PAPERS = ("tang", "sarpkaya2025")
FIGURE = "sarpkaya2025/fig2c"


def copy_checkout(folder: Path, program: str = STAND_IN) -> Path:
    """Copy the checkout, with PAPERS' scenarios, all tables of data/, and of the statements Tang's and those on one figure alone.

    Reading every paper's statements takes most of the time that Snakemake needs to start.

    Args:
        program: stands in for bbrlab.
    """
    folder.mkdir(exist_ok=True)
    for name in _PARTS:
        source = paths.ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    for scenarios in (folder / "scenarios").iterdir():
        if scenarios.is_dir() and scenarios.name not in PAPERS:
            shutil.rmtree(scenarios)
    for claims in (folder / "data").glob("*/claims.yaml"):
        if claims.parent.name not in PAPERS:
            claims.unlink()
    claims = folder / "data" / "sarpkaya2025" / "claims.yaml"
    statements = yaml.safe_load(claims.read_text(encoding="utf-8"))
    claims.write_text(yaml.safe_dump([s for s in statements if s["id"] == "SA-2c"], sort_keys=False), encoding="utf-8")
    put_program(folder, "bbrlab", program)
    return folder


def put_program(checkout: Path, name: str, text: str) -> Path:
    """A program that goes before others of its name in run_snakemake()."""
    path = checkout / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run_snakemake(
    checkout: Path,
    targets: Sequence[str],
    *options: str,
    figures: Sequence[str] = (),
    scale: str = "smoke",
    config: Sequence[str] = (),
    ends_with: int = 0,
    **environment: str,
) -> str:
    """What Snakemake says of targets in a copy of the checkout, with results in the copy if BBRLAB_RESULTS names no other folder."""
    chosen = [f"figures=[{','.join(figures)}]"] if figures else []
    command = ["snakemake", "--cores", CORES, *options, "--config", f"scale={scale}", *chosen, *config, "--", *targets]
    variables = {"PYTHONPATH": str(checkout), "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "BBRLAB_RESULTS": ""}
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, **variables, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == ends_with, done.stdout + done.stderr
    return done.stdout + done.stderr
