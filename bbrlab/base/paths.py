"""Where things are. The only module that knows the layout of the checkout.

A relative path in an environment variable is one below the checkout, wherever a command runs.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
DATA = ROOT / "data"
GUEST_CODE = ROOT / "mininet"
KERNELS = ROOT / "kernels"
SCENARIOS = ROOT / "scenarios"
REPLACE = "BBRLAB_REPLACE"  # in the environment: OLD:NEW, set by the workflow (results/replacement.py)
# Results that ship with the package: bbrlab/results/shipped.py. BBRLAB_SHIPPED names others in their place.
SHIPPED = ROOT / (os.environ.get("BBRLAB_SHIPPED") or "shipped")
DEBIAN_PACKAGES = ROOT / "envs" / "debian-packages.txt"
IMAGE = ROOT / "image.json"  # only in a container's image: what it was made from (bbrlab_apps/container/facts.py)


def build_folder() -> Path:
    """Kernels and compiled helpers; BBRLAB_BUILD moves it, for example to share one among checkouts."""
    return ROOT / (os.environ.get("BBRLAB_BUILD") or "build")


def results_folder() -> Path:
    """What campaigns write; BBRLAB_RESULTS moves it.

    A campaign that puts one algorithm in the place of another has a folder of its own in it.
    """
    return replaced_folder(ROOT / (os.environ.get("BBRLAB_RESULTS") or "results"), os.environ.get(REPLACE))


def replaced_folder(results: Path, replaced: str | None) -> Path:
    """Where in a folder of results a campaign with OLD:NEW replaced (results/replacement.py) has its own."""
    return results / "replace" / replaced.replace(":", "-") if replaced else results


def name_of(path: Path) -> str:
    """A file as the rules call it: relative to Snakemake's working folder where it is below that, so that it can be asked
    for by the name that a person would type (results/full/tang/fig2.csv); else absolute."""
    path = ROOT / path
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
