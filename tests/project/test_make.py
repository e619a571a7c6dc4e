"""make clean removes what is the checkout's own, and nothing else."""

import os
import shutil
import subprocess

from bbrlab.base import paths


def test_clean_removes_the_checkouts_results_alone(tmp_path):
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    kept = [tmp_path / "my" / "thesis.txt", tmp_path / "my results" / "run.parquet"]
    own = tmp_path / "results" / "run.parquet"
    for file in (*kept, own):
        file.parent.mkdir()
        file.touch()
    elsewhere = os.environ | {"BBRLAB_RESULTS": str(tmp_path / "my results")}
    done = subprocess.run(["make", "clean"], cwd=tmp_path, env=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode and "unset it, or remove that folder yourself" in done.stderr
    assert all(file.exists() for file in (*kept, own))
    environment = {name: value for name, value in os.environ.items() if name != "BBRLAB_RESULTS"}
    subprocess.run(["make", "clean"], cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert all(file.exists() for file in kept) and not own.parent.exists()
