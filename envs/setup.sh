#!/bin/bash
# Installs what is missing, step by step; prints what it does and how long it took. Run again, it does nothing.
# `setup.sh environment`: the Python environment alone, which is all that building the container's image needs (any Linux).
# `setup.sh without-kernel`: all but the guest kernel, for who has that elsewhere by its key (.github/actions/setup).
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8 # in other languages printf takes a number with a point for none

step() { printf '%-28s' "$1"; started=$(date +%s.%N); }
done_() { printf '%7.1f s  %s\n' "$(echo "$(date +%s.%N) $started" | awk '{print $1-$2}')" "${1:-}"; }
fail() { printf '\nbbrlab set-up: %s\n' "$1" >&2; exit 1; }
log=build/setup.log
mkdir -p build
: >"$log"
tail_of_log() { tail -n 8 "$log" >&2; }

all=${1:-all}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "bbrlab needs Linux on x86-64, this is $(uname -s) on $(uname -m)"
if [ "$all" != environment ]; then
command -v dpkg-query >/dev/null || fail "this is not a Debian system; use Debian 12 or 13, or the Dockerfile"

step "Debian packages"
wanted=$(grep -v '^#' envs/debian-packages.txt)
have=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | awk '$2 == "installed" {print $1}' || true)
missing=$(comm -23 <(sort <<<"$wanted") <(sort <<<"$have"))
if [ -n "$missing" ]; then
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "these packages are missing; install them as root: apt-get install $(echo $missing)"
        sudo=sudo
    fi
    export DEBIAN_FRONTEND=noninteractive
    # A container must not start daemons; bbrlab needs none of them on the host.
    # Another program, as a new machine's first updates, may be installing: wait for it.
    if ! { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -o DPkg::Lock::Timeout=300 -y --no-install-recommends $missing; } >>"$log" 2>&1; then
        tail_of_log
        fail "apt-get could not install: $(echo $missing) (log: $log)"
    fi
    done_ "installed: $(echo $missing)"
else
    done_ "all there"
fi
fi

# Half of the locked packages, 0 or 1: pip unpacks on one core, so one for each half.
half() { awk -v half="$1" '/^[a-zA-Z0-9]/ {n++} n % 2 == half' envs/requirements.lock; }
install() { .venv/bin/pip install --disable-pip-version-check --no-input --no-deps "$@"; }

step "Python environment"
# With the folder, whose path is in the environment's programs: a copy or a moved checkout needs its own.
mark=$({ cat envs/requirements.lock pyproject.toml; pwd; } | sha256sum | cut -d' ' -f1)
if [ "$(cat .venv/bbrlab.mark 2>/dev/null)" != "$mark" ] || [ ! -x .venv/bin/bbrlab ]; then
    rm -rf .venv
    {
        # editable_mode=compat puts this folder on Python's path, where Snakemake looks for its plugins.
        /usr/bin/python3 -m venv .venv &&
            { install --no-compile --require-hashes -r <(half 0) & install --no-compile --require-hashes -r <(half 1); of_half=$?; wait $! && [ $of_half = 0 ]; } &&
            # pip would do this on one core. Some packages bring files that are no valid Python, as their test data.
            { .venv/bin/python -m compileall -q -j 0 -x '/tests?/' .venv/lib || true; } &&
            install --no-build-isolation --config-settings editable_mode=compat -e .
    } >>"$log" 2>&1 || { tail_of_log; rm -rf .venv; fail "the Python environment could not be made (log: $log)"; }
    echo "$mark" >.venv/bbrlab.mark
    done_ "made from envs/requirements.lock"
else
    done_ "up to date"
fi

[ "$all" = all ] || exit 0
step "guest kernel"
echo
.venv/bin/bbrlab kernel build
