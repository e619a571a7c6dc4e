#!/bin/sh
# Makes results/ of this solution: 6 runs of some seconds each.
set -eu
cd "$(dirname "$0")"
for seed in 9509532 15114722 34898649; do
    for cca in bbr1 cubic; do
        bbrlab run scenario.yaml --set flows.0.cca=$cca --seed $seed --out results/cca-$cca-$seed --quiet
    done
done
