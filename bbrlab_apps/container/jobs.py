"""Snakemake's jobs in the image: ``--software-deployment-method apptainer``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError

_SPACE = re.compile(r"\s")


def sif_file() -> Path:
    """Where `snakemake sif` writes the image as apptainer runs it."""
    return paths.results_folder() / "container" / "bbrlab.sif"


def image_of_jobs() -> str:
    """The image for Snakemake's ``container:``, which takes no path with a space, whether it is used or not.

    prepare_jobs() refuses jobs in the image where it would lie at such a path.
    """
    place = str(sif_file())
    return sif_file().name if _SPACE.search(place) else place


def prepare_jobs(workflow: Any) -> None:
    """Let jobs that run in the image write where this campaign's results are. Others are left as they are.

    UserError if jobs are to run in the image and there is none, or it is at a path with a space.

    Args:
        workflow: Snakemake's, while it reads the Snakefile.
    """
    methods = getattr(getattr(workflow, "deployment_settings", None), "deployment_method", None) or ()
    if not any(getattr(method, "name", "") == "APPTAINER" for method in methods):
        return
    if _SPACE.search(str(sif_file())):
        raise UserError(
            f"{sif_file()}: Snakemake takes no image at a path with a space; name results without one in BBRLAB_RESULTS"
        )
    if not sif_file().exists():
        raise UserError(
            f"{sif_file()}: is not there, in which --software-deployment-method apptainer runs jobs; make it first: snakemake --cores 2 sif"
        )
    # The image has a checkout of its own, whose results nobody may write to.
    os.environ["BBRLAB_RESULTS"] = str(paths.results_folder().absolute())
