#!/bin/sh
# Makes .venv-kubernetes, which has all of .venv and, before it, what `snakemake --profile profiles/kubernetes` needs: botocore wants
# an older python-dateutil than requirements.lock, so it cannot stand in .venv. Run again, it does nothing.
# `kubernetes.sh test`: also what tests/campaign/test_kubernetes.py needs.
set -eu
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || { echo "bbrlab: no .venv here; make setup" >&2; exit 1; }
files=envs/kubernetes.txt
[ "${1-}" != test ] || files="$files envs/kubernetes-test.txt"
mark=$({ cat $files envs/kubernetes.sh envs/requirements.lock; pwd; } | sha256sum)
[ "$(cat .venv-kubernetes/installed 2>/dev/null)" != "$mark" ] || exit 0
rm -rf .venv-kubernetes
.venv/bin/python -m venv .venv-kubernetes
.venv-kubernetes/bin/pip install -q --disable-pip-version-check --no-input --no-cache-dir --no-deps --require-hashes $(printf -- '-r %s ' $files)
# A line of a .pth file that begins with "import" is run when Python starts.
.venv-kubernetes/bin/python - <<'END'
import pathlib, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
inside = str(site.relative_to(sys.prefix))
(site / "bbrlab_venv.pth").write_text(
    f"import os, site, sys; site.addsitedir(os.path.join(os.path.dirname(sys.prefix), '.venv', {inside!r}))\n"
)
END
sed "1s|.*|#!$PWD/.venv-kubernetes/bin/python|" .venv/bin/snakemake >.venv-kubernetes/bin/snakemake
chmod +x .venv-kubernetes/bin/snakemake
echo "$mark" >.venv-kubernetes/installed
