#!/usr/bin/env bash
# Hours of demonstrations per minute and peak memory of `refactor-vla annotate`, against the number of episodes, next to
# `ruptures` on the same signals.
#
# usage: results/annotate/speed.sh WORK_FOLDER EPISODES… > results/annotate/speed.json
#        results/annotate/speed.sh /tmp/speed 100 1000 10000 100000 > results/annotate/speed.json
#
# Run it in the root of the repository. Datasets are made in WORK_FOLDER by the example `write_demonstrations` of crate
# `dataset` and deleted again; ROBOT (default: so101) says which. PYTHON (default: python3) needs numpy, pandas, pyarrow and
# ruptures. GNU time measures the peak of memory. Two cores are used unless RAYON_NUM_THREADS says otherwise.
# PROFILE is the profile of cargo that is measured (default: release).
set -euo pipefail

work=$1
shift
python=${PYTHON:-python3} robot=${ROBOT:-so101} here=$(dirname "$(readlink -f "$0")")
export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}/${profile/dev/debug}
cargo build --profile "$profile" -p cli -p dataset --bin refactor-vla --example write_demonstrations >&2
mkdir -p "$work"

separator='['
for episodes in "$@"; do
    "$target/examples/write_demonstrations" "$work/grown" "$episodes" "$robot" >&2
    /usr/bin/time -f '%e %U %S %M' -o "$work/time" "$target/refactor-vla" annotate "$work/grown" "$work/annotated" >&2
    read -r seconds user system memory <"$work/time"
    peer=$("$python" "$here/ruptures_speed.py" "$work/grown" 50)
    echo "$separator"
    separator=','
    "$python" - "$episodes" "$robot" "$RAYON_NUM_THREADS" "$seconds" "$user" "$system" "$memory" "$peer" <<'PYTHON'
import json, sys
episodes, robot, threads, seconds, user, system, memory, peer = sys.argv[1:]
peer, seconds = json.loads(peer), float(seconds)
print(json.dumps({
    "robot": robot, "episodes": int(episodes), "hours": peer["hours"], "threads": int(threads), "seconds": seconds,
    "cpu_seconds": round(float(user) + float(system), 2), "peak_kilobytes": int(memory),
    "hours_per_minute": round(peer["hours"] * 60 / seconds, 3), "ruptures": peer["ruptures"],
}), end="")
PYTHON
    rm -rf "$work/grown" "$work/annotated"
done
echo ']'
