"""Where things are. The only module that knows the layout of the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
DATA = ROOT / "data"
GUEST_CODE = ROOT / "mininet"
KERNELS = ROOT / "kernels"
SCENARIOS = ROOT / "scenarios"
SHIPPED = ROOT / "shipped"  # results that ship with the package: bbrlab/report/shipped.py
DEBIAN_PACKAGES = ROOT / "envs" / "debian-packages.txt"


def build_folder() -> Path:
    """Kernels and compiled helpers; BBRLAB_BUILD moves it, for example to share one among checkouts."""
    return Path(os.environ.get("BBRLAB_BUILD") or ROOT / "build")


def results_folder() -> Path:
    """What campaigns write; BBRLAB_RESULTS moves it. A relative path is one below the checkout, wherever a command runs."""
    return ROOT / (os.environ.get("BBRLAB_RESULTS") or "results")
