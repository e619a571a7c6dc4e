#!/bin/bash
# Makes the reference traces anew: each scenario here is run, and each of its flows becomes a file (README.md).
# data/traces/make.sh [CASE ...]
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- *.yaml
for case in "$@"; do
    case=${case%.yaml}
    run=$(mktemp -d)
    bbrlab run "$case.yaml" --out "$run" --trace-acks --strict
    bbrlab qlog "$run" --gzip --out "$run/qlog"
    for file in "$run"/qlog/*.sqlog.gz; do
        mv "$file" "$case.$(basename "$file")"
    done
    rm -rf "$run"
done
