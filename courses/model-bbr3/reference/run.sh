#!/bin/sh
# Makes results/ of this solution: 9 runs of some seconds each.
set -eu
cd "$(dirname "$0")"
for seed in 881757 37524894 69128497; do
    for bdp in 2 6 12; do
        bbrlab run scenario.yaml --set network.buffer.bdp=$bdp --seed $seed --out results/bdp-$bdp-$seed --quiet
    done
done
