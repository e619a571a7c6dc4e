#!/bin/sh
# Makes results/ of this solution: 6 runs of some seconds each.
set -eu
cd "$(dirname "$0")"
for seed in 31885094 49774435 80321292; do
    for bdp in 1 16; do
        bbrlab run scenario.yaml --set network.buffer.bdp=$bdp --seed $seed --out results/bdp-$bdp-$seed --quiet
    done
done
