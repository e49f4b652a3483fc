#!/usr/bin/env bash
# Trains RecursivePour's world model with one setting changed at a time, and then with all of them and all but one.
# It evaluates on demonstrations of seeds 12 to 15, never on seed 999. A finished run is not repeated.
#
#   usage: PROGRAM=refactor-vla DEVICE=cuda:0 results/recursive_pour/sweep.sh OUT && results/recursive_pour/table.py OUT/*.json
set -euo pipefail
out=${1:?usage: sweep.sh OUT}
program=${PROGRAM:-refactor-vla} device=${DEVICE:-cpu} seeds=${SEEDS:-2} long=${LONG:-5000}
mkdir -p "$out"

try() { # NAME ARGUMENT…
    local name=$1 file="$out/$1.json"
    shift
    [ -s "$file" ] && return
    "$program" eval recursive-pour --device "$device" --seeds "$seeds" --judged-on 12,13,14,15 --pairs 16 --worst 20 --json \
        --set precision=f32 "$@" >"$file.part"
    mv "$file.part" "$file"
}

by_task=(--set batches=by_task)
steps=(--set "train.steps=$long" --set train.warmup=200)
decay=(--set train.adamw.weight_decay=0.3)
precise=(--set model.recon_weight=10 --set model.state_weight=10 --set model.kl_weight=1 --set model.free_nats=0)
imagined=(--set model.imagined_share=0.5)
waves=(--set model.frequencies=1)
fixed=(--reward-scale fixed)

try 0-preset
try 1-by_task "${by_task[@]}"
try 1-steps "${steps[@]}"
try 1-decay "${decay[@]}"
try 1-precise "${precise[@]}"
try 1-imagined "${imagined[@]}"
try 1-waves "${waves[@]}"
try 1-waves_2 --set model.frequencies=2
try 1-fixed "${fixed[@]}"
try 2-all "${by_task[@]}" "${steps[@]}" "${decay[@]}" "${precise[@]}" "${imagined[@]}" "${waves[@]}"
try 2-without_by_task "${steps[@]}" "${decay[@]}" "${precise[@]}" "${imagined[@]}" "${waves[@]}"
try 2-without_steps "${by_task[@]}" "${decay[@]}" "${precise[@]}" "${imagined[@]}" "${waves[@]}"
try 2-without_decay "${by_task[@]}" "${steps[@]}" "${precise[@]}" "${imagined[@]}" "${waves[@]}"
try 2-without_precise "${by_task[@]}" "${steps[@]}" "${decay[@]}" "${imagined[@]}" "${waves[@]}"
try 2-without_imagined "${by_task[@]}" "${steps[@]}" "${decay[@]}" "${precise[@]}" "${waves[@]}"
try 2-without_waves "${by_task[@]}" "${steps[@]}" "${decay[@]}" "${precise[@]}" "${imagined[@]}"
try 2-all_fixed "${by_task[@]}" "${steps[@]}" "${decay[@]}" "${precise[@]}" "${imagined[@]}" "${waves[@]}" "${fixed[@]}"
