#!/bin/sh
# What `docker run IMAGE ...` starts (docs/howto/container.md).
set -eu
case "${1-}" in
"")
    exec snakemake --cores all all
    ;;
-*)
    exec snakemake --cores all "$@"
    ;;
test)
    shift
    exec pytest -n logical --dist loadfile -m "not slow" "$@"
    ;;
run)
    shift
    out=--out=results/by_hand/container
    for word; do
        case "$word" in --out | --out=* | --help) out= ;; esac
    done
    exec bbrlab run "$@" $out
    ;;
lab)
    shift
    cd notebooks
    exec jupyter lab --ip=0.0.0.0 --no-browser "$@"
    ;;
*)
    exec "$@"
    ;;
esac
