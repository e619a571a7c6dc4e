"""``python -m tests.bench.slurm_job``: what a job on Slurm costs beside its runs, in CPU seconds per run.

A Slurm of the tests' own on this machine runs scale smoke of some figures, as profiles/slurm submits it. GNU time counts the CPU of each job: of
Snakemake, which starts twice in it, and of all that they start. What the runs' own manifests say that they took (guest and evaluation; one
core each, which they have to themselves only on an idle machine) is taken off. Needs root and what `tests.campaign.slurm` names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bbrlab.base import paths
from bbrlab.base.files import read_json
from tests.campaign.slurm import Slurm, slurm, why_not

FIGURES = ("sarpkaya2025/fig2a", "sarpkaya2025/fig2c", "cao2019/fig5", "tang/fig2", "ware2019/fig8a")
# Both of Slurm's programs that start Snakemake: sbatch gets it as one text, srun word for word.
SHIM = """#!{python}
import os, sys
time = ["/usr/bin/time", "--append", "--output={times}", "--format=%U:%S"]
words = []
for word in sys.argv[1:]:
    if word.startswith("{python}") and " " not in word:
        words += [*time, word]
    else:
        words.append(word.replace("{python}", " ".join([*time, "{python}"])))
os.environ["SLURM_CONF"] = "{conf}"
os.execv("{program}", ["{program}", *words])
"""


def _count_cpu(cluster: Slurm, times: Path) -> None:
    for name in ("sbatch", "srun"):
        shim = cluster.folder / "bin" / name
        shim.write_text(
            SHIM.format(python=sys.executable, times=times, conf=cluster.conf, program=f"/usr/bin/{name}"),
            encoding="utf-8",
        )
        shim.chmod(0o755)


def measured(folder: Path, figures: list[str]) -> tuple[int, int, float, float]:
    """Run a campaign. Returns how many jobs and runs it had, and CPU seconds: of all jobs, and of the runs in them."""
    times, results = folder / "times", folder / "results"
    (folder / "work").mkdir()
    with slurm(folder) as cluster:
        _count_cpu(cluster, times)
        environment = {**cluster.environment, "BBRLAB_RESULTS": str(results), "TMPDIR": str(folder)}
        command = ["snakemake", "--snakefile", str(paths.ROOT / "Snakefile"), "--directory", str(folder / "work")]
        command += ["--profile", str(paths.ROOT / "profiles" / "slurm"), "--config", "scale=smoke", "--", *figures]
        subprocess.run(command, env=environment, check=True)
        jobs = len([row for row in cluster.jobs() if "COMPLETED" in row])
    walls = [read_json(path)["wall"]["total_s"] for path in (results / "runs").rglob("manifest.json")]
    cpu_s = sum(
        float(word)
        for line in times.read_text(encoding="utf-8").splitlines()
        for word in line.split(":")
        if line[0].isdigit()
    )
    return jobs, len(walls), cpu_s, sum(walls)


def main() -> int:
    """Measure, and print. Returns 2 if there can be no Slurm here."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("figures", nargs="*", default=FIGURES, metavar="PAPER/FIGURE", help="default: %(default)s")
    asked = options.parse_args()
    if reason := why_not():
        print(f"no Slurm here: {reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as name:
        Path(name).chmod(0o711)
        jobs, runs, cpu_s, runs_s = measured(Path(name), list(asked.figures))
    print(f"{runs} runs in {jobs} jobs: {cpu_s:.1f} s of CPU, the runs themselves {runs_s:.1f} s")
    print(f"beside a run {(cpu_s - runs_s) / runs:.2f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
