#!/bin/sh
# The steps of the Dockerfile. Each leaves nothing behind that the image does not need.
set -eu
cd /bbrlab
certificates=/run/secrets/certificates

# Packages of a section of debian-packages.txt: what follows the line "# --- SECTION".
section() { awk -v wanted="# --- $1" '/^# ---/ {of = ($0 == wanted)} of && !/^#/' envs/debian-packages.txt; }

install_packages() {
    if [ -n "${ARCHIVE-}" ]; then
        suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
        rm -f /etc/apt/sources.list.d/*
        : >/etc/apt/sources.list
        for of in debian:$suite debian:$suite-updates debian-security:$suite-security; do
            # An archive of the past is valid for good.
            echo "deb [check-valid-until=no] $(echo "$ARCHIVE" | sed "s/{archive}/${of%%:*}/") ${of#*:} main" >>/etc/apt/sources.list
        done
    fi
    cafile=
    [ ! -s $certificates ] || cafile="-o Acquire::https::CAInfo=$certificates"
    apt-get $cafile update
    apt-get $cafile install -y --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/log/*.log /var/log/apt
}

case "$1" in
guest)
    # For tests, which look at processes and make repositories.
    install_packages procps git $(section "inside the guest") $(section "the Python environment")
    ;;
kernel-packages)
    install_packages $(section "to build the guest kernel")
    ;;
python)
    /usr/bin/python3 -m venv .venv
    if [ -s $certificates ]; then export PIP_CERT=$certificates; fi
    pip=".venv/bin/pip --disable-pip-version-check --no-input --no-cache-dir"
    $pip install --no-compile --no-deps --require-hashes -r envs/requirements.lock
    $pip uninstall -y $(grep -v '^#' envs/lint-requirements.txt)
    # What packages bring for their own developers: tests, C headers, symbols, solvers for other systems.
    site=$(echo .venv/lib/python3.*/site-packages)
    find "$site" -depth -type d \( -name __pycache__ -o -path '*/tests' -o -path '*/pyarrow/include' -o -path '*/pyarrow/src' \) -exec rm -rf {} +
    find "$site" .venv/share -type f \( -name '*.js.map' -o -name '*.a' -o -name '*.pyx' -o -name '*.pxd' \) -delete
    find "$site"/pulp/solverdir -type f ! -path '*/linux/*' ! -name '*.py' -delete 2>/dev/null || true
    ;;
strip)
    # Not those of *.libs, which a tool has changed that strip does not get on with.
    find .venv -name '*.so*' -type f ! -path '*.libs/*' -exec strip --strip-unneeded {} + 2>/dev/null || true
    ;;
kernels)
    export PYTHONPATH=/bbrlab
    .venv/bin/python -c 'from bbrlab.cli.kernels import kernel_build; kernel_build(None, None, None, None)'
    ;;
finish)
    # A checkout may be one that nobody else can read.
    find . -path ./.venv -prune -o ! -perm -a+r -exec chmod a+rX {} +
    .venv/bin/pip --disable-pip-version-check --no-input install --no-deps --no-index --no-build-isolation --no-compile \
        --config-settings editable_mode=compat -e .
    .venv/bin/python -m bbrlab_apps.container.facts --commit "${COMMIT-}" --modified "${MODIFIED-}"
    .venv/bin/python -m bbrlab_apps.container.compiled
    # Whoever runs it may write here: the container's user is the host's, by number.
    chmod a+w . build build/guest build/kernels
    find notebooks scenarios courses -exec chmod a+w {} +
    rm -rf /root/.cache /var/tmp/* /tmp/*
    ;;
*)
    echo "envs/image.sh: no step '$1'" >&2
    exit 2
    ;;
esac
