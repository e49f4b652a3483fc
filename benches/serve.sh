#!/usr/bin/env bash
# Latency and throughput of `refactor-vla serve` next to its PyTorch twin behind openpi's server loop, one after the other.
#
#   cargo build --release -p cli && cargo build --release -p server --example load_test
#   python3 -m venv target/twin && target/twin/bin/pip install torch safetensors numpy pillow websockets openpi-client typing-extensions
#   PYTHON=target/twin/bin/python benches/serve.sh RUN OUT [DINOV2_WEIGHTS] [DEVICE]
#
# Writes OUT/{ours,twin}-{1,32}.json: one client, then 32. REQUESTS (default 200) and MANY (default 10000) change the lengths.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=$1 out=$2 weights=${3:-} device=${4:-cpu}
binary=${BINARY:-target/release/refactor-vla} load=${LOAD:-target/release/examples/load_test}
mkdir -p "$out"

# Starts a server, waits until it is healthy, asks, and ends it.
measure() {
    local name=$1 port=$2 clients=$3 requests=$4
    shift 4
    "$@" >"$out/$name.log" 2>&1 &
    local pid=$!
    for _ in $(seq 600); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
        kill -0 $pid
        sleep 0.2
    done
    local alone=()
    if [[ $clients -eq 1 ]]; then alone=(--alone); fi
    "$load" --port "$port" --pid $pid --clients "$clients" --requests "$requests" "${alone[@]}" >"$out/$name-$clients.json" || true
    kill $pid
    wait $pid 2>/dev/null || true
    printf '%s, %s clients: ' "$name" "$clients"
    grep -E '"(requests_per_second|p50|p99|lost)"' "$out/$name-$clients.json" | tr -d '\n' && echo
}

ours=("$binary" serve "$run" --port 8000 --device "$device" --quiet)
twin=("${PYTHON:-python3}" benches/serve_twin.py "$run" --port 8001 --device "${device%%:*}")
if [[ -n $weights ]]; then
    ours+=(--weights "$weights") twin+=(--weights "$weights")
fi
for clients in 1 32; do
    requests=${REQUESTS:-200}
    if [[ $clients -gt 1 ]]; then requests=${MANY:-10000}; fi
    measure ours 8000 "$clients" "$requests" "${ours[@]}"
    measure twin 8001 "$clients" "$requests" "${twin[@]}"
done
